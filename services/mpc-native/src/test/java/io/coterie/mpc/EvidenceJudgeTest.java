package io.coterie.mpc;

import static io.coterie.mpc.NativeVaultTest.assertFails;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import java.nio.ByteBuffer;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.Signature;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class EvidenceJudgeTest {
  private static final int CHEAT = 2;
  private static final int HONEST = 1;

  private static LocalParties parties;
  private static KeyPair cheatsKey;
  private static SessionConfig config;

  /** Two messages of the honest party's, from two runs of the session. */
  private static byte[] first;

  private static byte[] second;

  @BeforeAll
  static void start() throws Exception {
    parties = new LocalParties(2);
    cheatsKey = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    byte[] spki = cheatsKey.getPublic().getEncoded();
    Party cheat =
        Party.newBuilder()
            .setId(CHEAT)
            .setEvidenceKey(ByteString.copyFrom(spki, spki.length - 32, 32))
            .build();
    config = parties.keygen(2).toBuilder().setParties(1, cheat).build();
    first = envelopeOfHonest();
    second = envelopeOfHonest();
  }

  @AfterAll
  static void close() {
    parties.close();
  }

  private static byte[] envelopeOfHonest() {
    try (MpcSession session = parties.start(HONEST, config, new byte[0])) {
      return session.firstStep().getOutgoing(0).getEnvelope().toByteArray();
    }
  }

  /** A commitment of the cheat's in the session of {@code first}: format in engine/envelope.rs. */
  private static byte[] commitment(int content, int run) throws Exception {
    byte[] body = new byte[32];
    Arrays.fill(body, (byte) content);
    return signed(1, body, run);
  }

  private static byte[] signed(int round, byte[] body, int run) throws Exception {
    byte[] nonce = new byte[16];
    Arrays.fill(nonce, (byte) run);
    byte[] head = Arrays.copyOf(first, 94);
    ByteBuffer.wrap(head)
        .put(35, (byte) round)
        .putShort(37, (short) CHEAT)
        .putInt(42, body.length)
        .put(46, nonce);
    Signature signature = Signature.getInstance("Ed25519");
    signature.initSign(cheatsKey.getPrivate());
    signature.update("coterie/envelope-signature/2".getBytes(US_ASCII));
    signature.update(head);
    signature.update(MessageDigest.getInstance("SHA-256").digest(body));
    byte[] signed = signature.sign();
    return ByteBuffer.allocate(94 + body.length + 64).put(head).put(body).put(signed).array();
  }

  /** An envelope's head, the hash of its body and its signature: engine/claim.rs. */
  private static byte[] header(byte[] envelope) throws Exception {
    byte[] body = Arrays.copyOfRange(envelope, 94, envelope.length - 64);
    return ByteBuffer.allocate(94 + 32 + 64)
        .put(envelope, 0, 94)
        .put(MessageDigest.getInstance("SHA-256").digest(body))
        .put(envelope, envelope.length - 64, 64)
        .array();
  }

  private static Accusation accusation(AbortCause cause, int accused, byte[]... evidence) {
    return Accusation.newBuilder()
        .setCause(cause)
        .setAccused(accused)
        .addAllEvidence(List.of(evidence).stream().map(ByteString::copyFrom).toList())
        .build();
  }

  private static Verdict verdict(AbortCause cause, int accused, byte[]... evidence) {
    return parties.core.judge(config, accusation(cause, accused, evidence));
  }

  @Test
  void two_messages_of_one_run_for_one_place_convict_their_sender_and_nobody_else()
      throws Exception {
    byte[] one = commitment(1, 9);
    byte[] other = commitment(2, 9);
    AbortCause cause = AbortCause.ABORT_CAUSE_EQUIVOCATION;
    assertThat(verdict(cause, CHEAT, one, other)).isEqualTo(Verdict.VERDICT_PROVEN);
    assertThat(verdict(cause, HONEST, one, other)).isEqualTo(Verdict.VERDICT_ANOTHER);
    assertThat(verdict(cause, CHEAT, one, one)).isEqualTo(Verdict.VERDICT_REFUTED);
    other[100] ^= 1;
    assertThat(verdict(cause, CHEAT, one, other)).isEqualTo(Verdict.VERDICT_REFUTED);
  }

  @Test
  void messages_of_two_runs_show_a_restart_and_no_deviation() throws Exception {
    AbortCause restarted = AbortCause.ABORT_CAUSE_PARTY_RESTARTED;
    byte[][] runs = {header(first), header(second)};
    assertThat(verdict(restarted, HONEST, runs)).isEqualTo(Verdict.VERDICT_RESTARTED);
    assertThat(verdict(restarted, CHEAT, runs)).isEqualTo(Verdict.VERDICT_REFUTED);
    assertThat(verdict(restarted, HONEST, runs[0])).isEqualTo(Verdict.VERDICT_REFUTED);
    assertThat(verdict(restarted, HONEST, runs[0], runs[0])).isEqualTo(Verdict.VERDICT_REFUTED);
    assertThat(verdict(restarted, HONEST, first, second)).isEqualTo(Verdict.VERDICT_REFUTED);
    runs[1][50] ^= 1;
    assertThat(verdict(restarted, HONEST, runs)).isEqualTo(Verdict.VERDICT_REFUTED);
    assertThat(verdict(AbortCause.ABORT_CAUSE_EQUIVOCATION, HONEST, first, second))
        .isEqualTo(Verdict.VERDICT_REFUTED);
  }

  @Test
  void a_word_that_ended_the_session_names_who_said_it() throws Exception {
    AbortCause internal = AbortCause.ABORT_CAUSE_INTERNAL;
    // A notice without accused and evidence: engine/notice.rs.
    byte[] word = signed(255, new byte[] {1, 0, 0, 0, 0}, 9);
    assertThat(verdict(internal, CHEAT, word)).isEqualTo(Verdict.VERDICT_TOLD);
    assertThat(verdict(internal, HONEST, word)).isEqualTo(Verdict.VERDICT_REFUTED);
    assertThat(verdict(AbortCause.ABORT_CAUSE_DEGENERATE_KEY, CHEAT, word))
        .isEqualTo(Verdict.VERDICT_REFUTED);
    word[110] ^= 1;
    assertThat(verdict(internal, CHEAT, word)).isEqualTo(Verdict.VERDICT_REFUTED);
  }

  @Test
  void evidence_of_another_session_or_of_none_shows_nothing() throws Exception {
    SessionConfig other =
        config.toBuilder().setSessionId(ByteString.copyFrom(parties.bytes(32))).build();
    Accusation accusation =
        accusation(AbortCause.ABORT_CAUSE_EQUIVOCATION, CHEAT, commitment(1, 9), commitment(2, 9));
    assertThat(parties.core.judge(other, accusation)).isEqualTo(Verdict.VERDICT_REFUTED);
    assertThat(verdict(AbortCause.ABORT_CAUSE_WRONG_SHARE, CHEAT, new byte[] {1, 2, 3}))
        .isEqualTo(Verdict.VERDICT_REFUTED);
    assertThat(verdict(AbortCause.ABORT_CAUSE_WRONG_SHARE, 77, first))
        .isEqualTo(Verdict.VERDICT_REFUTED);
    byte[][] many = new byte[500][];
    Arrays.fill(many, first);
    assertThat(verdict(AbortCause.ABORT_CAUSE_EQUIVOCATION, CHEAT, many))
        .isEqualTo(Verdict.VERDICT_REFUTED);
  }

  @Test
  void arguments_that_describe_no_accusation_are_refused() {
    Accusation sound = accusation(AbortCause.ABORT_CAUSE_WRONG_SHARE, CHEAT, first);
    assertFails(
        MpcException.Reason.INVALID_ARGUMENT,
        () -> parties.core.judge(config, sound.toBuilder().setCauseValue(999).build()));
    assertFails(
        MpcException.Reason.SETUP_REFUSED,
        () -> parties.core.judge(config, sound.toBuilder().setAccused(0).build()));
    assertFails(
        MpcException.Reason.SETUP_REFUSED,
        () -> parties.core.judge(config.toBuilder().setSelf(1).build(), sound));
    assertFails(
        MpcException.Reason.SETUP_REFUSED,
        () -> parties.core.judge(config.toBuilder().setThreshold(0).build(), sound));
    // Messages of a signing are not signed, so there is nothing to judge.
    SessionConfig signing = config.toBuilder().setProtocol(ProtocolId.PROTOCOL_ID_BLS_SIGN).build();
    assertFails(MpcException.Reason.SETUP_REFUSED, () -> parties.core.judge(signing, sound));
    SessionConfig refresh =
        config.toBuilder().setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_REFRESH).build();
    assertFails(MpcException.Reason.SETUP_REFUSED, () -> parties.core.judge(refresh, sound));
  }
}
