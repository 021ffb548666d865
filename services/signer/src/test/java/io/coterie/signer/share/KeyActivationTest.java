package io.coterie.signer.share;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.FakeCore;
import io.coterie.signer.TestEvidence;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Reports of peers about shares, while nobody looks at them. */
class KeyActivationTest {
  private static final SessionId SESSION = new SessionId(ByteString.copyFrom(new byte[32]));
  private static final SessionId OTHER_SESSION = new SessionId(ByteString.fromHex("01".repeat(32)));

  private final Member alpha = party("alpha", 1);
  private final Member bravo = party("bravo", 2);
  private final Member charlie = party("charlie", 3);
  private final Queue<Runnable> lane = new ArrayDeque<>();
  private final MemoryShares shares = new MemoryShares();
  private final Member coordinator =
      new Member(
          "coordinator",
          Member.Role.COORDINATOR,
          0,
          "here",
          new UUID(2, 0),
          1,
          new byte[33],
          new byte[0]);
  private final List<KeyShare> active = new ArrayList<>();
  private final List<PartyMessage> sent = new ArrayList<>();
  private Set<Member> reachable = Set.of();
  private final KeyActivation activation =
      new KeyActivation(
          new Net(),
          shares,
          lane::add,
          new FakeCore().of(1),
          () -> 0,
          _ -> {},
          (share, _) -> active.add(share));

  private static Member party(String name, int id) {
    return new Member(
        name,
        Member.Role.PARTY,
        id,
        "here",
        new UUID(1, id),
        1,
        new byte[33],
        TestEvidence.publicKey(id));
  }

  private final class Net implements PartyNetwork {
    @Override
    public Roster roster() {
      return new Roster("test", 1, List.of(alpha, bravo, charlie, coordinator));
    }

    @Override
    public Member self() {
      return alpha;
    }

    @Override
    public Set<Member> reachable() {
      return reachable;
    }

    @Override
    public void broadcast(
        Collection<Member> recipients, PartyMessage message, @Nullable String traceparent) {
      sent.add(message);
    }

    @Override
    public void send(Member recipient, PartyMessage message, @Nullable String traceparent) {
      sent.add(message);
    }
  }

  @Test
  void a_peer_that_floods_with_reports_keeps_those_of_no_other_out() {
    for (int i = 0; i < KeyActivation.MAX_WAITING_REPORTS; i++) {
      assertThat(activation.declined(bravo, SESSION)).isTrue();
    }
    assertThat(activation.declined(bravo, SESSION)).isFalse();
    assertThat(activation.declined(charlie, SESSION)).isTrue();
    lane.forEach(Runnable::run);
    assertThat(activation.declined(bravo, SESSION)).as("they were looked at").isTrue();
  }

  /** To say that this party has stored it would be a lie now. */
  @Test
  void of_a_share_that_its_operator_has_had_destroyed_nothing_is_said() {
    shares.put(share(SESSION, 2));
    activation.resume();
    runAll();
    shares.put(share(OTHER_SESSION, 1));
    activation.forgotten("keys/other");
    activation.forgotten("keys/hot");
    reachable = Set.of(bravo, charlie);
    activation.tick(0);
    runAll();
    activation.stored(share(SESSION, 2));
    runAll();
    assertThat(sent).isEmpty();
  }

  @Test
  void a_share_that_is_gone_before_it_is_announced_keeps_no_other_one_of_the_name_back() {
    activation.expect(plan(SESSION));
    activation.stored(share(SESSION, 1));
    runAll();
    KeyShare later = share(OTHER_SESSION, 1);
    shares.put(later);
    activation.stored(later);
    reported(bravo, later);
    reported(charlie, later);
    runAll();
    assertThat(shares.find("keys/hot").orElseThrow().state()).isEqualTo(KeyShare.State.ACTIVE);
  }

  @Test
  void a_later_share_that_waited_for_a_share_that_is_gone_is_activated() {
    activation.expect(plan(SESSION));
    KeyShare later = share(OTHER_SESSION, 1);
    shares.put(later);
    activation.stored(later);
    reported(bravo, later);
    reported(charlie, later);
    runAll();
    assertThat(shares.find("keys/hot").orElseThrow().state()).isEqualTo(KeyShare.State.PROVISIONAL);
    activation.stored(share(SESSION, 1));
    runAll();
    assertThat(shares.find("keys/hot").orElseThrow().state()).isEqualTo(KeyShare.State.ACTIVE);
  }

  /** The others wait for it. */
  @Test
  void a_refresh_whose_share_is_gone_before_it_is_announced_is_declined() {
    activation.expect(plan(SESSION));
    activation.stored(share(SESSION, 2));
    reported(bravo, share(SESSION, 2));
    runAll();
    assertThat(sent).containsExactly(PartyNetwork.declined(SESSION));
    assertThat(shares.declined).containsExactly(SESSION);
  }

  @Test
  void a_share_is_announced_even_if_the_store_cannot_be_read() {
    shares.put(share(SESSION, 1));
    shares.unreadable = true;
    activation.stored(share(SESSION, 1));
    runAll();
    assertThat(sent).hasSize(1);
  }

  @Test
  void a_share_that_is_gone_when_it_has_become_active_is_not_said_to_be_used() {
    KeyShare share = share(SESSION, 1);
    shares.put(share);
    activation.stored(share);
    reported(bravo, share);
    reported(charlie, share);
    while (shares.find("keys/hot").orElseThrow().state() != KeyShare.State.ACTIVE) {
      lane.remove().run();
    }
    forget(share);
    runAll();
    assertThat(sent).isEmpty();
    assertThat(active).isEmpty();
  }

  @Test
  void nothing_is_said_again_of_a_share_that_is_gone() {
    KeyShare share = share(SESSION, 2);
    shares.put(share);
    forget(share);
    activation.announceAgain(share, coordinator);
    activation.tellAgain(share, coordinator);
    activation.askAbout(share);
    runAll();
    assertThat(sent).isEmpty();
  }

  @Test
  void a_share_that_is_gone_when_it_is_abandoned_is_not_announced() {
    KeyShare share = share(SESSION, 2);
    shares.put(share);
    activation.stored(share);
    activation.declined(bravo, SESSION);
    while (shares.find("keys/hot").isPresent()) {
      lane.remove().run();
    }
    forget(share);
    runAll();
    assertThat(sent).isEmpty();
  }

  private void forget(KeyShare share) {
    shares.forget(share.key(), KeyFingerprint.of(share.keyPublic()));
    sent.clear();
  }

  private void reported(Member peer, KeyShare share) {
    activation.reported(
        peer, share.session(), TestEvidence.completed(peer.partyId(), share).getCompleted());
  }

  private SessionPlan plan(SessionId session) {
    return new SessionPlan(
        session,
        Protocol.ED25519_KEYGEN,
        "keys/hot",
        1,
        2,
        List.of(alpha, bravo, charlie),
        null,
        KeyTarget.SELF,
        new SessionPlan.Work.Keygen(),
        Instant.EPOCH);
  }

  private void runAll() {
    while (!lane.isEmpty()) {
      lane.remove().run();
    }
  }

  private static KeyShare share(SessionId session, int epoch) {
    return new KeyShare(
        "keys/hot",
        epoch,
        Scheme.SCHEME_ED25519,
        KeyShare.State.PROVISIONAL,
        List.of(1, 2, 3),
        List.of(1, 2, 3),
        KeyPublic.newBuilder().setKeyId("keys/hot").setThreshold(2).setEpoch(epoch).build(),
        ByteString.copyFromUtf8("sealed"),
        new KeyShare.Origin(session, "coordinator", "wallet", "request", ByteString.EMPTY),
        null);
  }
}
