package io.coterie.coordinator.custody.group;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.JoinGroup;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RegisterMember;
import io.coterie.proto.party.v1.ReserveTicket;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.trust.Member;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries what applicants and issuers say to each other. It keeps nothing of it and is believed in
 * nothing: both sides check with the core what they get, and a step that failed is repeated by the
 * applicant. Steps are cited as [U1] (docs/protocols/wbb.md).
 */
public final class MemberAdmissions {
  private static final Logger log = LoggerFactory.getLogger(MemberAdmissions.class);

  /** Bytes of a run that one side sends to the other: those of 19 issuers, and some. */
  static final int MAX_RUN_BYTES = 8 * 1024 * 1024;

  private static final int SESSION_ID_BYTES = 32;
  private static final int MAX_RUN_ORDER_BYTES = 1024;

  private final GroupSteps steps;
  private final GroupOrders orders;
  private final Executor threads;

  /**
   * The admissions of one coordinator.
   *
   * @param threads that may wait
   */
  public MemberAdmissions(GroupSteps steps, GroupOrders orders, Executor threads) {
    this.steps = steps;
    this.orders = orders;
    this.threads = threads;
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
    GroupSteps.Step step = step(ticket);
    GroupOrder.Builder order =
        step.order().setReserveTicket(ReserveTicket.newBuilder().setApplication(application));
    Map<Integer, ByteString> shares = new TreeMap<>();
    step.byEnough(quorum(step), order, caller, GroupReport::hasTicketReserved)
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
    GroupSteps.Step step = step(ticket);
    return List.copyOf(
        step.byEnough(
                quorum(step),
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
    GroupSteps.Step step = step(ticket);
    List<Member> issuers =
        step.parties().stream()
            .filter(issuer -> join.getIssuersList().contains(issuer.partyId()))
            .toList();
    if (join.getRunSessionId().size() != SESSION_ID_BYTES
        || join.getRunOrder().size() > MAX_RUN_ORDER_BYTES
        || issuers.size() != join.getIssuersCount()
        || issuers.isEmpty()) {
      throw Failure.of(ErrorReason.APPLICANT_INVALID, step.resource()).toException();
    }
    step.requireReachable(issuers, issuers.size());
    step.takePlace();
    Carried run = new Carried(step, issuers, join.getRunSessionId(), joiner);
    if (!orders.carry(join.getRunSessionId(), run)) {
      step.givePlaceBack();
      throw Failure.of(ErrorReason.APPLICANT_INVALID, step.resource()).toException();
    }
    threads.execute(() -> run.give(step.order().setJoinGroup(join), caller));
    return run;
  }

  private GroupSteps.Step step(VerifiedIntent.Ticket ticket) {
    return steps.of(ticket, GroupRecord::issuers);
  }

  private static int quorum(GroupSteps.Step step) {
    GroupRecord group = step.group();
    return GroupMembers.quorum(group.issuers().size(), group.issuerThreshold());
  }

  /** A run between a member and its issuers. */
  private final class Carried implements Run, GroupOrders.Carrier {
    private final GroupSteps.Step step;
    private final List<Member> issuers;
    private final ByteString session;
    private final Joiner joiner;
    private final AtomicInteger fromMember = new AtomicInteger();
    private final AtomicInteger fromIssuers = new AtomicInteger();
    private final AtomicBoolean over = new AtomicBoolean();

    Carried(GroupSteps.Step step, List<Member> issuers, ByteString session, Joiner joiner) {
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
        joiner.failed(Failure.of(ErrorReason.DRAINING, step.resource()).toException());
      } catch (RuntimeException e) {
        log.error("a join could not be carried", e);
        leave();
        joiner.failed(Failure.of(ErrorReason.INTERNAL, step.resource()).toException());
      } finally {
        orders.leave(session, this);
        step.givePlaceBack();
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
        throw Failure.of(ErrorReason.APPLICANT_INVALID, step.resource()).toException();
      }
      byte[] message =
          PartyMessage.newBuilder()
              .setGroupEnvelope(
                  SessionEnvelope.newBuilder().setSessionId(session).setEnvelope(envelope))
              .build()
              .toByteArray();
      step.channel().broadcast(to, message, SendOptions.online(null)).exceptionally(_ -> null);
    }

    @Override
    public void leave() {
      over.set(true);
      orders.leave(session, this);
    }
  }
}
