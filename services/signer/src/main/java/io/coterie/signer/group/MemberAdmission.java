package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.MemberJoined;
import io.coterie.proto.party.v1.MemberRegistered;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.TicketReserved;
import io.coterie.trust.Member;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The admission of members: a ticket is bound to the first application of its identity before that
 * is answered, its member is registered once, and each run of the join is counted before it begins.
 * The member's own messages are checked by the core; the coordinator that carries them is believed
 * in nothing.
 *
 * <p>A bound ticket has no end: each step after that has the identity's signature.
 */
final class MemberAdmission implements GroupWork {
  private static final Logger log = LoggerFactory.getLogger(MemberAdmission.class);

  private final GroupPorts ports;
  private final GroupOrderCheck check;
  private final RunControl control;
  private final TicketStore tickets;
  private final TicketSteps steps;
  private final GroupClaims claims;

  MemberAdmission(GroupPorts ports, GroupOrderCheck check, RunControl control, Member self) {
    this.ports = ports;
    this.check = check;
    this.control = control;
    this.tickets = ports.memory().tickets();
    this.steps = new TicketSteps(ports.calls(), tickets, self);
    this.claims = new GroupClaims(ports.memory());
  }

  @Override
  public void begin(GroupRun run) throws NotDoneException {
    GroupPlan plan = run.plan();
    GroupRecord group = ports.memory().groups().find(plan.group(), plan.epoch()).orElseThrow();
    TicketRecord ticket =
        tickets.find(plan.group(), plan.epoch(), plan.intent().digest()).orElse(null);
    switch (plan.admission()) {
      case GroupStep.Reserve reserve -> reserve(run, group, reserve, ticket);
      case GroupStep.Register register -> register(run, group, register, bound(ticket));
      case GroupStep.Join join -> join(run, group, join, bound(ticket));
    }
  }

  private static TicketRecord bound(@Nullable TicketRecord ticket) throws NotDoneException {
    if (ticket == null) {
      throw new NotDoneException(
          RefusalReason.REFUSAL_REASON_GROUP_STEP, "this party has not bound the ticket");
    }
    return ticket;
  }

  // ---- [U1], [U2] ------------------------------------------------------------------------------

  private void reserve(
      GroupRun run, GroupRecord group, GroupStep.Reserve step, @Nullable TicketRecord bound)
      throws NotDoneException {
    GroupPlan plan = run.plan();
    if (bound != null) {
      answer(run, group, steps.reservation(plan, group, step));
      return;
    }
    check.inTime(plan, ports.clock().instant());
    NotDoneException.unless(
        ports.memory().groups().attested(plan.group()).getLast().epoch() == plan.epoch(),
        RefusalReason.REFUSAL_REASON_GROUP_STEP,
        "a later epoch of the group has taken the place of this one");
    control.requireFree(run);
    ByteString reservation = steps.reservation(plan, group, step);
    then(
        run,
        claims.claim(run),
        refusal -> {
          if (refusal.isPresent()) {
            control.refuse(run, refusal.get());
          } else {
            bind(run, group, step, reservation);
          }
        });
  }

  private void bind(
      GroupRun run, GroupRecord group, GroupStep.Reserve step, ByteString reservation) {
    GroupPlan plan = run.plan();
    then(
        run,
        tickets.bind(
            TicketRecord.bound(plan, TicketSteps.identity(plan), reservation),
            plan.intent().requester(),
            GroupAudit.done(plan, run.coordinator)),
        _ -> {
          try {
            // Of this order or another one: the core says whether it is bound to this application.
            answer(run, group, steps.reservation(plan, group, step));
          } catch (NotDoneException e) {
            control.refuse(run, e);
          }
        });
  }

  /** The reservation is on the disk. */
  private void answer(GroupRun run, GroupRecord group, ByteString reservation)
      throws NotDoneException {
    control.done(
        run,
        GroupReport.newBuilder()
            .setTicketReserved(
                TicketReserved.newBuilder().setShare(steps.answer(group, reservation))));
  }

  // ---- [U4] ------------------------------------------------------------------------------------

  private void register(
      GroupRun run, GroupRecord group, GroupStep.Register step, TicketRecord ticket)
      throws NotDoneException {
    TicketRecord.Member made = steps.member(run.plan(), group, step, ticket);
    if (ticket.member() != null) {
      registered(run, made.point());
      return;
    }
    check.deadlineInTime(run.plan(), ports.clock().instant());
    control.requireFree(run);
    then(
        run,
        tickets.register(ticket, made, GroupAudit.done(run.plan(), run.coordinator)),
        registration -> {
          switch (registration) {
            case STORED, KNOWN -> registered(run, made.point());
            case POINT_TAKEN ->
                control.refuse(
                    run,
                    RefusalReason.REFUSAL_REASON_TICKET_BOUND,
                    "the point is another member's");
          }
        });
  }

  private void registered(GroupRun run, ByteString point) {
    control.done(
        run,
        GroupReport.newBuilder()
            .setMemberRegistered(MemberRegistered.newBuilder().setPoint(point)));
  }

  // ---- [U5], [T] -------------------------------------------------------------------------------

  private void join(GroupRun run, GroupRecord group, GroupStep.Join step, TicketRecord ticket)
      throws NotDoneException {
    TicketRecord.Member member = ticket.member();
    if (member == null) {
      throw new NotDoneException(
          RefusalReason.REFUSAL_REASON_GROUP_STEP, "this party has not registered the member");
    }
    check.deadlineInTime(run.plan(), ports.clock().instant());
    control.requireFree(run);
    TicketRecord.Member counted = steps.counted(group, step, member);
    tickets
        .count(ticket, counted, GroupAudit.accepted(run.plan(), run.coordinator))
        .whenComplete(
            (first, failure) ->
                control.execute(run, () -> counted(run, group, ticket, first, failure)));
  }

  /** The run begins only if it is this order that has counted it, and while it still may. */
  private void counted(
      GroupRun run,
      GroupRecord group,
      TicketRecord ticket,
      @Nullable Boolean first,
      @Nullable Throwable failure) {
    if (!run.over && Boolean.TRUE.equals(first)) {
      control.start(
          run, steps.session(run.plan(), group, ticket), TicketSteps.issuing(group).sealed());
      return;
    }
    steps.drop(run.plan().session());
    if (run.over) {
      return;
    }
    if (failure != null) {
      log.error("a run of a join could not be counted", failure);
      control.refuse(run, RefusalReason.REFUSAL_REASON_INTERNAL, "the run could not be stored");
    } else {
      control.refuse(
          run,
          RefusalReason.REFUSAL_REASON_TICKET_SPENT,
          "another run of the ticket was counted meanwhile");
    }
  }

  @Override
  public void done(GroupRun run, Done done) {
    ports.audit().record(GroupAudit.done(run.plan(), run.coordinator));
    control.done(run, GroupReport.newBuilder().setMemberJoined(MemberJoined.getDefaultInstance()));
  }

  /** Goes on in the lane of the order once the disk has something, unless it is too late. */
  private <T> void then(GroupRun run, CompletionStage<T> storing, Consumer<T> next) {
    storing.whenComplete(
        (result, failure) ->
            control.execute(
                run,
                () -> {
                  if (run.over) {
                    return;
                  }
                  if (failure != null) {
                    log.error("a step of an admission could not be stored", failure);
                    control.refuse(
                        run, RefusalReason.REFUSAL_REASON_INTERNAL, "the step could not be stored");
                  } else {
                    next.accept(result);
                  }
                }));
  }
}
