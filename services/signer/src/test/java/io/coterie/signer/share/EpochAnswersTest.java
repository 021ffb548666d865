package io.coterie.signer.share;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.CurrentStatement;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.party.v1.EpochAnswer;
import io.coterie.proto.party.v1.EpochQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.TestEvidence;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Which questions a party answers, and with what. */
class EpochAnswersTest {
  private static final String KEY = "keys/treasury";
  private static final int SELF = 1;
  private static final ByteString CHALLENGE = bytes(7);

  private final Member self = member("alpha", Member.Role.PARTY, SELF);
  private final Member peer = member("bravo", Member.Role.PARTY, 2);
  private final Member coordinator = member("coordinator", Member.Role.COORDINATOR, 0);
  private final Member another = member("coordinator-2", Member.Role.COORDINATOR, 0);
  private final Roster roster = new Roster("test", 1, List.of(self, peer, coordinator, another));
  private final MemoryShares shares = new MemoryShares();
  private final List<EpochAnswer> sent = new ArrayList<>();
  private final List<Member> recipients = new ArrayList<>();
  private final List<String> dropped = new ArrayList<>();
  private int signatures;
  private long nowNanos;

  private final EpochAnswers answers =
      new EpochAnswers(new Net(), shares, new Core(), Runnable::run, dropped::add, () -> nowNanos);

  private static ByteString bytes(int value) {
    byte[] bytes = new byte[32];
    bytes[0] = (byte) value;
    return ByteString.copyFrom(bytes);
  }

  private static Member member(String name, Member.Role role, int id) {
    return new Member(
        name,
        role,
        id,
        "here",
        UUID.randomUUID(),
        1,
        new byte[33],
        id == 0 ? new byte[0] : TestEvidence.publicKey(id));
  }

  private final class Net implements PartyNetwork {
    @Override
    public Roster roster() {
      return roster;
    }

    @Override
    public Member self() {
      return self;
    }

    @Override
    public Set<Member> reachable() {
      return Set.of();
    }

    @Override
    public void broadcast(
        Collection<Member> to, PartyMessage message, @Nullable String traceparent) {
      throw new AssertionError("an answer is for one coordinator");
    }

    @Override
    public void send(Member recipient, PartyMessage message, @Nullable String traceparent) {
      recipients.add(recipient);
      sent.add(message.getEpochAnswer());
    }
  }

  private final class Core implements ProtocolCore {
    @Override
    public Run start(SessionConfig config, ByteString sealedShare) {
      throw new AssertionError("nothing runs");
    }

    @Override
    public ByteString signStatement(ByteString statement) {
      signatures++;
      assertThat(statement.startsWith(ByteString.copyFromUtf8("coterie/current/1"))).isTrue();
      return TestEvidence.sign(SELF, statement);
    }
  }

  private static KeyShare share(String key, KeyShare.State state, String sealed) {
    return new KeyShare(
        key,
        3,
        Scheme.SCHEME_BLS12381,
        state,
        List.of(1, 2),
        List.of(1, 2),
        KeyPublic.newBuilder()
            .setKeyId(key)
            .setEpoch(3)
            .setThreshold(2)
            .setPublicKey(ByteString.copyFromUtf8("public"))
            .build(),
        ByteString.copyFromUtf8(sealed),
        new KeyShare.Origin(new SessionId(bytes(1)), "coordinator", "wallet", "1", bytes(2)),
        null);
  }

  private void ask(Member sender, String key, ByteString challenge) {
    answers.asked(sender, EpochQuestion.newBuilder().setKey(key).setChallenge(challenge).build());
  }

  @Test
  void a_coordinator_gets_the_epoch_signed_for_that_challenge_and_key() {
    KeyShare share = share(KEY, KeyShare.State.ACTIVE, "sealed");
    shares.put(share);
    ask(another, KEY, CHALLENGE);
    assertThat(recipients).containsExactly(another);
    EpochAnswer answer = sent.getFirst();
    assertThat(answer.getKey()).isEqualTo(KEY);
    assertThat(answer.getChallenge()).isEqualTo(CHALLENGE);
    ByteString fingerprint = KeyFingerprint.of(share.keyPublic());
    assertThat(answer.getStatement().getEpoch()).isEqualTo(3);
    assertThat(
            CurrentStatement.isSigned(roster, KEY, fingerprint, answer.getStatement(), CHALLENGE))
        .isTrue();
    assertThat(CurrentStatement.isSigned(roster, KEY, fingerprint, answer.getStatement(), bytes(8)))
        .isFalse();
    assertThat(
            CurrentStatement.isSigned(
                roster, "keys/other", fingerprint, answer.getStatement(), CHALLENGE))
        .isFalse();
  }

  @Test
  void nothing_is_signed_that_is_no_question_of_a_coordinator_about_a_key() {
    shares.put(share(KEY, KeyShare.State.ACTIVE, "sealed"));
    ask(peer, KEY, CHALLENGE);
    for (int length : new int[] {0, 1, 31, 33, 64, 100_000}) {
      ask(coordinator, KEY, ByteString.copyFrom(new byte[length]));
    }
    for (String name : List.of("", "treasury", "keys/", "keys/A", "keys/treasury\0", KEY + "/x")) {
      ask(coordinator, name, CHALLENGE);
    }
    assertThat(sent).isEmpty();
    assertThat(signatures).isZero();
    assertThat(dropped).hasSize(13).containsOnly("unacceptable");
  }

  @Test
  void a_share_that_is_not_used_is_not_spoken_of() {
    shares.put(share(KEY, KeyShare.State.PROVISIONAL, "sealed"));
    shares.put(share("keys/left", KeyShare.State.ACTIVE, ""));
    for (String key : List.of(KEY, "keys/left", "keys/unknown")) {
      ask(coordinator, key, CHALLENGE);
    }
    assertThat(sent).isEmpty();
    assertThat(signatures).isZero();
  }

  @Test
  void a_share_that_takes_the_place_of_the_one_that_was_read_shows_in_the_flag() {
    KeyShare share = share(KEY, KeyShare.State.ACTIVE, "sealed");
    MemoryShares changing =
        new MemoryShares() {
          private boolean read;

          @Override
          public synchronized Optional<KeyShare> find(String key) {
            read = true;
            return Optional.of(share);
          }

          @Override
          public boolean keepsAnother(KeyShare kept) {
            return read;
          }
        };
    new EpochAnswers(new Net(), changing, new Core(), Runnable::run, dropped::add, () -> nowNanos)
        .asked(coordinator, EpochQuestion.newBuilder().setKey(KEY).setChallenge(CHALLENGE).build());
    EpochStatement statement = sent.getFirst().getStatement();
    assertThat(statement.getUndecided()).isTrue();
    ByteString fingerprint = KeyFingerprint.of(share.keyPublic());
    assertThat(CurrentStatement.isSigned(roster, KEY, fingerprint, statement, CHALLENGE)).isTrue();
    assertThat(
            CurrentStatement.isSigned(
                roster,
                KEY,
                fingerprint,
                statement.toBuilder().setUndecided(false).build(),
                CHALLENGE))
        .isFalse();
  }

  @Test
  void each_coordinator_gets_so_many_answers_a_second_and_no_more() {
    shares.put(share(KEY, KeyShare.State.ACTIVE, "sealed"));
    for (int i = 0; i < 2 * EpochAnswers.BURST; i++) {
      ask(coordinator, KEY, CHALLENGE);
    }
    assertThat(signatures).isEqualTo(EpochAnswers.BURST);
    assertThat(dropped).hasSize(EpochAnswers.BURST).containsOnly("asked_too_often");
    ask(another, KEY, CHALLENGE);
    assertThat(recipients.getLast()).isEqualTo(another);
    nowNanos += 1_000_000_000;
    for (int i = 0; i < 2 * EpochAnswers.PER_SECOND; i++) {
      ask(coordinator, KEY, CHALLENGE);
    }
    assertThat(signatures).isEqualTo(EpochAnswers.BURST + 1 + EpochAnswers.PER_SECOND);
  }
}
