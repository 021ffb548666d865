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

  /** The statement of a party that it has stored this share. */
  static CompletedStatement statement(Roster roster, KeyShare share) {
    return CompletedStatement.stored(
        roster.installation(),
        share.session().bytes(),
        share.keyPublic(),
        share.origin().intentDigest());
  }

  /**
   * The certificate that a peer shows for a share of this party.
   *
   * @return empty if it does not name exactly the parties of the session, in order
   */
  static Optional<Certificate> shown(List<EvidenceSignature> signatures, KeyShare share) {
    return signatures.stream().map(EvidenceSignature::getParty).toList().equals(share.members())
        ? Optional.of(
            new Certificate(signatures.stream().map(EvidenceSignature::getSignature).toList()))
        : Optional.empty();
  }

  /** Its signatures, each with the party of the share's session that made it. */
  List<EvidenceSignature> named(KeyShare share) {
    List<EvidenceSignature> named = new ArrayList<>();
    for (int i = 0; i < signatures.size(); i++) {
      named.add(
          EvidenceSignature.newBuilder()
              .setParty(share.members().get(i))
              .setSignature(signatures.get(i))
              .build());
    }
    return named;
  }

  /** Whether it is one of a stored share: of its session, public data and parties. */
  public boolean certifies(KeyShare share, Roster roster) {
    List<Integer> members = share.members();
    if (signatures.size() != members.size()) {
      return false;
    }
    CompletedStatement statement = statement(roster, share);
    for (int i = 0; i < members.size(); i++) {
      if (!statement.isSignedBy(members.get(i), signatures.get(i), roster)) {
        return false;
      }
    }
    return true;
  }
}
