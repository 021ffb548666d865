package io.coterie.signer;

import static io.coterie.signer.GroupMaking.wish;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.OpenersKey;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.GroupStepRefused;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.nativecore.VaultCore;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.GroupCore;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.trust.Member;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Three signers with the native core make groups of approvers, on the orders of a coordinator. */
class GroupsTest {
  private static final String GROUP = "groups/approvers";

  @TempDir Path folder;
  private NativeParties cores;
  private Installation i;

  /** Envelopes that the core of a party has handled, by name. */
  private final Map<String, Integer> heard = new ConcurrentHashMap<>();

  private int heard(String party) {
    return heard.getOrDefault(party, 0);
  }

  @BeforeEach
  void start() {
    cores = new NativeParties();
    i = new Installation(folder, cores.evidence(), name -> new Counted(name, cores.open(name)));
    i.start();
  }

  @AfterEach
  void stop() {
    i.close();
    cores.close();
  }

  private Member member(int id) {
    return i.network.roster().byPartyId(id).orElseThrow();
  }

  private static GroupStepRefused refused(GroupReport report) {
    assertThat(report.hasRefused()).as("%s", report).isTrue();
    return report.getRefused();
  }

  /** The only report of one party. */
  private static RefusalReason reason(GroupMaking making, GroupOrder.Builder order, Member by) {
    return refused(making.done(order, List.of(by)).get(by.partyId())).getReason();
  }

  @Test
  void a_group_is_made_step_by_step_and_each_step_is_told_again_from_the_disk() {
    GroupMaking making = new GroupMaking(i, wish(GROUP, 1));
    Map<Integer, GroupReport> opening = making.done(making.opening(), making.members.openers());
    OpenersKey openers = making.openersKey(opening);
    ByteString attested = making.published(openers, making.issuingKey(openers));
    var checked = making.check(attested).getGroupChecked();
    assertThat(checked.getName()).isEqualTo(GROUP);
    assertThat(checked.getEpoch()).isEqualTo(1);
    Map<Integer, GroupReport> kept = making.done(making.keep(attested), making.members.all());
    assertThat(kept.values())
        .allMatch(report -> report.getGroupKept().getDigest().equals(checked.getDigest()));

    NativeParties.NAMES.forEach(i::restart);
    // Late, too: a step that was done may be told whatever the time is.
    i.clockOffset = Duration.ofHours(1);
    GroupMaking again = making;
    assertThat(again.openersKey(again.done(again.opening(), again.members.openers())))
        .isEqualTo(openers);
    assertThat(again.published(openers, again.issuingKey(openers))).isEqualTo(attested);
    assertThat(again.done(again.keep(attested), again.members.all()).values())
        .allMatch(report -> report.getGroupKept().getDigest().equals(checked.getDigest()));
  }

  @Test
  void one_auditor_opens_and_need_not_issue() {
    GroupIntent.Builder wish =
        wish(GROUP, 1)
            .clearIssuers()
            .addAllIssuers(List.of("alpha", "bravo"))
            .clearOpeners()
            .addOpeners("charlie")
            .setOpenerThreshold(1);
    GroupMaking making = new GroupMaking(i, wish);
    assertThat(reason(making, making.opening(), member(1)))
        .as("not an opener")
        .isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    ByteString attested = making.made();
    assertThat(making.check(attested).hasGroupChecked()).isTrue();
  }

  @Test
  void an_epoch_is_made_once_and_a_later_one_has_another_issuing_key() {
    GroupMaking first = new GroupMaking(i, wish(GROUP, 2));
    OpenersKey openers = first.openersKey();
    var issuing = first.issuingKey(openers);
    ByteString attested = first.published(openers, issuing);
    assertThat(first.done(first.keep(attested), first.members.all()).values())
        .allMatch(GroupReport::hasGroupKept);
    for (int epoch : List.of(1, 2)) {
      GroupMaking other = new GroupMaking(i, wish(GROUP, epoch));
      other
          .done(other.opening(), other.members.openers())
          .forEach(
              (party, report) ->
                  assertThat(refused(report).getReason())
                      .isEqualTo(RefusalReason.REFUSAL_REASON_GROUP_EXISTS));
    }
    GroupMaking rotated = new GroupMaking(i, wish(GROUP, 3));
    OpenersKey later = rotated.openersKey();
    assertThat(rotated.issuingKey(later).getPublicKey()).isNotEqualTo(issuing.getPublicKey());
    assertThat(later.getKey().getPublicKey()).isNotEqualTo(openers.getKey().getPublicKey());
    ByteString next = rotated.published(later, rotated.issuingKey(later));
    assertThat(rotated.done(rotated.keep(next), rotated.members.all()).values())
        .allMatch(GroupReport::hasGroupKept);
    // A coordinator that shows one epoch in the place of the other.
    assertThat(reason(rotated, rotated.keep(attested), member(1)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_GROUP_STEP);
  }

  @Test
  void a_step_follows_from_those_before_it() {
    GroupMaking making = new GroupMaking(i, wish(GROUP, 1));
    OpenersKey openers = making.openersKey();
    assertThat(reason(making, making.publish(openers), member(1)))
        .as("no issuing key")
        .isEqualTo(RefusalReason.REFUSAL_REASON_GROUP_STEP);
    OpenersKey.Builder unsigned = openers.toBuilder();
    unsigned.removeSignatures(1);
    GroupStepRefused missing =
        refused(making.done(making.issuing(unsigned.build()), List.of(member(1))).get(1));
    assertThat(missing.getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_GROUP_INVALID);
    assertThat(missing.getParty()).as("bravo has not signed").isEqualTo(2);
    OpenersKey other = openers.toBuilder().setEpoch(2).build();
    assertThat(reason(making, making.issuing(other), member(1)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    var issuing = making.issuingKey(openers);
    assertThat(reason(making, making.keep(ByteString.copyFromUtf8("none")), member(1)))
        .as("nothing published")
        .isEqualTo(RefusalReason.REFUSAL_REASON_GROUP_STEP);
    ByteString attested = making.published(openers, issuing);
    byte[] altered = attested.toByteArray();
    altered[altered.length - 1] ^= 1;
    assertThat(reason(making, making.keep(ByteString.copyFrom(altered)), member(1)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_GROUP_INVALID);
    assertThat(making.done(making.keep(attested), making.members.all()).values())
        .allMatch(GroupReport::hasGroupKept);
  }

  @Test
  void orders_that_this_party_must_not_believe_are_refused() {
    GroupMaking making = new GroupMaking(i, wish(GROUP, 1));
    assertThat(reason(making, making.order(), member(1)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
    assertThat(reason(making, making.opening().clearCoordinatorNonce(), member(1)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
    assertThat(
            reason(
                making,
                making.opening().setDeadline(Installation.in(Duration.ofHours(1))),
                member(1)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    assertThat(
            reason(
                making,
                making.opening().setDeadline(Installation.in(Duration.ofMinutes(4))),
                member(1)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_DEADLINE_TOO_FAR);
    GroupOrder.Builder stranger = making.opening();
    stranger
        .getSignedIntentBuilder()
        .getSignaturesBuilder(0)
        .setSig(ByteString.copyFrom(new byte[64]));
    assertThat(reason(making, stranger, member(1)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE);
    GroupOrder.Builder key =
        making
            .opening()
            .setSignedIntent(i.signed(i.keyIntent(Installation.requestId(), "keys/main", 2)));
    assertThat(reason(making, key, member(1)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    // One issuer that could invent members, and a party that nobody knows.
    GroupMaking floored =
        new GroupMaking(i, wish(GROUP, 1).clearIssuers().addAllIssuers(List.of("alpha", "bravo")));
    assertThat(floored.members.issuers()).hasSize(2);
    i.clockOffset = Duration.ofHours(1);
    assertThat(reason(making, making.opening(), member(1)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED);
    assertThat(i.party("alpha").store.groups().find(GROUP, 1)).as("nothing is begun").isEmpty();
  }

  @Test
  void a_silent_party_is_missed_and_the_step_may_be_ordered_once_more() {
    GroupMaking making = new GroupMaking(i, wish(GROUP, 1));
    i.network.tap((from, _, body) -> from.partyId() == 2 && isEnvelope(body) ? null : body);
    GroupOrder.Builder order = making.opening();
    SessionId session = making.give(order, making.members.openers());
    Installation.until(
        "both have heard each other",
        () -> List.of("alpha", "charlie").stream().allMatch(name -> heard(name) == 1));
    i.time.pass(Duration.ofSeconds(20));
    for (int honest : List.of(1, 3)) {
      GroupReport report = making.awaitFrom(member(honest), session);
      assertThat(report.getTimedOut().getMissingList()).containsExactly(2);
    }
    i.network.tap((_, _, body) -> body);
    // A process that does not remember the order has it on its disk that it was given.
    i.restart("alpha");
    List<RefusalReason> reasons = new ArrayList<>();
    Installation.until(
        "alpha has asked what it may have forgotten",
        () -> {
          making.give(order, List.of(member(1)));
          reasons.add(refused(making.awaitFrom(member(1), session)).getReason());
          return reasons.getLast() != RefusalReason.REFUSAL_REASON_NOT_READY;
        });
    assertThat(reasons.getLast()).isEqualTo(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED);
    assertThat(making.check(making.made()).hasGroupChecked()).isTrue();
  }

  /** A deviation is told with its cause and its culprit, and nobody keeps a share. */
  @Test
  void wrong_opening_names_its_sender() {
    GroupMaking making = new GroupMaking(i, wish(GROUP, 1));
    AtomicBoolean opened = new AtomicBoolean();
    i.network.tap(
        (from, to, body) -> {
          if (from.partyId() != 2 || !isEnvelope(body)) {
            return body;
          }
          ByteString envelope = Installation.parse(body).getGroupEnvelope().getEnvelope();
          if (WrongOpening.isOpening(envelope)) {
            opened.set(true);
            return withEnvelope(body, WrongOpening.of(cores, "bravo", envelope));
          }
          // Its own signer, which is honest, would end its run when it is accused.
          return opened.get() ? null : body;
        });
    SessionId session = making.give(making.opening(), making.members.openers());
    for (int honest : List.of(1, 3)) {
      Abort abort = making.awaitFrom(member(honest), session).getAborted();
      assertThat(abort.getCause()).isEqualTo(AbortCause.ABORT_CAUSE_WRONG_OPENING);
      assertThat(abort.getCulpritsList()).containsExactly(2);
    }
    assertThat(i.party("alpha").store.groups().find(GROUP, 1).orElseThrow().opening()).isNull();
    Installation.until(
        "the end is on record with its culprit",
        () ->
            i.party("alpha").store.audit().read(1, 1000).stream()
                .filter(record -> record.event().outcome().equals("aborted"))
                .anyMatch(record -> "2".equals(record.event().fields().get("culprits"))));
  }

  static boolean isEnvelope(byte[] body) {
    return Installation.parse(body).hasGroupEnvelope();
  }

  private static byte[] withEnvelope(byte[] body, byte[] envelope) {
    PartyMessage.Builder message = Installation.parse(body).toBuilder();
    message.getGroupEnvelopeBuilder().setEnvelope(ByteString.copyFrom(envelope));
    return message.build().toByteArray();
  }

  /** The core of a party, which says when it has handled an envelope. */
  private final class Counted implements ProtocolCore, GroupCore {
    private final String party;
    private final VaultCore core;

    Counted(String party, ProtocolCore core) {
      this.party = party;
      this.core = (VaultCore) core;
    }

    @Override
    public GroupReply call(GroupCall call) throws RefusedException {
      return core.call(call);
    }

    @Override
    public Run start(SessionConfig config, ByteString sealedShare) throws RefusedException {
      Run run = core.start(config, sealedShare);
      return new Run() {
        @Override
        public Step firstStep() {
          return run.firstStep();
        }

        @Override
        public Step handle(int sender, byte[] envelope) {
          Step step = run.handle(sender, envelope);
          heard.merge(party, 1, Integer::sum);
          return step;
        }

        @Override
        public void close() {
          run.close();
        }
      };
    }

    @Override
    public ByteString signStatement(ByteString statement) {
      return core.signStatement(statement);
    }
  }
}
