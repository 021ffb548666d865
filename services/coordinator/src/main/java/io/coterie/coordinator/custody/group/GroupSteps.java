package io.coterie.coordinator.custody.group;

import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.trust.Member;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * Steps about a group that is made. Each is ordered once, and nothing of it is kept: the caller
 * repeats what failed.
 */
public final class GroupSteps {
  /** Steps at once. */
  static final int MAX_STEPS = 64;

  /** How long the report of a party is on its way. */
  private static final Duration TELLING = Duration.ofMillis(500);

  private final GroupStore store;
  private final GroupOrders orders;
  private final PartyLink link;
  private final AdaptiveTimeout timeout;
  private final Duration clockSkew;
  private final ReplicaTime time;
  private final Clock clock;
  private final Semaphore places = new Semaphore(MAX_STEPS);

  /**
   * The steps of one coordinator.
   *
   * @param timeout how long parties have for a step
   * @param clockSkew by how much their clocks may differ from this one
   */
  public GroupSteps(
      GroupStore store,
      GroupOrders orders,
      PartyLink link,
      AdaptiveTimeout timeout,
      Duration clockSkew,
      ReplicaTime time,
      Clock clock) {
    this.store = store;
    this.orders = orders;
    this.link = link;
    this.timeout = timeout;
    this.clockSkew = clockSkew;
    this.time = time;
    this.clock = clock;
  }

  /**
   * A step that an intent asks for.
   *
   * @param whom names of the parties of a group that take it
   * @throws io.coterie.platform.error.CustodyException if there is no such group, or no channel
   */
  Step of(VerifiedIntent.OfGroup intent, Function<GroupRecord, List<String>> whom) {
    String resource = GroupRecord.name(intent.key(), intent.epoch());
    GroupRecord group =
        store
            .find(intent.key(), intent.epoch())
            .filter(record -> record.state() == Group.State.ACTIVE)
            .orElseThrow(() -> Failure.of(ErrorReason.GROUP_NOT_FOUND, resource).toException());
    SecureChannel channel =
        link.channel()
            .orElseThrow(() -> Failure.outOfReach(resource, whom.apply(group)).toException());
    List<Member> parties =
        whom.apply(group).stream()
            .flatMap(name -> channel.roster().byName(name).stream())
            .sorted(Comparator.comparingInt(Member::partyId))
            .toList();
    return new Step(intent, resource, group, channel, parties);
  }

  /** One step. */
  final class Step {
    private final VerifiedIntent.OfGroup intent;
    private final String resource;
    private final GroupRecord group;
    private final SecureChannel channel;
    private final List<Member> parties;

    private Step(
        VerifiedIntent.OfGroup intent,
        String resource,
        GroupRecord group,
        SecureChannel channel,
        List<Member> parties) {
      this.intent = intent;
      this.resource = resource;
      this.group = group;
      this.channel = channel;
      this.parties = parties;
    }

    /**
     * The same of one party alone.
     *
     * @throws io.coterie.platform.error.CustodyException if it does not take it
     */
    Step of(int party) {
      List<Member> one = parties.stream().filter(member -> member.partyId() == party).toList();
      if (one.isEmpty()) {
        throw Failure.parties(ErrorReason.PARTY_UNKNOWN, resource, List.of(), 0, "not_of_the_group")
            .toException();
      }
      return new Step(intent, resource, group, channel, one);
    }

    /** The group's epoch, as errors name it. */
    String resource() {
      return resource;
    }

    GroupRecord group() {
      return group;
    }

    SecureChannel channel() {
      return channel;
    }

    /** Those that take it, in the roster, in ascending order of their ids. */
    List<Member> parties() {
      return parties;
    }

    /** An order without a step. */
    GroupOrder.Builder order() {
      return GroupOrder.newBuilder().setSignedIntent(intent.envelope());
    }

    /**
     * Refuses what too few of these can be reached for.
     *
     * @throws io.coterie.platform.error.CustodyException naming those that cannot
     */
    void requireReachable(List<Member> asked, int needed) {
      List<Member> away =
          asked.stream().filter(issuer -> !channel.reachable().contains(issuer)).toList();
      if (asked.size() - away.size() < needed) {
        throw Failure.outOfReach(resource, away.stream().map(Member::name).toList()).toException();
      }
    }

    /**
     * Takes a place for the step.
     *
     * @throws io.coterie.platform.error.CustodyException if there is none
     */
    void takePlace() {
      if (!places.tryAcquire()) {
        throw Failure.of(ErrorReason.OVERLOADED, resource).toException();
      }
    }

    void givePlaceBack() {
      places.release();
    }

    /**
     * The reports of those that have done an order, by id.
     *
     * @param needed so many are enough
     * @throws io.coterie.platform.error.CustodyException if they are fewer, with the cause
     */
    Map<Integer, GroupReport> byEnough(
        int needed, GroupOrder.Builder order, Caller caller, Predicate<GroupReport> done)
        throws InterruptedException {
      requireReachable(parties, needed);
      takePlace();
      try {
        List<Member> asked =
            parties.stream().filter(party -> channel.reachable().contains(party)).toList();
        Map<Integer, GroupReport> reports = given(asked, order, caller);
        Map<Integer, GroupReport> good = new TreeMap<>(reports);
        good.values().removeIf(done.negate());
        if (good.size() < needed) {
          throw failure(parties, reports).toException();
        }
        return good;
      } finally {
        givePlaceBack();
      }
    }

    /** Gives an order once; the caller repeats what failed. */
    Map<Integer, GroupReport> given(
        Collection<Member> asked, GroupOrder.Builder order, Caller caller)
        throws InterruptedException {
      Instant now = clock.instant();
      Duration patience = timeout.next(0);
      Instant deadline = now.plus(patience).plus(clockSkew);
      // No party begins after its end. A bound ticket has none.
      Instant end = intent.notAfter();
      if (now.isBefore(end) && deadline.isAfter(end)) {
        deadline = end;
      }
      Duration untilTold = patience.plus(clockSkew.multipliedBy(3)).plus(TELLING);
      Duration left = Duration.ofNanos(Math.max(0, caller.deadlineNanos() - time.nanos()));
      long began = time.nanos();
      Map<Integer, GroupReport> reports =
          orders
              .give(
                  channel,
                  asked,
                  order,
                  untilTold.compareTo(left) < 0 ? untilTold : left,
                  deadline,
                  caller.trace().traceparent())
              .reports();
      if (reports.size() == asked.size()
          && reports.values().stream().allMatch(GroupFailures::isDone)) {
        timeout.succeeded(time.nanos() - began);
      }
      return reports;
    }

    /**
     * Why an order was not done. Nobody is convicted here: the messages of a run are signed, and
     * its two sides have them.
     */
    Failure failure(List<Member> asked, Map<Integer, GroupReport> reports) {
      Failure failure =
          GroupFailures.of(resource, asked, reports, _ -> false)
              .orElseGet(() -> Failure.of(ErrorReason.GROUP_STEP_FAILED, resource));
      return failure.reason() == ErrorReason.GROUP_CREATION_FAILED
          ? failure.as(ErrorReason.GROUP_STEP_FAILED)
          : failure;
    }
  }
}
