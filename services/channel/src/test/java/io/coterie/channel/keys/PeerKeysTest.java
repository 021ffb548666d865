package io.coterie.channel.keys;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.keys.PeerKeys.Departing;
import io.coterie.channel.keys.PeerKeys.Heard;
import io.coterie.channel.keys.PeerKeys.Next;
import io.coterie.channel.wire.Frame;
import io.coterie.trust.Member;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.SessionBuilder;
import org.signal.libsignal.protocol.state.KyberPreKeyRecord;
import org.signal.libsignal.protocol.state.PreKeyBundle;
import org.signal.libsignal.protocol.state.SignedPreKeyRecord;

/** The key exchange between two members by calls alone: no network, and a clock of the test. */
class PeerKeysTest {
  private static final ChannelConfig CONFIG =
      ChannelConfig.of(URI.create("https://none"), "", new byte[33]);
  private static final long MILLISECOND = Duration.ofMillis(1).toNanos();
  private static final long HELLO_MIN = CONFIG.timing().helloMin().toNanos();

  /** One process of a member. */
  private static final class Side {
    final IdentityKeyPair identity;
    final Member member;
    final ProtocolStore store;
    final SenderKeyRotation own;
    final long incarnation;
    AccessKey access = AccessKey.random();
    PeerKeys peer;

    Side(int partyId, IdentityKeyPair identity, UUID aci, long incarnation, long now) {
      this.identity = identity;
      this.incarnation = incarnation;
      byte[] key = identity.getPublicKey().serialize();
      member =
          new Member("p" + partyId, Member.Role.PARTY, partyId, "test", aci, 1, key, new byte[32]);
      store = new ProtocolStore(identity, partyId);
      own = new SenderKeyRotation(store, ProtocolStore.address(member), CONFIG, now);
    }

    void meet(Side other, long now) {
      store.pin(ProtocolStore.address(other.member), other.identity.getPublicKey());
      peer =
          new PeerKeys(other.member, store, own, () -> access, incarnation, CONFIG.timing(), now);
    }

    /** Opens a session with keys of the other side, as the messaging service hands them out. */
    void openSession(Side other) throws Exception {
      SignedPreKeyRecord signed = PreKeys.signed(1, other.identity.getPrivateKey());
      KyberPreKeyRecord kyber = PreKeys.kyber(2, other.identity.getPrivateKey());
      other.store.storeSignedPreKey(1, signed);
      other.store.storeLastResort(2, kyber);
      PreKeyBundle bundle =
          new PreKeyBundle(
              other.store.getLocalRegistrationId(),
              1,
              PreKeyBundle.NULL_PRE_KEY_ID,
              null,
              1,
              signed.getKeyPair().getPublicKey(),
              signed.getSignature(),
              other.identity.getPublicKey(),
              2,
              kyber.getKeyPair().getPublicKey(),
              kyber.getSignature());
      new SessionBuilder(store, ProtocolStore.address(other.member)).process(bundle);
    }

    /** Sends the hello that is due, opening a session for it if it wants one. */
    Frame.Hello hello(Side to, long now) throws Exception {
      Next next = peer.nextHello(now);
      assertThat(next).isNotEqualTo(Next.NOTHING);
      if (next == Next.UNDER_FRESH_SESSION) {
        openSession(to);
      }
      Departing departing = peer.depart(now);
      peer.accepted(departing);
      peer.ended(next, null, now);
      return departing.hello();
    }
  }

  private long now = 1_000_000_000L;
  private Side a;
  private Side b;

  @BeforeEach
  void makeSides() {
    a = new Side(1, IdentityKeyPair.generate(), UUID.randomUUID(), 11, now);
    b = new Side(2, IdentityKeyPair.generate(), UUID.randomUUID(), 12, now);
    a.meet(b, now);
    b.meet(a, now);
  }

  private static Frame.Hello hello(long incarnation, long sequence) {
    return new Frame.Hello(incarnation, sequence, true, true, new byte[16], List.of(), List.of());
  }

  private void establish() throws Exception {
    b.peer.heard(a.hello(b, now));
    a.peer.heard(b.hello(a, now));
    b.peer.heard(a.hello(b, now));
    assertThat(a.peer.established()).isTrue();
    assertThat(b.peer.established()).isTrue();
  }

  @Test
  void both_sides_are_established_after_three_hellos_and_then_silent() throws Exception {
    assertThat(a.peer.offered()).isFalse();
    Frame.Hello first = a.hello(b, now);
    assertThat(first.distributions()).hasSize(1);
    assertThat(first.confirm()).isTrue();
    assertThat(a.peer.offered()).isTrue();
    assertThat(a.peer.established()).isFalse();

    assertThat(b.peer.heard(first)).isEqualTo(new Heard(true, true));
    Frame.Hello answer = b.hello(a, now);
    assertThat(answer.holds()).containsExactly(a.own.current().id());
    assertThat(a.peer.heard(answer)).isEqualTo(new Heard(true, true));
    assertThat(a.peer.established()).isTrue();
    assertThat(b.peer.established()).isFalse();

    b.peer.heard(a.hello(b, now));
    assertThat(b.peer.established()).isTrue();
    now += HELLO_MIN * 60;
    assertThat(a.peer.nextHello(now)).isEqualTo(Next.NOTHING);
  }

  @Test
  void peer_is_reachable_while_it_is_heard_of() throws Exception {
    establish();
    assertThat(a.peer.reachable(now)).isFalse();
    a.peer.alive(now);
    long silence = CONFIG.timing().heartbeat().toNanos() * PeerKeys.SILENCE;
    assertThat(a.peer.reachable(now + silence - 1)).isTrue();
    assertThat(a.peer.reachable(now + silence)).isFalse();
  }

  @Test
  void hello_that_had_no_answer_waits_longer_each_time_and_then_opens_a_fresh_session()
      throws Exception {
    a.hello(b, now);
    long pause = HELLO_MIN;
    List<Next> sent = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      // Up to a quarter is taken off at random.
      assertThat(a.peer.nextHello(now + pause * 3 / 4 - MILLISECOND)).isEqualTo(Next.NOTHING);
      now += pause;
      Next next = a.peer.nextHello(now);
      sent.add(next);
      a.peer.accepted(a.peer.depart(now));
      a.peer.ended(next, null, now);
      pause *= 2;
    }
    assertThat(sent)
        .containsExactly(Next.UNDER_SESSION, Next.UNDER_FRESH_SESSION, Next.UNDER_SESSION);
  }

  @Test
  void one_hello_is_in_flight_at_a_time() {
    assertThat(a.peer.nextHello(now)).isEqualTo(Next.UNDER_FRESH_SESSION);
    assertThat(a.peer.nextHello(now)).isEqualTo(Next.NOTHING);
    assertThat(a.peer.ended(Next.UNDER_FRESH_SESSION, null, now)).isTrue();
  }

  @Test
  void lost_hello_is_made_up_for_and_its_cause_is_kept() throws Exception {
    establish();
    a.peer.heard(hello(12, 9));
    Next next = a.peer.nextHello(now);
    Departing lost = a.peer.depart(now);
    assertThat(lost.confirming()).isTrue();
    assertThat(lost.handing()).isTrue();
    a.peer.lost(lost);
    a.peer.ended(next, new ChannelException(Cause.UNAVAILABLE, "test"), now);
    assertThat(a.peer.lastFailure()).isEqualTo(Cause.UNAVAILABLE);
    // Urgent, but not before the pause after a failure.
    assertThat(a.peer.nextHello(now)).isEqualTo(Next.NOTHING);
    now += HELLO_MIN;
    assertThat(a.hello(b, now).distributions()).hasSize(1);
    assertThat(a.peer.lastFailure()).isNull();
  }

  @Test
  void restarted_peer_is_greeted_anew_and_keys_of_its_process_before_are_forgotten()
      throws Exception {
    establish();
    Side restarted = new Side(2, b.identity, b.member.aci(), 13, now);
    restarted.meet(a, now);
    Heard heard = a.peer.heard(restarted.hello(a, now));
    assertThat(heard).isEqualTo(new Heard(true, true));
    assertThat(a.store.senderKeys(ProtocolStore.address(b.member)))
        .containsExactly(restarted.own.current().id());
    assertThat(a.peer.established()).isFalse();
    assertThat(a.peer.offered()).isFalse();
    assertThat(a.hello(restarted, now).distributions()).hasSize(1);
  }

  @Test
  void old_hello_of_the_same_process_changes_nothing() throws Exception {
    establish();
    assertThat(a.peer.heard(hello(12, 1))).isEqualTo(new Heard(false, false));
    assertThat(a.peer.established()).isTrue();
    assertThat(a.peer.nextHello(now)).isEqualTo(Next.NOTHING);
  }

  @Test
  void farewell_counts_for_the_process_that_said_it() throws Exception {
    establish();
    a.peer.heard(new Frame.Farewell(99));
    assertThat(a.peer.established()).isTrue();
    a.peer.heard(new Frame.Farewell(12));
    assertThat(a.peer.established()).isFalse();
    assertThat(a.peer.offered()).isTrue();
  }

  @Test
  void broken_session_is_replaced_and_not_again_within_the_pause() throws Exception {
    establish();
    now += HELLO_MIN * 60;
    a.peer.brokenSession(now);
    assertThat(a.peer.nextHello(now)).isEqualTo(Next.UNDER_FRESH_SESSION);
    a.peer.accepted(a.peer.depart(now));
    a.peer.ended(Next.UNDER_FRESH_SESSION, null, now);
    a.peer.heard(
        new Frame.Hello(
            12,
            9,
            false,
            false,
            new byte[16],
            List.of(a.own.current().id()),
            List.of(b.own.current().distribution())));
    a.peer.brokenSession(now + MILLISECOND);
    assertThat(a.peer.nextHello(now + MILLISECOND)).isNotEqualTo(Next.UNDER_FRESH_SESSION);
  }

  @Test
  void asking_peer_cannot_make_hellos_flood() throws Exception {
    establish();
    int sent = 0;
    for (int i = 0; i < 100; i++) {
      a.peer.heard(hello(12, 10 + i));
      Next next = a.peer.nextHello(now);
      if (next != Next.NOTHING) {
        a.peer.accepted(a.peer.depart(now));
        a.peer.ended(next, null, now);
        sent++;
      }
    }
    assertThat(sent).isLessThanOrEqualTo(HelloPacer.BURST);
    now += HelloPacer.REFILL.toNanos();
    assertThat(a.peer.nextHello(now)).isNotEqualTo(Next.NOTHING);
  }

  /** A peer names four keys of its own invention in each of many hellos. */
  @Test
  void keys_that_were_never_made_are_not_remembered() {
    UUID ours = a.own.current().id();
    List<UUID> invented = new ArrayList<>();
    for (int i = 1; i <= 100; i++) {
      List<UUID> holds = new ArrayList<>(List.of(ours));
      Stream.generate(UUID::randomUUID).limit(3).forEach(holds::add);
      invented.addAll(holds.subList(1, 4));
      a.peer.heard(new Frame.Hello(7, i, false, false, new byte[16], holds, List.of()));
    }
    assertThat(a.peer.holds(ours)).isTrue();
    assertThat(invented).noneMatch(a.peer::holds);
  }

  @Test
  void unreadable_sender_key_is_no_key() {
    Heard heard =
        a.peer.heard(
            new Frame.Hello(
                12, 1, false, false, new byte[16], List.of(), List.of(new byte[] {1, 2, 3})));
    assertThat(heard.learned()).isFalse();
  }

  @Test
  void following_key_is_used_once_it_is_confirmed_or_its_time_is_up() throws Exception {
    establish();
    UUID first = a.own.current().id();
    a.own.prepare(now);
    a.peer.newOwnKey(now);
    assertThat(a.own.tick(now, a.peer::holds)).isFalse();
    assertThat(a.own.current().id()).isEqualTo(first);
    Frame.Hello offer = a.hello(b, now);
    assertThat(offer.distributions()).hasSize(1);
    b.peer.heard(offer);
    a.peer.heard(b.hello(a, now));
    a.own.tick(now, a.peer::holds);
    UUID second = a.own.current().id();
    assertThat(second).isNotEqualTo(first);

    a.own.prepare(now);
    now += CONFIG.timing().rotation().toNanos();
    a.own.tick(now, key -> false);
    assertThat(a.own.current().id()).isNotEqualTo(second);
  }

  @Test
  void worn_key_is_followed_by_another() {
    now += CONFIG.timing().senderKeyAge().toNanos();
    assertThat(a.own.tick(now, key -> true)).isTrue();
    assertThat(a.own.offered()).hasSize(2);
  }

  @Test
  void key_that_is_replaced_before_its_use_is_forgotten() {
    UUID current = a.own.current().id();
    for (int i = 0; i < 5; i++) {
      a.own.prepare(now);
    }
    assertThat(a.store.senderKeys(ProtocolStore.address(a.member))).hasSize(2).contains(current);
  }

  @Test
  void access_keys_are_told_in_hellos() throws Exception {
    assertThat(a.peer.access()).isEmpty();
    establish();
    assertThat(a.peer.access()).contains(b.access);
    assertThat(b.peer.access()).contains(a.access);
  }

  @Test
  void refused_access_key_is_asked_for_until_the_peer_tells_one() throws Exception {
    establish();
    now += HELLO_MIN * 60;
    a.peer.forgetAccess(AccessKey.random());
    assertThat(a.peer.access()).as("another was refused").contains(b.access);

    a.peer.forgetAccess(b.access);
    assertThat(a.peer.access()).isEmpty();
    assertThat(a.peer.accessRefused()).isTrue();
    assertThat(a.peer.established()).isFalse();
    assertThat(a.peer.offered()).as("a broadcast reaches the others").isTrue();
    Frame.Hello question = a.hello(b, now);
    assertThat(question.confirm()).isTrue();
    assertThat(a.peer.nextHello(now)).isEqualTo(Next.NOTHING);
    now += HELLO_MIN * 2;
    assertThat(a.hello(b, now).confirm()).as("the first one had no answer").isTrue();

    b.access = AccessKey.random();
    b.peer.heard(question);
    a.peer.heard(b.hello(a, now));
    assertThat(a.peer.access()).contains(b.access);
    assertThat(a.peer.accessRefused()).isFalse();
    assertThat(a.peer.established()).isTrue();
    assertThat(a.peer.nextHello(now + HELLO_MIN * 60)).isEqualTo(Next.NOTHING);
  }

  @Test
  void another_own_access_key_is_told_once() throws Exception {
    establish();
    a.access = AccessKey.random();
    a.peer.newOwnKey(now);
    b.peer.heard(a.hello(b, now));
    assertThat(b.peer.access()).contains(a.access);
    assertThat(a.peer.nextHello(now + HELLO_MIN * 60)).isEqualTo(Next.NOTHING);
  }

  @Test
  void access_key_in_an_old_hello_is_not_taken() throws Exception {
    establish();
    a.peer.heard(hello(12, 1));
    assertThat(a.peer.access()).contains(b.access);
  }
}
