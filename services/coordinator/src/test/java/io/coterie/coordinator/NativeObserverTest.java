package io.coterie.coordinator;

import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.Member;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.mpc.Vault;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.grpc.ManagedChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The real core on both sides: parties that hold real shares, and the coordinator's observer. */
class NativeObserverTest {
  @TempDir Path folder;

  @Test
  void real_parties_create_a_key_and_sign_and_a_forger_is_excluded() throws Exception {
    NativeMpcCore core = NativeMpcCore.load();
    RealParties parties = new RealParties(core, 3);
    try (TestInstallation installation =
        new TestInstallation(folder, 3, parties::evidenceKey, core)) {
      for (int i = 1; i <= 3; i++) {
        installation.parties.disconnect("p" + i);
        parties.connect(installation.network, "p" + i);
      }
      installation.start();
      ManagedChannel client = installation.backend();
      Key key = installation.createKey(client, "real", 2, 3);
      for (String message : List.of("one", "two", "x".repeat(65_536))) {
        Signing signing =
            signing(client)
                .sign(sign(installation.wallet.sign(signingIntent("real", message).build())));
        assertThat(
                TestBls.verifies(
                    key.getPublicKey(),
                    message.getBytes(StandardCharsets.UTF_8),
                    signing.getSignature().toByteArray()))
            .isTrue();
      }

      parties.forger = "p1";
      Signing signing =
          signing(client)
              .sign(sign(installation.wallet.sign(signingIntent("real", "forged").build())));
      assertThat(signing.getSigningSetList()).containsExactly("p2", "p3");
      assertThat(
              TestBls.verifies(
                  key.getPublicKey(),
                  "forged".getBytes(StandardCharsets.UTF_8),
                  signing.getSignature().toByteArray()))
          .isTrue();
    }
  }

  /** Parties with vaults, that believe every order. */
  private static final class RealParties {
    private final Map<Integer, RealParty> parties = new ConcurrentHashMap<>();

    /** This party signs something else. */
    volatile String forger = "";

    RealParties(NativeMpcCore core, int n) {
      Random random = new Random(5);
      for (int i = 1; i <= n; i++) {
        byte[] dataKey = new byte[32];
        random.nextBytes(dataKey);
        Vault vault = core.openVault(dataKey);
        parties.put(i, new RealParty(this, vault, vault.createIdentity("p" + i)));
      }
    }

    byte[] evidenceKey(int party) {
      return parties.get(party).identity.evidenceKey();
    }

    void connect(MemoryNetwork network, String name) {
      SecureChannel channel = network.channel(name);
      RealParty party = parties.get(channel.self().partyId());
      channel.onMessage(m -> party.receive(channel, m));
      channel.start();
    }
  }

  /** One of them; used on the one thread of its channel. */
  private static final class RealParty {
    private record Early(int sender, SessionEnvelope envelope) {}

    private record Running(Order order, MpcSession session) {}

    private final RealParties all;
    private final Vault vault;
    private final Vault.SealedIdentity identity;
    private final Map<ByteString, Running> running = new HashMap<>();
    private final List<Early> early = new ArrayList<>();
    private byte[] share = {};

    RealParty(RealParties all, Vault vault, Vault.SealedIdentity identity) {
      this.all = all;
      this.vault = vault;
      this.identity = identity;
    }

    void receive(SecureChannel channel, InboundMessage inbound) {
      try {
        PartyMessage message = PartyMessage.parseFrom(inbound.body());
        if (message.hasOrder()) {
          MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
          sha256.update("coterie/session/1".getBytes(StandardCharsets.US_ASCII));
          ByteString id = ByteString.copyFrom(sha256.digest(message.getOrder().toByteArray()));
          Order order = Order.parseFrom(message.getOrder());
          MpcSession session = start(channel, id, order);
          running.put(id, new Running(order, session));
          take(channel, id, order, session.firstStep());
          for (Early e : List.copyOf(early)) {
            if (e.envelope().getSessionId().equals(id)) {
              early.remove(e);
              handle(channel, e.sender(), e.envelope());
            }
          }
        } else if (message.hasEnvelope()) {
          handle(channel, inbound.sender().partyId(), message.getEnvelope());
        }
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }

    private void handle(SecureChannel channel, int sender, SessionEnvelope envelope) {
      Running run = running.get(envelope.getSessionId());
      if (run == null) {
        early.add(new Early(sender, envelope));
      } else if (run.order().getProtocol() == ProtocolId.PROTOCOL_ID_BLS_KEYGEN_1) {
        take(
            channel,
            envelope.getSessionId(),
            run.order(),
            run.session().handle(sender, envelope.getEnvelope().toByteArray()));
      }
    }

    private MpcSession start(SecureChannel channel, ByteString id, Order order) throws Exception {
      SessionConfig.Builder config =
          SessionConfig.newBuilder()
              .setProtocol(order.getProtocol())
              .setSessionId(id)
              .setSelf(channel.self().partyId())
              .setThreshold(order.getThreshold())
              .setKeyId(order.getKey())
              .setEpoch(order.getEpoch());
      for (int party : order.getSigningSetList()) {
        Member member = channel.roster().byPartyId(party).orElseThrow();
        config.addParties(
            Party.newBuilder()
                .setId(party)
                .setEvidenceKey(ByteString.copyFrom(member.evidenceKey())));
      }
      if (order.getProtocol() == ProtocolId.PROTOCOL_ID_BLS_SIGN_1) {
        config.setPayload(
            channel.self().name().equals(all.forger)
                ? ByteString.copyFromUtf8("something else")
                : SigningIntent.parseFrom(order.getSignedIntent().getPayload()).getMessage());
      }
      return vault.start(config.build(), identity.sealed(), share);
    }

    private void take(SecureChannel channel, ByteString id, Order order, Step step) {
      List<Member> everyone = new ArrayList<>(channel.roster().coordinators());
      order.getSigningSetList().stream()
          .filter(p -> p != channel.self().partyId())
          .forEach(p -> everyone.add(channel.roster().byPartyId(p).orElseThrow()));
      for (Outgoing out : step.getOutgoingList()) {
        PartyMessage message =
            PartyMessage.newBuilder()
                .setEnvelope(
                    SessionEnvelope.newBuilder().setSessionId(id).setEnvelope(out.getEnvelope()))
                .build();
        channel.broadcast(
            out.getRecipient() == 0
                ? everyone
                : List.of(channel.roster().byPartyId(out.getRecipient()).orElseThrow()),
            message.toByteArray(),
            SendOptions.online(null));
      }
      if (step.hasDone() && order.getProtocol() == ProtocolId.PROTOCOL_ID_BLS_KEYGEN_1) {
        share = step.getDone().getSealedShare().toByteArray();
        channel.broadcast(
            channel.roster().coordinators(),
            PartyMessage.newBuilder()
                .setReport(
                    SessionReport.newBuilder()
                        .setSessionId(id)
                        .setCompleted(
                            Completed.newBuilder().setKeyPublic(step.getDone().getKeyPublic())))
                .build()
                .toByteArray(),
            SendOptions.online(null));
      }
    }
  }
}
