package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.group.GroupSteps.Work;
import io.coterie.trust.Member;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The making of groups: an epoch is begun for one request, each of its results is stored once, and
 * a step that was done is told again from the disk.
 */
final class GroupMaking implements GroupWork {
  private static final Logger log = LoggerFactory.getLogger(GroupMaking.class);

  private final GroupPorts ports;
  private final GroupOrderCheck check;
  private final RunControl control;
  private final GroupStore groups;
  private final GroupSteps steps;
  private final GroupClaims claims;

  GroupMaking(GroupPorts ports, GroupOrderCheck check, RunControl control, Member self) {
    this.ports = ports;
    this.check = check;
    this.control = control;
    this.groups = ports.memory().groups();
    this.steps = new GroupSteps(ports.calls(), groups, self);
    this.claims = new GroupClaims(ports.memory());
  }

  @Override
  public void begin(GroupRun run) throws NotDoneException {
    GroupPlan plan = run.plan();
    GroupRecord record = groups.find(plan.group(), plan.epoch()).orElse(null);
    if (record != null) {
      NotDoneException.unless(
          record.origin().equals(plan.origin()),
          RefusalReason.REFUSAL_REASON_GROUP_EXISTS,
          "this epoch of the group was begun for another request");
      Optional<GroupReport.Builder> done = steps.answer(plan, record);
      if (done.isPresent()) {
        control.done(run, done.get());
        return;
      }
    }
    check.inTime(plan, ports.clock().instant());
    control.requireFree(run);
    Work work = steps.work(plan, record);
    if (work instanceof Work.Complete(ByteString attested)) {
      stored(
          run,
          groups.keepAttested(
              plan.group(), plan.epoch(), attested, GroupAudit.done(plan, run.coordinator)));
    } else {
      claim(run, work, record != null);
    }
  }

  private void claim(GroupRun run, Work work, boolean begun) {
    claims
        .claim(run)
        .whenComplete(
            (refusal, failure) ->
                control.execute(run, () -> claimed(run, work, begun, refusal, failure)));
  }

  private void claimed(
      GroupRun run,
      Work work,
      boolean begun,
      @Nullable Optional<NotDoneException> refusal,
      @Nullable Throwable failure) {
    if (run.over) {
      return; // too late meanwhile
    }
    if (failure != null || refusal == null) {
      log.error("the claim of an order about a group could not be stored", failure);
      control.refuse(run, RefusalReason.REFUSAL_REASON_INTERNAL, "the claim could not be stored");
    } else if (refusal.isPresent()) {
      control.refuse(run, refusal.get());
    } else if (begun) {
      start(run, work);
    } else {
      GroupPlan plan = run.plan();
      groups
          .begin(
              GroupRecord.begun(
                  plan.group(), plan.epoch(), plan.origin(), plan.members().parties()))
          .whenComplete(
              (first, stopped) -> control.execute(run, () -> begun(run, work, first, stopped)));
    }
  }

  private void begun(
      GroupRun run, Work work, @Nullable Boolean first, @Nullable Throwable failure) {
    if (run.over) {
      return;
    }
    if (failure != null || first == null) {
      log.error("an epoch of a group could not be begun", failure);
      control.refuse(run, RefusalReason.REFUSAL_REASON_INTERNAL, "the epoch could not be stored");
    } else if (!first) {
      control.refuse(
          run,
          RefusalReason.REFUSAL_REASON_GROUP_EXISTS,
          "this party knows the epoch of the group, or a later one");
    } else {
      start(run, work);
    }
  }

  private void start(GroupRun run, Work work) {
    switch (work) {
      case Work.Drawn(GroupRecord.Share share) -> keepShare(run, share);
      case Work.Complete _ -> throw new IllegalStateException("a group is kept without a claim");
      case Work.Session(var config, ByteString sealedShare) ->
          control.start(run, config, sealedShare);
    }
  }

  @Override
  public void done(GroupRun run, Done done) {
    GroupPlan plan = run.plan();
    switch (plan.making()) {
      case GroupStep.Opening _, GroupStep.Issuing _ ->
          keepShare(run, new GroupRecord.Share(done.getKeyPublic(), done.getSealedShare()));
      case GroupStep.Publish _ ->
          stored(
              run,
              groups.keepPublished(
                  plan.group(),
                  plan.epoch(),
                  done.getGroup(),
                  GroupAudit.done(plan, run.coordinator)));
      case GroupStep.Keep _ -> throw new IllegalStateException("a group is kept without a session");
    }
  }

  private void keepShare(GroupRun run, GroupRecord.Share share) {
    GroupPlan plan = run.plan();
    var event = GroupAudit.done(plan, run.coordinator);
    stored(
        run,
        plan.step() instanceof GroupStep.Opening
            ? groups.keepOpening(plan.group(), plan.epoch(), share, event)
            : groups.keepIssuing(plan.group(), plan.epoch(), share, event));
  }

  /** The result is told once it is on disk, from there. */
  private void stored(GroupRun run, CompletionStage<Boolean> storing) {
    run.over = true;
    storing.whenComplete(
        (first, failure) ->
            control.execute(
                run,
                () -> {
                  if (failure != null) {
                    log.error("the result of a step could not be stored", failure);
                    control.refuse(
                        run,
                        RefusalReason.REFUSAL_REASON_INTERNAL,
                        "the result could not be stored");
                  } else {
                    tellStored(run);
                  }
                }));
  }

  /** Whether this order has stored it or another one of the same request: there is one result. */
  private void tellStored(GroupRun run) {
    GroupPlan plan = run.plan();
    try {
      GroupRecord record = groups.find(plan.group(), plan.epoch()).orElseThrow();
      control.done(run, steps.answer(plan, record).orElseThrow());
    } catch (NotDoneException e) {
      control.refuse(run, e);
    }
  }
}
