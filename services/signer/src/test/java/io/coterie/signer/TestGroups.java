package io.coterie.signer;

import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.signer.channel.ChannelNetwork;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.group.ApprovalCheck;
import io.coterie.signer.group.GroupPorts;
import io.coterie.signer.group.GroupService;
import io.coterie.signer.order.ApprovalGate;
import io.coterie.signer.order.NeededApprovals;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.GroupCore;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.session.SessionService;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.telemetry.SignerMetrics;
import io.coterie.trust.Roster;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The groups of a signer of {@link Installation}, wired as in production; none with a fake core.
 */
final class TestGroups implements AutoCloseable {
  private final @Nullable GroupService service;

  TestGroups(
      ProtocolCore core,
      ChannelNetwork network,
      PolicyGate gate,
      PartyStore store,
      ClaimLedger claims,
      SessionService sessions,
      SessionLimits limits,
      SignerMetrics metrics,
      Clock clock,
      WorkPool pool) {
    if (!(core instanceof GroupCore calls)) {
      service = null;
      return;
    }
    service =
        new GroupService(
            new GroupPorts(
                network,
                gate,
                new GroupPorts.Memory(
                    store.groups(),
                    store.tickets(),
                    claims,
                    sessions.disk(),
                    store.holds(),
                    sessions::mayHaveForgotten),
                limits,
                core,
                calls,
                store.audit(),
                metrics,
                clock,
                new SecureRandom()),
            pool);
    network.deliverTo(service);
  }

  /**
   * A policy that asks for approvals as well.
   *
   * @param judging is told of each intent first
   * @param needed of any requester; null if none are
   */
  static PolicyGate gate(
      PolicyGate policy,
      Consumer<SignedIntent> judging,
      Supplier<@Nullable NeededApprovals> needed) {
    return new PolicyGate() {
      @Override
      public VerifiedIntent admit(SignedIntent intent) throws RefusedException {
        judging.accept(intent);
        return policy.admit(intent);
      }

      @Override
      public Optional<NeededApprovals> approvals(String requester) {
        return Optional.ofNullable(needed.get());
      }
    };
  }

  /** The judge of approvals of a signer; with a fake core there is nothing to judge. */
  static ApprovalGate approvals(ProtocolCore core, PartyStore store, Roster roster, WorkPool pool) {
    return core instanceof GroupCore calls
        ? new ApprovalCheck(store.groups(), roster, calls, pool::nanos)
        : ApprovalGate.WITHOUT_GROUPS;
  }

  @Override
  public void close() {
    if (service != null) {
      service.close();
    }
  }
}
