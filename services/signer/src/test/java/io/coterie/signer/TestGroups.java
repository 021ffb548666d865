package io.coterie.signer;

import io.coterie.signer.channel.ChannelNetwork;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.group.GroupPorts;
import io.coterie.signer.group.GroupService;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.GroupCore;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.session.SessionService;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.telemetry.SignerMetrics;
import java.security.SecureRandom;
import java.time.Clock;
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

  @Override
  public void close() {
    if (service != null) {
      service.close();
    }
  }
}
