package io.coterie.signer.share;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.share.ShareAgreement.Report;
import io.coterie.signer.share.ShareAgreement.Verdict;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** A share becomes active when every party has signed the same, and not before. */
class ShareAgreementTest {
  private static final String KEY = "keys/treasury";
  private static final int SELF = 2;
  private static final ByteString INTENT = ByteString.copyFrom(new byte[32]);

  private static ByteString signatureOf(int party) {
    return ByteString.copyFrom(new byte[] {(byte) party});
  }

  private static KeyPublic keyPublic(int epoch, String publicKey) {
    return KeyPublic.newBuilder()
        .setKeyId(KEY)
        .setThreshold(2)
        .setEpoch(epoch)
        .setPublicKey(ByteString.copyFromUtf8(publicKey))
        .build();
  }

  private static KeyShare share(int epoch) {
    return new KeyShare(
        KEY,
        epoch,
        Scheme.SCHEME_BLS12381,
        KeyShare.State.PROVISIONAL,
        List.of(1, 2, 3),
        List.of(1, 2, 3),
        keyPublic(epoch, "ours"),
        ByteString.copyFromUtf8("share"),
        new KeyShare.Origin(
            new SessionId(ByteString.copyFrom(new byte[32])),
            "coordinator",
            "wallet",
            "request",
            INTENT),
        null);
  }

  private static Report report(int party, int epoch, String publicKey) {
    return new Report(keyPublic(epoch, publicKey), INTENT, signatureOf(party));
  }

  private static Verdict verdict(int epoch, Map<Integer, Report> reports, boolean newerRuns) {
    return new ShareAgreement(share(epoch), SELF, signatureOf(SELF), reports, newerRuns).verdict();
  }

  @Test
  void all_parties_agree_and_the_certificate_has_their_signatures_in_order() {
    assertThat(verdict(1, Map.of(3, report(3, 1, "ours"), 1, report(1, 1, "ours")), false))
        .isEqualTo(
            new Verdict.Agreed(
                new Certificate(List.of(signatureOf(1), signatureOf(2), signatureOf(3)))));
  }

  @Test
  void missing_report_leaves_it_open() {
    assertThat(verdict(1, Map.of(1, report(1, 1, "ours")), false)).isEqualTo(new Verdict.Open());
  }

  @Test
  void report_of_another_party_stands_in_for_nobody() {
    assertThat(
            verdict(
                1,
                Map.of(1, report(1, 1, "ours"), 4, report(4, 1, "ours"), 2, report(2, 1, "ours")),
                false))
        .isEqualTo(new Verdict.Open());
  }

  @Test
  void party_that_signed_another_key_or_epoch_is_named() {
    assertThat(verdict(1, Map.of(1, report(1, 1, "ours"), 3, report(3, 1, "other")), false))
        .isEqualTo(new Verdict.Contradicted(3));
    assertThat(verdict(2, Map.of(1, report(1, 1, "ours"), 3, report(3, 2, "ours")), false))
        .isEqualTo(new Verdict.Contradicted(1));
  }

  @Test
  void party_that_signed_another_intent_is_named() {
    Report other = new Report(keyPublic(1, "ours"), ByteString.copyFromUtf8("x"), signatureOf(3));
    assertThat(verdict(1, Map.of(1, report(1, 1, "ours"), 3, other), false))
        .isEqualTo(new Verdict.Contradicted(3));
  }

  @Test
  void newer_run_holds_back_a_new_key_and_no_later_epoch() {
    assertThat(verdict(1, Map.of(1, report(1, 1, "ours"), 3, report(3, 1, "ours")), true))
        .isEqualTo(new Verdict.Open());
    assertThat(verdict(2, Map.of(1, report(1, 2, "ours"), 3, report(3, 2, "ours")), true))
        .isInstanceOf(Verdict.Agreed.class);
  }
}
