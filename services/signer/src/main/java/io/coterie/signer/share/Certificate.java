package io.coterie.signer.share;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.ledger.StatementSignature;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.trust.Roster;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The signatures of all parties of a session under the statement that they have stored their end of
 * it. Since a share that was stored is kept until a later one is used, whoever has a certificate
 * knows that every honest party of the session can follow it.
 *
 * @param signatures one of each party of the session, in ascending order of their ids
 */
public record Certificate(List<ByteString> signatures) {
  /** Bytes of one signature. */
  public static final int SIGNATURE_BYTES = StatementSignature.BYTES;

  public Certificate {
    signatures = List.copyOf(signatures);
  }

  /** Reads the result of {@link #bytes}. */
  public static Certificate parse(ByteString bytes) {
    List<ByteString> signatures = new ArrayList<>();
    for (int at = 0; at < bytes.size(); at += SIGNATURE_BYTES) {
      signatures.add(bytes.substring(at, at + SIGNATURE_BYTES));
    }
    return new Certificate(signatures);
  }

  /** All signatures, one after another. */
  public ByteString bytes() {
    return ByteString.copyFrom(signatures);
  }

  /**
   * The certificate that a peer shows.
   *
   * @param members the parties of the session, ascending
   * @return empty if it does not name exactly the parties of the session, in order
   */
  static Optional<Certificate> shown(List<EvidenceSignature> signatures, List<Integer> members) {
    return signatures.stream().map(EvidenceSignature::getParty).toList().equals(members)
        ? Optional.of(
            new Certificate(signatures.stream().map(EvidenceSignature::getSignature).toList()))
        : Optional.empty();
  }

  /**
   * Its signatures, each with the party that made it.
   *
   * @param members the parties of the session, ascending
   */
  List<EvidenceSignature> named(List<Integer> members) {
    List<EvidenceSignature> named = new ArrayList<>();
    for (int i = 0; i < signatures.size(); i++) {
      named.add(
          EvidenceSignature.newBuilder()
              .setParty(members.get(i))
              .setSignature(signatures.get(i))
              .build());
    }
    return named;
  }

  /**
   * Whether all parties of a session have signed that they stored their end of it.
   *
   * @param statement of any of them
   * @param members the parties of the session, ascending
   */
  boolean certifies(CompletedStatement statement, List<Integer> members, Roster roster) {
    if (signatures.size() != members.size()) {
      return false;
    }
    for (int i = 0; i < members.size(); i++) {
      if (!statement.isSignedBy(members.get(i), signatures.get(i), roster)) {
        return false;
      }
    }
    return true;
  }
}
