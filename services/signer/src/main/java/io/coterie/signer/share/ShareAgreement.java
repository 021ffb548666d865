package io.coterie.signer.share;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.KeyPublic;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Everything that decides whether a share becomes active: the statements of its parties, whose
 * signatures were checked before.
 *
 * @param own share of this party
 * @param self id of this party
 * @param signature of this party, that it has stored the share
 * @param reports the latest statement of each peer, by party id
 * @param newerRuns whether another run for the same key is under way
 */
record ShareAgreement(
    KeyShare own, int self, ByteString signature, Map<Integer, Report> reports, boolean newerRuns) {

  /**
   * A peer's statement that it has stored its share.
   *
   * @param keyPublic public data that it has stored
   * @param intentDigest of the intent that it was for
   */
  record Report(KeyPublic keyPublic, ByteString intentDigest, ByteString signature) {
    boolean isOf(KeyShare share) {
      return keyPublic.equals(share.keyPublic())
          && intentDigest.equals(share.origin().intentDigest());
    }
  }

  /** The answer for now; a further report may change it. */
  sealed interface Verdict {
    /** Every party has stored what belongs to the own share. */
    record Agreed(Certificate certificate) implements Verdict {}

    /** A report is missing, or a newer run decides. */
    record Open() implements Verdict {}

    /**
     * A party has signed other public data, or that they were for another intent.
     *
     * @param party id of the first one
     */
    record Contradicted(int party) implements Verdict {}
  }

  ShareAgreement {
    reports = Map.copyOf(reports);
  }

  /** Whether the parties agree. Parties are looked at in ascending order of their ids. */
  Verdict verdict() {
    List<ByteString> proof = new ArrayList<>();
    for (int party : own.members()) {
      if (party == self) {
        proof.add(signature);
        continue;
      }
      Report reported = reports.get(party);
      if (reported == null) {
        return new Verdict.Open();
      }
      if (!reported.isOf(own)) {
        return new Verdict.Contradicted(party);
      }
      proof.add(reported.signature());
    }
    // If the newer run of a new key succeeds everywhere, this share is the one to be abandoned.
    return own.epoch() == 1 && newerRuns
        ? new Verdict.Open()
        : new Verdict.Agreed(new Certificate(proof));
  }
}
