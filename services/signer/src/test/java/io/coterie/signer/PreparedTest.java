package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.ShareTaken;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.TakeShare;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionCancel;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Signatures that pairs have prepared ahead of need: each is good for one attempt of the two that
 * made it, whatever the coordinator orders and whoever fails.
 */
@Timeout(300)
class PreparedTest extends ExactFixture {
  private static final RefusalReason UNKNOWN = RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN;

  /** Threads that computed with circuits, and with everything else, in the cores. */
  private final Set<String> longThreads = ConcurrentHashMap.newKeySet();

  private final Set<String> otherThreads = ConcurrentHashMap.newKeySet();

  /** The preparation that a corrupt party uses in place of the ordered one. */
  private final Map<ByteString, ByteString> swapped = new ConcurrentHashMap<>();

  @Override
  ProtocolCore open(String party, ProtocolCore core) {
    return new Watched(party.equals("bravo"), core);
  }

  private final class Watched implements ProtocolCore {
    private final boolean corrupt;
    private final ProtocolCore real;

    Watched(boolean corrupt, ProtocolCore real) {
      this.corrupt = corrupt;
      this.real = real;
    }

    @Override
    public Run start(SessionConfig config, ByteString sealedShare) throws RefusedException {
      ByteString id = config.getPresignatureId();
      SessionConfig used =
          corrupt
              ? config.toBuilder().setPresignatureId(swapped.getOrDefault(id, id)).build()
              : config;
      return new WatchedRun(real.start(used, sealedShare));
    }

    @Override
    public void discardPresignature(ByteString id) {
      real.discardPresignature(id);
    }

    @Override
    public Optional<ShareTaken> takeShare(TakeShare call) throws RefusedException {
      return real.takeShare(call);
    }

    @Override
    public void forgetPairs(String key) {
      real.forgetPairs(key);
    }

    @Override
    public ByteString signStatement(ByteString statement) {
      return real.signStatement(statement);
    }
  }

  private final class WatchedRun implements ProtocolCore.Run {
    private final ProtocolCore.Run real;

    WatchedRun(ProtocolCore.Run real) {
      this.real = real;
    }

    @Override
    public Step firstStep() {
      return real.firstStep();
    }

    @Override
    public boolean computesLong() {
      return real.computesLong();
    }

    @Override
    public Step handle(int sender, byte[] envelope) {
      (real.computesLong() ? longThreads : otherThreads).add(Thread.currentThread().getName());
      return real.handle(sender, envelope);
    }

    @Override
    public Step recorded(ByteString recorded) {
      return real.recorded(recorded);
    }

    @Override
    public void close() {
      real.close();
    }
  }

  private Order.Builder preparing(int blocks, int... set) {
    return i.coordinator
        .order(ProtocolId.PROTOCOL_ID_ED25519_EXACT_PREPARE, KEY, 2, set)
        .setPresignatureCount(1)
        .setMessageBlocks(blocks)
        .setCoordinatorIncarnation(Installation.INCARNATION)
        .setDeadline(Installation.in(Duration.ofSeconds(50)));
  }

  private SessionReport report(int party, SessionId session) {
    return i.coordinator.awaitFrom(name(party), session).report();
  }

  /** The id of what a session of two parties prepares. */
  private ByteString prepared(SessionId session, int... set) {
    List<ByteString> ids = null;
    for (int party : set) {
      SessionReport report = report(party, session);
      assertThat(report.hasCompleted()).as(report.toString()).isTrue();
      List<ByteString> told = report.getCompleted().getPresignatureIdsList();
      assertThat(ids == null || ids.equals(told)).as("one id at both").isTrue();
      ids = told;
    }
    assertThat(ids).hasSize(1);
    return ids.getFirst();
  }

  private ByteString prepare(int... set) {
    return prepared(i.coordinator.give(preparing(1, set).build()), set);
  }

  private Order.Builder presigned(ByteString id, String message, int... set) {
    return signOrder(message, set)
        .setProtocol(ProtocolId.PROTOCOL_ID_ED25519_EXACT_NONCE)
        .setPresignatureId(id);
  }

  private ByteString signWith(ByteString id, String message, int... set) {
    return signed(i.coordinator.give(presigned(id, message, set).build()), set);
  }

  private ByteString signed(SessionId session, int... set) {
    ByteString signature = ByteString.EMPTY;
    for (int party : set) {
      SessionReport report = report(party, session);
      assertThat(report.hasCompleted()).as(report.toString()).isTrue();
      signature = report.getCompleted().getSignature();
    }
    return signature;
  }

  private void assertUnknown(ByteString id, int... set) {
    SessionId session = i.coordinator.give(presigned(id, MESSAGE, set).build());
    for (int party : set) {
      assertThat(refusal(name(party), session).getReason()).isEqualTo(UNKNOWN);
    }
  }

  private static ByteString expected(String message) {
    byte[] text = ByteString.copyFromUtf8(message).toByteArray();
    byte[] signature = new byte[Ed25519.SIGNATURE_SIZE];
    Ed25519.sign(SEED, 0, text, 0, text.length, signature, 0);
    return ByteString.copyFrom(signature);
  }

  @Test
  void one_is_prepared_used_once_and_gone() {
    importKey();
    ByteString first = prepare(1, 2);
    ByteString second = prepare(1, 2);
    assertThat(signWith(second, MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
    // The coordinator orders it again, for another message.
    assertUnknown(second, 1, 2);
    assertThat(signWith(first, "transfer 12", 1, 2)).isEqualTo(expected("transfer 12"));
    assertUnknown(first, 1, 2);
    assertThat(longThreads).isNotEmpty().allMatch(thread -> thread.contains("-long-"));
    assertThat(otherThreads).isNotEmpty().noneMatch(thread -> thread.contains("-long-"));
  }

  /** The first message of a long one has more bytes than are kept before a run starts. */
  @Test
  void one_for_a_long_message_signs_although_a_party_starts_late() {
    importKey();
    ByteString id = prepared(i.coordinator.give(preparing(4, 1, 2).build()), 1, 2);
    String message = "x".repeat(4 * 128 - 49);
    Order order = presigned(id, message, 1, 2).build();
    SessionId session = i.coordinator.giveBytes(order.toByteString(), List.of(party(1)));
    Installation.until("alpha has started", () -> i.party("alpha").live() == 1);
    i.coordinator.giveBytes(order.toByteString(), List.of(party(2)));
    assertThat(signed(session, 1, 2)).isEqualTo(expected(message));
  }

  private Member party(int id) {
    return i.network.roster().byPartyId(id).orElseThrow();
  }

  private void cancel(SessionId session, Member... parties) {
    i.coordinator.tell(
        PartyMessage.newBuilder()
            .setCancel(SessionCancel.newBuilder().setSessionId(session.bytes()))
            .build(),
        List.of(parties));
  }

  @Test
  void one_for_something_else_is_unknown_and_stays() {
    importKey();
    ByteString id = prepare(1, 2);
    assertUnknown(id, 1, 3);
    // Another number of blocks.
    SessionId longer = i.coordinator.give(presigned(id, "x".repeat(80), 1, 2).build());
    assertThat(refusal("alpha", longer).getReason()).isEqualTo(UNKNOWN);
    assertUnknown(ByteString.copyFrom(new byte[32]), 1, 2);
    SessionId five = i.coordinator.give(preparing(5, 1, 2).build());
    assertThat(refusal("bravo", five).getReason())
        .as("more than is kept here")
        .isEqualTo(RefusalReason.REFUSAL_REASON_POOL_FULL);
    assertThat(signWith(id, MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
  }

  @Test
  void orders_that_no_pair_could_follow_are_refused() {
    importKey();
    for (Order.Builder wrong :
        List.of(
            preparing(0, 1, 2),
            preparing(12, 1, 2),
            preparing(1, 1, 2, 3),
            preparing(1, 1, 2).setPresignatureCount(2),
            signOrder(MESSAGE, 1, 2).setMessageBlocks(1))) {
      SessionId session = i.coordinator.give(wrong.build());
      assertThat(refusal("alpha", session).getReason())
          .isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
    }
  }

  /** Two orders, so two sessions: neither party hears the other, and both preparations are gone. */
  @Test
  void a_coordinator_that_gives_each_party_another_one_gets_nothing_and_loses_both() {
    importKey();
    ByteString one = prepare(1, 2);
    ByteString two = prepare(1, 2);
    Order.Builder signing =
        presigned(one, MESSAGE, 1, 2).setDeadline(Installation.in(Duration.ofSeconds(2)));
    SessionId first = i.coordinator.giveBytes(signing.build().toByteString(), List.of(party(1)));
    SessionId second =
        i.coordinator.giveBytes(
            signing.setPresignatureId(two).build().toByteString(), List.of(party(2)));
    assertThat(report(1, first).getTimedOut().getMissingList()).containsExactly(2);
    assertThat(report(2, second).getTimedOut().getMissingList()).containsExactly(1);
    SessionId again = i.coordinator.give(presigned(one, MESSAGE, 1, 2).build());
    assertThat(refusal("alpha", again).getReason()).isEqualTo(UNKNOWN);
    SessionId other = i.coordinator.give(presigned(two, MESSAGE, 1, 2).build());
    assertThat(refusal("bravo", other).getReason()).isEqualTo(UNKNOWN);
    assertThat(sign(MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
  }

  @Test
  void a_peer_that_uses_another_one_is_named_and_hears_nothing() {
    importKey();
    ByteString ordered = prepare(1, 2);
    swapped.put(ordered, prepare(1, 2));
    SessionId session =
        i.coordinator.give(
            presigned(ordered, MESSAGE, 1, 2)
                .setDeadline(Installation.in(Duration.ofSeconds(3)))
                .build());
    // The corrupt party evaluates, so it has spoken first: the honest one hears another one than it
    // uses.
    Abort abort = report(1, session).getAborted();
    assertThat(abort.getCause()).isEqualTo(AbortCause.ABORT_CAUSE_CIRCUIT_MISMATCH);
    assertThat(abort.getSuspectsList()).containsExactly(2);
    assertThat(report(2, session).getTimedOut().getMissingList()).containsExactly(1);
    assertUnknown(ordered, 1, 2);
    swapped.clear();
    assertThat(sign(MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
    // The other way round: the corrupt party's core does not understand what the honest one said
    // first.
    ByteString garbled = prepare(2, 3);
    swapped.put(garbled, prepare(2, 3));
    SessionId other =
        i.coordinator.give(
            presigned(garbled, MESSAGE, 2, 3)
                .setDeadline(Installation.in(Duration.ofSeconds(3)))
                .build());
    Abort named = report(2, other).getAborted();
    assertThat(named.getCause()).isEqualTo(AbortCause.ABORT_CAUSE_CIRCUIT_MISMATCH);
    assertThat(named.getSuspectsList()).containsExactly(3);
    assertThat(report(3, other).getTimedOut().getMissingList()).containsExactly(2);
    swapped.clear();
    assertThat(sign(MESSAGE, 2, 3)).as("nobody is left out for it").isEqualTo(SIGNATURE);
  }

  /** A preparation is in memory alone; the pair sets up again in the background. */
  @Test
  void a_restart_drops_it_and_the_halves_of_the_peers_are_discarded() {
    importKey();
    SessionId session = i.coordinator.give(preparing(1, 1, 2).build());
    ByteString id = prepared(session, 1, 2);
    ByteString later = prepare(1, 2);
    i.restart("bravo");
    SessionId signing = i.coordinator.give(presigned(id, MESSAGE, 1, 2).build());
    assertThat(refusal("bravo", signing).getReason()).isEqualTo(UNKNOWN);
    ByteString fresh = prepare(1, 2);
    // The new set-up has ended what the old one made: alpha says so, and has taken it out.
    SessionId old = i.coordinator.give(presigned(later, MESSAGE, 1, 2).build());
    assertThat(refusal("alpha", old).getDetail()).contains("not the one that it was prepared");
    assertUnknown(later, 1, 2);
    assertThat(signWith(fresh, MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
  }

  @Test
  void what_the_coordinator_does_not_want_any_more_is_gone() {
    importKey();
    SessionId session = i.coordinator.give(preparing(4, 1, 2).build());
    ByteString id = prepared(session, 1, 2);
    SessionId full = i.coordinator.give(preparing(1, 1, 2).build());
    assertThat(refusal("alpha", full).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_POOL_FULL);
    cancel(session, party(1), party(2));
    prepare(1, 2);
    assertUnknown(id, 1, 2);
  }

  /** Each message of a signature is lost in turn, and with it all that follow. */
  @Test
  void a_signature_that_is_cut_anywhere_uses_it_up_and_can_be_made_again() {
    importKey();
    AtomicInteger left = new AtomicInteger(Integer.MAX_VALUE);
    AtomicInteger said = new AtomicInteger();
    i.network.tap(
        (from, to, body) -> {
          if (!Installation.parse(body).hasEnvelope()) {
            return body;
          }
          said.incrementAndGet();
          return left.getAndDecrement() > 0 ? body : null;
        });
    ByteString whole = prepare(1, 2);
    said.set(0);
    assertThat(signWith(whole, MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
    int messages = said.get();
    for (int cut : new int[] {0, 1, messages / 2, messages - 2, messages - 1}) {
      ByteString id = prepare(1, 2);
      left.set(cut);
      SessionId session =
          i.coordinator.give(
              presigned(id, MESSAGE, 1, 2)
                  .setDeadline(Installation.in(Duration.ofSeconds(1)))
                  .build());
      List<SessionReport> ends = List.of(report(1, session), report(2, session));
      assertThat(ends).as("cut after " + cut).anyMatch(SessionReport::hasTimedOut);
      left.set(Integer.MAX_VALUE);
      assertUnknown(id, 1, 2);
    }
    assertThat(sign(MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
  }

  @Test
  void a_preparation_gives_way_to_a_signature_that_sets_the_pair_up() {
    importKey();
    for (String party : List.of("alpha", "charlie", "alpha", "charlie")) {
      i.restart(party);
      SessionId preparing = i.coordinator.give(preparing(1, 1, 3).build());
      SessionId signing = i.coordinator.give(signOrder(MESSAGE, 1, 3).build());
      assertThat(signed(signing, 1, 3)).isEqualTo(SIGNATURE);
      for (int each : new int[] {1, 3}) {
        if (!i.coordinator.hasReport(name(each), preparing)) {
          cancel(preparing, party(each));
        }
      }
    }
    assertThat(signWith(prepare(1, 3), MESSAGE, 1, 3)).isEqualTo(SIGNATURE);
  }
}
