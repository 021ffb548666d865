package io.coterie.signer;

import static io.coterie.signer.GroupMaking.wish;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.ApprovalDecision;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.CountApprovals;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupRefusal;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.custody.v1.TicketIntent;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.GroupStepRefused;
import io.coterie.proto.party.v1.JoinGroup;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Three issuers with the native core admit members, whose messages a coordinator carries. */
class AdmissionTest {
  private static final String GROUP = "groups/approvers";

  @TempDir Path folder;
  private NativeParties cores;
  private Installation i;
  private GroupMaking making;
  private ByteString attested;
  private final List<TestMember> members = new ArrayList<>();

  @BeforeEach
  void start() {
    cores = new NativeParties();
    i = new Installation(folder, cores.evidence(), cores::open);
    i.start();
    making = new GroupMaking(i, wish(GROUP, 1));
    attested = making.made();
  }

  @AfterEach
  void stop() {
    members.forEach(TestMember::close);
    i.close();
    cores.close();
  }

  private TestMember person() {
    TestMember member = new TestMember(i, making, attested);
    members.add(member);
    return member;
  }

  private List<Member> issuers() {
    return making.members.issuers();
  }

  private Member issuer(int id) {
    return i.network.roster().byPartyId(id).orElseThrow();
  }

  private GroupStepRefused refused(GroupOrder.Builder order, int by) {
    GroupReport report = making.done(order, List.of(issuer(by))).get(by);
    assertThat(report.hasRefused()).as("%s", report).isTrue();
    return report.getRefused();
  }

  private void refused(RefusalReason reason, GroupOrder.Builder order) {
    assertThat(refused(order, 1).getReason()).isEqualTo(reason);
  }

  /** An issuer that has just started asks others first what it may have forgotten. */
  private void restart() {
    NativeParties.NAMES.forEach(i::restart);
  }

  private static boolean isNotReady(GroupReport report) {
    return report.getRefused().getReason() == RefusalReason.REFUSAL_REASON_NOT_READY;
  }

  /** The reports on an order, once nobody is busy with its own start any more. */
  private Map<Integer, GroupReport> done(GroupOrder.Builder order) {
    List<Map<Integer, GroupReport>> reports = new ArrayList<>();
    Installation.until(
        "all have asked what they may have forgotten",
        () -> {
          order.setCoordinatorNonce(making.order().getCoordinatorNonce());
          reports.add(making.done(order, issuers()));
          return reports.getLast().values().stream().noneMatch(AdmissionTest::isNotReady);
        });
    return reports.getLast();
  }

  /** Nobody counts a run before it knows whether it has forgotten something. */
  private void awaitAnswers(TestMember member) {
    Map<Integer, GroupReport> reports =
        done(
            member
                .order()
                .setJoinGroup(
                    JoinGroup.newBuilder()
                        .setRunOrder(ByteString.copyFromUtf8("none"))
                        .setRunSessionId(member.order().getCoordinatorNonce())
                        .addAllIssuers(issuers().stream().map(Member::partyId).toList())));
    assertThat(reports.values())
        .allMatch(
            report ->
                report.getRefused().getReason() == RefusalReason.REFUSAL_REASON_APPLICANT_INVALID);
  }

  /** A run of the join among these; the reports of the issuers. */
  private List<GroupReport> joined(TestMember member, Integer... among) {
    List<Member> issuers = List.of(among).stream().map(this::issuer).toList();
    try (TestMember.Run run = member.new Run(issuers)) {
      SessionId order = making.give(run.order(), issuers);
      assertThat(run.carried().hasDone()).isTrue();
      return issuers.stream().map(issuer -> making.awaitFrom(issuer, order)).toList();
    }
  }

  private static ApprovalRequest request(int number) {
    byte[] digest = new byte[32];
    digest[0] = (byte) number;
    return ApprovalRequest.newBuilder()
        .setDigest(ByteString.copyFrom(digest))
        .setDecision(ApprovalDecision.APPROVAL_DECISION_APPROVE)
        .build();
  }

  private int counted(ApprovalRequest request, List<ByteString> approvals) {
    return GroupMaking.VERIFIER
        .call(
            GroupCall.newBuilder()
                .setCountApprovals(
                    CountApprovals.newBuilder()
                        .setGroup(members.getFirst().group())
                        .setRequest(request)
                        .addAllApprovals(approvals)
                        .setNeeded(approvals.size()))
                .build())
        .getApprovalsCounted()
        .getTagsCount();
  }

  @Test
  void members_are_admitted_although_issuers_are_killed_between_the_steps() {
    TestMember one = person();
    one.apply();
    List<PartyBytes> shares = one.reserve(issuers());
    restart();
    // A bound ticket is answered whatever the time is.
    i.clockOffset = Duration.ofHours(1);
    assertThat(one.reserve(issuers())).hasSize(3);
    i.clockOffset = Duration.ZERO;
    assertThat(one.accept(shares).hasAnswersAccepted()).isTrue();
    assertThat(done(one.registering(shares)).values())
        .allMatch(report -> report.getMemberRegistered().getPoint().equals(one.point));
    restart();
    assertThat(done(one.registering(shares)).values()).allMatch(GroupReport::hasMemberRegistered);
    awaitAnswers(one);
    assertThat(joined(one, 1, 3)).allMatch(GroupReport::hasMemberJoined);

    TestMember two = person();
    two.apply();
    List<PartyBytes> again = two.reserve(issuers());
    assertThat(two.accept(again).hasAnswersAccepted()).isTrue();
    assertThat(done(two.registering(again)).values()).allMatch(GroupReport::hasMemberRegistered);
    assertThat(joined(two, 1, 2, 3)).allMatch(GroupReport::hasMemberJoined);
    assertThat(counted(request(1), List.of(one.approve(request(1)), two.approve(request(1)))))
        .isEqualTo(2);
    assertThat(counted(request(1), List.of(one.approve(request(1)), one.approve(request(1)))))
        .as("one member twice")
        .isZero();
  }

  @Test
  void a_ticket_is_bound_to_its_first_application_and_an_identity_to_its_first_ticket() {
    TestMember one = person();
    one.apply();
    ByteString first = one.application;
    one.reserve(List.of(issuer(1)));
    one.apply();
    refused(RefusalReason.REFUSAL_REASON_TICKET_BOUND, one.reserving());
    i.restart("alpha");
    refused(RefusalReason.REFUSAL_REASON_TICKET_BOUND, one.reserving());
    // Another ticket of the identity, with a good application for it.
    var bound = one.ticket;
    one.ticket = one.ticket(one.intent());
    one.apply();
    Installation.until(
        "alpha has asked what it may have forgotten",
        () -> refused(one.reserving(), 1).getReason() == RefusalReason.REFUSAL_REASON_TICKET_BOUND);
    one.ticket = bound;
    one.application = first;
    assertThat(one.reserve(List.of(issuer(1)))).hasSize(1);

    // An application of somebody else, and one that was altered on its way.
    TestMember other = person();
    other.apply();
    ByteString own = other.application;
    other.application = first;
    refused(RefusalReason.REFUSAL_REASON_APPLICANT_INVALID, other.reserving());
    byte[] altered = own.toByteArray();
    altered[altered.length - 1] ^= 1;
    other.application = ByteString.copyFrom(altered);
    refused(RefusalReason.REFUSAL_REASON_APPLICANT_INVALID, other.reserving());
    other.application = own.substring(1);
    refused(RefusalReason.REFUSAL_REASON_APPLICANT_INVALID, other.reserving());
    other.application = own;
    assertThat(other.reserve(List.of(issuer(1)))).as("nothing was bound").hasSize(1);
  }

  @Test
  void tickets_of_strangers_and_of_another_time_or_epoch_bind_nothing() {
    TestMember one = person();
    one.apply();
    GroupOrder.Builder forged = one.reserving();
    forged
        .getSignedIntentBuilder()
        .getSignaturesBuilder(0)
        .setSig(ByteString.copyFrom(new byte[64]));
    refused(RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE, forged);
    TicketIntent.Builder intent = one.intent();
    for (TicketIntent.Builder wrong :
        List.of(intent.clone().setGroup("groups/others"), intent.clone().setEpoch(2))) {
      refused(
          RefusalReason.REFUSAL_REASON_GROUP_STEP,
          one.reserving().setSignedIntent(one.ticket(wrong)));
    }
    refused(
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
        one.reserving().setSignedIntent(one.ticket(intent.clone().setInstallation("other"))));
    refused(
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
        one.reserving().setSignedIntent(making.intent));
    refused(
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, making.opening().setSignedIntent(one.ticket));
    i.clockOffset = Duration.ofHours(1);
    refused(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED, one.reserving());
    i.clockOffset = Duration.ZERO;
    new GroupMaking(i, wish(GROUP, 2)).made();
    refused(RefusalReason.REFUSAL_REASON_GROUP_STEP, one.reserving());
    assertThat(i.party("alpha").store.tickets().members(GROUP, 1)).isZero();
  }

  @Test
  void a_step_follows_from_those_before_it_with_the_bytes_of_its_own_people() {
    TestMember one = person();
    TestMember other = person();
    one.apply();
    other.apply();
    refused(RefusalReason.REFUSAL_REASON_GROUP_STEP, one.registering(List.of()));
    List<PartyBytes> shares = one.reserve(issuers());
    List<PartyBytes> ofOther = other.reserve(issuers());
    // A coordinator that gives the shares of somebody else, or those of another issuer, is found.
    assertThat(one.accept(ofOther).getGroupRefused().getReason())
        .isEqualTo(GroupRefusal.GROUP_REFUSAL_WRONG_SHARE);
    assertThat(one.accept(shares.subList(0, 2)).getGroupRefused().getReason())
        .isEqualTo(GroupRefusal.GROUP_REFUSAL_TOO_FEW);
    assertThat(one.accept(shares).hasAnswersAccepted()).isTrue();
    assertThat(other.accept(ofOther).hasAnswersAccepted()).isTrue();
    try (TestMember.Run run = one.new Run(issuers().subList(0, 2))) {
      refused(RefusalReason.REFUSAL_REASON_GROUP_STEP, run.order());
    }
    refused(RefusalReason.REFUSAL_REASON_APPLICANT_INVALID, one.registering(shares.subList(0, 2)));
    List<PartyBytes> swapped =
        List.of(shares.get(0), shares.get(1), GroupMaking.from(3, ofOther.get(2).getValue()));
    GroupStepRefused wrong = refused(one.registering(swapped), 1);
    assertThat(wrong.getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_GROUP_INVALID);
    assertThat(wrong.getParty()).isEqualTo(3);
    ByteString acceptance = one.acceptance;
    one.acceptance = other.acceptance;
    refused(RefusalReason.REFUSAL_REASON_APPLICANT_INVALID, one.registering(shares));
    one.acceptance = acceptance;
    assertThat(making.done(one.registering(shares), issuers()).values())
        .allMatch(report -> report.getMemberRegistered().getPoint().equals(one.point));
    assertThat(i.party("alpha").store.tickets().members(GROUP, 1)).isEqualTo(1);
  }

  @Test
  void a_run_is_counted_once_for_its_own_session_by_its_own_member() {
    TestMember one = person();
    TestMember other = person();
    one.register(issuers());
    other.register(issuers());
    List<Member> two = issuers().subList(0, 2);
    try (TestMember.Run first = one.new Run(two);
        TestMember.Run ofOther = other.new Run(two)) {
      GroupOrder.Builder order = first.order();
      GroupOrder.Builder foreign = first.order();
      foreign.getJoinGroupBuilder().setRunOrder(ofOther.runOrder);
      refused(RefusalReason.REFUSAL_REASON_APPLICANT_INVALID, foreign);
      foreign.getJoinGroupBuilder().setRunSessionId(ofOther.session);
      refused(RefusalReason.REFUSAL_REASON_APPLICANT_INVALID, foreign);
      GroupOrder.Builder moved = first.order();
      moved.getJoinGroupBuilder().setRunSessionId(ofOther.session);
      refused(RefusalReason.REFUSAL_REASON_APPLICANT_INVALID, moved);
      refusedOnAnAnswer(moved, first.order());
      GroupOrder.Builder alone = first.order();
      alone.getJoinGroupBuilder().clearIssuers().addIssuers(1);
      refused(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, alone);
      alone.getJoinGroupBuilder().clearIssuers().addAllIssuers(List.of(2, 1));
      refused(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, alone);
      SessionId given = making.give(order, two);
      assertThat(first.carried().hasDone()).isTrue();
      two.forEach(issuer -> assertThat(making.awaitFrom(issuer, given).hasMemberJoined()).isTrue());
      // The run is spent: as long as its session answers, and after a restart.
      refused(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED, first.order());
      i.restart("alpha");
      Installation.until(
          "alpha has asked what it may have forgotten",
          () -> refused(first.order(), 1).getReason() == RefusalReason.REFUSAL_REASON_TICKET_SPENT);
    }
    assertThat(joined(one, 2, 3)).as("the next").allMatch(GroupReport::hasMemberJoined);
  }

  /**
   * The second order comes when alpha's answer to the first has just left, and is judged by itself.
   */
  private void refusedOnAnAnswer(GroupOrder.Builder order, GroupOrder.Builder next) {
    next.getJoinGroupBuilder().setRunSessionId(order.getJoinGroup().getRunSessionId());
    AtomicBoolean first = new AtomicBoolean(true);
    AtomicReference<GroupStepRefused> answer = new AtomicReference<>();
    i.network.tap(
        (from, to, body) -> {
          if (Installation.parse(body).hasGroupReport() && first.getAndSet(false)) {
            answer.set(refused(next, 1));
          }
          return body;
        });
    refused(RefusalReason.REFUSAL_REASON_APPLICANT_INVALID, order);
    i.network.tap((_, _, body) -> body);
    assertThat(answer.get().getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_APPLICANT_INVALID);
  }

  /** Its leak is bounded by the count of runs, so no two of one number begin. */
  @Test
  void of_two_runs_of_one_number_that_are_ordered_at_once_one_begins() {
    TestMember one = person();
    one.register(issuers());
    List<Member> two = issuers().subList(0, 2);
    try (TestMember.Run run = one.new Run(two)) {
      making.give(run.order(), two);
      making.give(one.twin(two), two);
      for (Member issuer : two) {
        Installation.until(
            issuer.name() + " refuses one of them",
            () ->
                i.coordinator.groupReports.stream()
                    .filter(message -> message.sender().equals(issuer))
                    .map(message -> Installation.parse(message.body()).getGroupReport())
                    .anyMatch(
                        report ->
                            report.getRefused().getReason()
                                == RefusalReason.REFUSAL_REASON_TICKET_SPENT));
      }
    }
  }

  /** A coordinator that alters or holds back envelopes ends a run and nothing else. */
  @Test
  void a_lying_coordinator_costs_a_run() {
    TestMember one = person();
    one.register(issuers());
    List<Member> two = issuers().subList(0, 2);
    try (TestMember.Run run = one.new Run(two)) {
      SessionId order = making.give(run.order(), two);
      // An envelope that the member has not signed is as one that never came.
      i.coordinator.tell(run.envelope(ByteString.copyFromUtf8("not an envelope")), two);
      assertThat(run.carried().hasDone()).as("the run goes on").isTrue();
      two.forEach(issuer -> assertThat(making.awaitFrom(issuer, order).hasMemberJoined()).isTrue());
    }
    AtomicInteger seen = new AtomicInteger();
    try (TestMember.Run run = one.new Run(two)) {
      SessionId order = making.give(run.order(), two);
      Installation.until(
          "both have begun",
          () -> {
            i.coordinator.groupEnvelopes.removeIf(
                message -> {
                  PartyMessage body = Installation.parse(message.body());
                  return body.getGroupEnvelope().getSessionId().equals(run.session)
                      && seen.incrementAndGet() > 0;
                });
            return seen.get() >= 2;
          });
      i.time.pass(Duration.ofSeconds(20));
      for (Member issuer : two) {
        assertThat(making.awaitFrom(issuer, order).getTimedOut().getMissingList())
            .contains(making.members.memberNumber());
      }
    }
    assertThat(joined(one, 1, 2)).allMatch(GroupReport::hasMemberJoined);
    assertThat(counted(request(2), List.of(one.approve(request(2))))).isEqualTo(1);
  }
}
