package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.RequestBindings;
import io.coterie.signer.order.OrderCheck;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.order.SessionPlan;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Signs for a request with a scheme whose signatures are random, from a share or from a
 * presignature. A second signature of the request would be another one, so the request is bound to
 * one session that may still become its signature (docs/adr/0017).
 */
final class BoundSigning implements Operation {
  /**
   * When a contribution cannot come any more, in multiples of the clock skew after the order's
   * deadline: nobody makes it later by its own clock, two clocks differ by one, and one is for the
   * way.
   */
  private static final int LAPSE_SKEWS = 2;

  private final Signing signing;
  private final Order order;
  private final String coordinator;
  private final PresignaturePool presignatures;
  private final RequestBindings bindings;
  private final boolean strict;

  /** The session that the request was bound to and that failed; null if there was none. */
  private @Nullable SessionId instead;

  /** Whether this session has waited for another one of the request to end. */
  private boolean gaveWay;

  /** Whether it waits until no contribution can be made any more. */
  private boolean lapses;

  /** Taken out of the pool, until the run has started. */
  private @Nullable Presignature presignature;

  /**
   * @param order without its intent
   * @param coordinator roster name of the one that gave it
   * @param strict whether no session takes the place of one that this party contributed to
   */
  BoundSigning(
      Signing signing,
      Order order,
      String coordinator,
      PresignaturePool presignatures,
      RequestBindings bindings,
      boolean strict) {
    this.signing = signing;
    this.order = order;
    this.coordinator = coordinator;
    this.presignatures = presignatures;
    this.bindings = bindings;
    this.strict = strict;
  }

  @Override
  public Beginning begin() throws RefusedException {
    // Before anything is used up: a request that may not be signed costs no presignature.
    if (!(signing.judge() instanceof Beginning.Claim judged)) {
      return new Beginning.AwaitKey();
    }
    SessionPlan plan = signing.plan();
    switch (bindings.judge(plan, strict)) {
      case RequestBindings.Verdict.Free free -> instead = free.instead();
      case RequestBindings.Verdict.Held held -> {
        if (gaveWay) {
          throw RefusedException.boundTo(ByteString.EMPTY);
        }
        gaveWay = true;
        return new Beginning.Await(held.session());
      }
      case RequestBindings.Verdict.Bound bound -> throw RefusedException.boundTo(bound.order());
    }
    Beginning.Claim claim = signing.approved(judged);
    if (plan.work() instanceof SessionPlan.Work.SignPresigned(ByteString id)) {
      presignature = presignatures.take(id, plan, 0, claim.share(), coordinator);
      claim = claim.with(presignature);
    }
    if (bindings.isDeclined(plan.id(), plan.partyIds())) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_NOT_READY, "another party takes no part");
    }
    return claim;
  }

  @Override
  public Optional<ClaimLedger.Binding> binding(@Nullable Step first) {
    ByteString envelope = ByteString.EMPTY;
    if (first != null) {
      if (first.getOutgoingCount() != 1 || first.getOutgoing(0).getRecipient() != 0) {
        throw new IllegalStateException("a presigned signature has one broadcast");
      }
      envelope = first.getOutgoing(0).getEnvelope();
    }
    SessionPlan.Request request = signing.plan().asked();
    return Optional.of(
        new ClaimLedger.Binding(
            request.requester(),
            request.requestId(),
            signing.plan().id(),
            order.toByteString(),
            envelope,
            OrderCheck.instant(signing.intent().getNotAfter())));
  }

  @Override
  public @Nullable SessionId instead() {
    return instead;
  }

  @Override
  public void bound(ClaimLedger.Binding binding) {
    bindings.bound(binding, signing.plan().partyIds(), instead);
  }

  @Override
  public void started() {
    signing.started();
    if (presignature != null) {
      presignature = null;
      presignatures.used();
    }
  }

  @Override
  public boolean maySend(Outgoing message, Instant now) {
    if (message.getRecipient() != 0) {
      return true;
    }
    SessionPlan plan = signing.plan();
    boolean contribution = message.getRound() >= plan.protocol().lastRound();
    // The others rely on it that no contribution comes later, however much waits here.
    return !(contribution && now.isAfter(OrderCheck.instant(order.getDeadline())))
        && bindings.sent(plan.id(), message.getEnvelope(), contribution);
  }

  /** Lasts as long as others may contribute. */
  @Override
  public Optional<Duration> lapse(SessionLimits limits, Instant now) {
    Duration slack = limits.clockSkew().multipliedBy(LAPSE_SKEWS);
    Duration left = Duration.between(now, OrderCheck.instant(order.getDeadline())).plus(slack);
    // Longer than anybody waits: it does not lapse.
    lapses = left.compareTo(limits.maxSessionTime().plus(slack)) <= 0;
    return lapses ? Optional.of(left) : Optional.empty();
  }

  @Override
  public void timedOut(List<Integer> missing) {
    if (lapses) {
      bindings.lapsed(signing.plan().id(), missing);
    }
  }

  @Override
  public Ending complete(Done done) {
    bindings.signed(signing.plan().id(), done);
    return signing.complete(done);
  }

  @Override
  public Set<Integer> exclusions(Abort abort) {
    return signing.exclusions(abort);
  }

  @Override
  public void ended() {
    if (presignature != null) {
      presignatures.burn(presignature);
      presignature = null;
    }
  }
}
