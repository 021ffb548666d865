package io.coterie.coordinator.custody.group;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.JoinGroup;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RegisterMember;
import io.coterie.proto.party.v1.ReserveTicket;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.trust.Member;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries what applicants and issuers say to each other. It keeps nothing of it and is believed in
 * nothing: both sides check with the core what they get, and a step that failed is repeated by the
 * applicant. Steps are cited as [U1] (docs/protocols/wbb.md).
 */
public final class MemberAdmissions {
  private static final Logger log = LoggerFactory.getLogger(MemberAdmissions.class);

  /** Steps at once. */
  static final int MAX_STEPS = 64;

  /** Bytes of a run that one side sends to the other: those of 19 issuers, and some. */
  static final int MAX_RUN_BYTES = 8 * 1024 * 1024;

  private static final int SESSION_ID_BYTES = 32;
  private static final int MAX_RUN_ORDER_BYTES = 1024;

  /** How long the report of a party is on its way. */
  private static final Duration TELLING = Duration.ofMillis(500);

  private final GroupStore store;
  private final GroupOrders orders;
  private final PartyLink link;
  private final AdaptiveTimeout timeout;
  private final Duration clockSkew;
  private final Executor threads;
  private final ReplicaTime time;
  private final Clock clock;
  private final Semaphore places = new Semaphore(MAX_STEPS);

  /**
   * The admissions of one coordinator.
   *
   * @param timeout how long issuers have for a step
   * @param clockSkew by how much their clocks may differ from this one
   * @param threads that may wait
   */
  public MemberAdmissions(
      GroupStore store,
      GroupOrders orders,
      PartyLink link,
      AdaptiveTimeout timeout,
      Duration clockSkew,
      Executor threads,
      ReplicaTime time,
      Clock clock) {
    this.store = store;
    this.orders = orders;
    this.link = link;
    this.timeout = timeout;
    this.clockSkew = clockSkew;
    this.threads = threads;
    this.time = time;
    this.clock = clock;
  }

  /** The member of a run, as its issuers reach it. Its methods do not block. */
  public interface Joiner {
    /** An issuer sends an envelope. */
    void envelope(int issuer, ByteString envelope);

    /** Every issuer says that it has given its part. */
    void ended();

    /** One of them did not. */
    void failed(CustodyException why);
  }

  /** A run that goes on. */
  public interface Run {
    /**
     * The member sends an envelope.
     *
     * @param issuer that it is for; 0 for all
     * @throws CustodyException if it is for nobody, or too much
     */
    void envelope(int issuer, ByteString envelope);

    /** The member has gone: nothing is carried any more. */
    void leave();
  }

  /**
   * [U1], [U2] has the issuers bind a ticket to an application.
   *
   * @return the share of each that answers, by id; of enough for a member
   * @throws CustodyException if too few do
   */
  public Map<Integer, ByteString> apply(
      VerifiedIntent.Ticket ticket, ByteString application, Caller caller)
      throws InterruptedException {
    Step step = new Step(ticket);
    GroupOrder.Builder order =
        step.order().setReserveTicket(ReserveTicket.newBuilder().setApplication(application));
    Map<Integer, ByteString> shares = new TreeMap<>();
    step.byEnough(order, caller, GroupReport::hasTicketReserved)
        .forEach((id, report) -> shares.put(id, report.getTicketReserved().getShare()));
    return shares;
  }

  /**
   * [U4] has the issuers register a member.
   *
   * @return ids of those that did, ascending; enough for a join
   * @throws CustodyException if too few did
   */
  public List<Integer> register(
      VerifiedIntent.Ticket ticket, RegisterMember acceptance, Caller caller)
      throws InterruptedException {
    Step step = new Step(ticket);
    return List.copyOf(
        step.byEnough(
                step.order().setRegisterMember(acceptance),
                caller,
                GroupReport::hasMemberRegistered)
            .keySet());
  }

  /**
   * [U5] has issuers take part in a run that the member has ordered.
   *
   * @param join as the member has ordered it
   * @throws CustodyException if it does not begin
   */
  public Run join(VerifiedIntent.Ticket ticket, JoinGroup join, Caller caller, Joiner joiner) {
    Step step = new Step(ticket);
    List<Member> issuers =
        step.issuers.stream()
            .filter(issuer -> join.getIssuersList().contains(issuer.partyId()))
            .toList();
    if (join.getRunSessionId().size() != SESSION_ID_BYTES
        || join.getRunOrder().size() > MAX_RUN_ORDER_BYTES
        || issuers.size() != join.getIssuersCount()
        || issuers.isEmpty()) {
      throw Failure.of(ErrorReason.APPLICANT_INVALID, step.resource).toException();
    }
    step.requireReachable(issuers, issuers.size());
    step.takePlace();
    Carried run = new Carried(step, issuers, join.getRunSessionId(), joiner);
    if (!orders.carry(join.getRunSessionId(), run)) {
      places.release();
      throw Failure.of(ErrorReason.APPLICANT_INVALID, step.resource).toException();
    }
    threads.execute(() -> run.give(step.order().setJoinGroup(join), caller));
    return run;
  }

  /** A step of one admission. */
  private final class Step {
    final VerifiedIntent.Ticket ticket;
    final String resource;
    final SecureChannel channel;
    final GroupRecord group;

    /** In the roster, in ascending order of their ids. */
    final List<Member> issuers;

    Step(VerifiedIntent.Ticket ticket) {
      this.ticket = ticket;
      this.resource = GroupRecord.name(ticket.key(), ticket.epoch());
      this.group =
          store
              .find(ticket.key(), ticket.epoch())
              .filter(record -> record.state() == Group.State.ACTIVE)
              .orElseThrow(() -> Failure.of(ErrorReason.GROUP_NOT_FOUND, resource).toException());
      this.channel =
          link.channel()
              .orElseThrow(() -> Failure.outOfReach(resource, group.issuers()).toException());
      this.issuers =
          group.issuers().stream()
              .flatMap(name -> channel.roster().byName(name).stream())
              .sorted(java.util.Comparator.comparingInt(Member::partyId))
              .toList();
    }

    GroupOrder.Builder order() {
      return GroupOrder.newBuilder().setSignedIntent(ticket.envelope());
    }

    void requireReachable(List<Member> asked, int needed) {
      List<Member> away =
          asked.stream().filter(issuer -> !channel.reachable().contains(issuer)).toList();
      if (asked.size() - away.size() < needed) {
        throw Failure.outOfReach(resource, away.stream().map(Member::name).toList()).toException();
      }
    }

    void takePlace() {
      if (!places.tryAcquire()) {
        throw Failure.of(ErrorReason.OVERLOADED, resource).toException();
      }
    }

    /** The reports of those that have done an order, if they are enough. */
    Map<Integer, GroupReport> byEnough(
        GroupOrder.Builder order, Caller caller, Predicate<GroupReport> done)
        throws InterruptedException {
      int needed = GroupMembers.quorum(group.issuers().size(), group.issuerThreshold());
      requireReachable(issuers, needed);
      takePlace();
      try {
        List<Member> asked =
            issuers.stream().filter(issuer -> channel.reachable().contains(issuer)).toList();
        Map<Integer, GroupReport> reports = given(asked, order, caller);
        Map<Integer, GroupReport> good = new TreeMap<>(reports);
        good.values().removeIf(done.negate());
        if (good.size() < needed) {
          throw failure(issuers, reports).toException();
        }
        return good;
      } finally {
        places.release();
      }
    }

    /** Gives an order once; the applicant repeats what failed. */
    Map<Integer, GroupReport> given(
        Collection<Member> asked, GroupOrder.Builder order, Caller caller)
        throws InterruptedException {
      Instant now = clock.instant();
      Duration patience = timeout.next(0);
      Instant deadline = now.plus(patience).plus(clockSkew);
      // Issuers bind no ticket after its end. A bound one has none.
      Instant end = ticket.notAfter();
      if (order.hasReserveTicket() && now.isBefore(end) && deadline.isAfter(end)) {
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

  /** A run between a member and its issuers. */
  private final class Carried implements Run, GroupOrders.Carrier {
    private final Step step;
    private final List<Member> issuers;
    private final ByteString session;
    private final Joiner joiner;
    private final AtomicInteger fromMember = new AtomicInteger();
    private final AtomicInteger fromIssuers = new AtomicInteger();
    private final AtomicBoolean over = new AtomicBoolean();

    Carried(Step step, List<Member> issuers, ByteString session, Joiner joiner) {
      this.step = step;
      this.issuers = issuers;
      this.session = session;
      this.joiner = joiner;
    }

    void give(GroupOrder.Builder order, Caller caller) {
      try {
        Map<Integer, GroupReport> reports = step.given(issuers, order, caller);
        boolean all =
            reports.size() == issuers.size()
                && reports.values().stream().allMatch(GroupReport::hasMemberJoined);
        if (over.compareAndSet(false, true)) {
          if (all) {
            joiner.ended();
          } else {
            joiner.failed(step.failure(issuers, reports).toException());
          }
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        leave();
        joiner.failed(Failure.of(ErrorReason.DRAINING, step.resource).toException());
      } catch (RuntimeException e) {
        log.error("a join could not be carried", e);
        leave();
        joiner.failed(Failure.of(ErrorReason.INTERNAL, step.resource).toException());
      } finally {
        orders.leave(session, this);
        places.release();
      }
    }

    @Override
    public void take(Member party, ByteString envelope) {
      if (!over.get()
          && issuers.contains(party)
          && fromIssuers.addAndGet(envelope.size()) <= MAX_RUN_BYTES) {
        joiner.envelope(party.partyId(), envelope);
      }
    }

    @Override
    public void envelope(int issuer, ByteString envelope) {
      List<Member> to =
          issuers.stream().filter(member -> issuer == 0 || member.partyId() == issuer).toList();
      if (to.isEmpty() || fromMember.addAndGet(envelope.size()) > MAX_RUN_BYTES) {
        throw Failure.of(ErrorReason.APPLICANT_INVALID, step.resource).toException();
      }
      byte[] message =
          PartyMessage.newBuilder()
              .setGroupEnvelope(
                  SessionEnvelope.newBuilder().setSessionId(session).setEnvelope(envelope))
              .build()
              .toByteArray();
      step.channel.broadcast(to, message, SendOptions.online(null)).exceptionally(_ -> null);
    }

    @Override
    public void leave() {
      over.set(true);
      orders.leave(session, this);
    }
  }
}
