package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.EcdsaTest.intent;
import static io.coterie.coordinator.TestInstallation.createKey;
import static io.coterie.coordinator.TestInstallation.facts;
import static io.coterie.coordinator.TestInstallation.keyIntent;
import static io.coterie.coordinator.TestInstallation.keys;
import static io.coterie.coordinator.TestInstallation.refreshIntent;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.Signature;
import io.coterie.coordinator.verification.Bip340Verifier;
import io.coterie.coordinator.verification.Ed25519Verifier;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.mpc.Vault;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.Presignature;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.RefreshKeyRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TaprootOutput;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.trust.Member;
import io.grpc.ManagedChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The real core on both sides: parties that hold real shares, and the coordinator's observer. */
class NativeObserverTest {
  @TempDir Path folder;
  private RealParties parties;
  private TestInstallation installation;
  private ManagedChannel client;

  /** An installation with three real parties in place of the scripted ones. */
  private void start(String... arguments) {
    NativeMpcCore core = NativeMpcCore.load();
    parties = new RealParties(core, 3);
    installation = new TestInstallation(folder, 3, parties::evidenceKey, core, arguments);
    for (int i = 1; i <= 3; i++) {
      installation.parties.disconnect("p" + i);
      parties.connect(installation.network, "p" + i);
    }
    installation.start();
    client = installation.backend();
  }

  @AfterEach
  void stop() {
    installation.close();
  }

  @Test
  void real_parties_create_a_key_and_sign_and_a_forger_is_excluded() throws Exception {
    // Nobody is left out for being slow.
    start(
        "--coterie.coordinator.signing.min=20s",
        "--coterie.coordinator.signing.initial=20s",
        "--coterie.coordinator.signing.max=20s");
    Key key = installation.createKey(client, "real", 2, 3);
    Signing signing = null;
    for (String message : List.of("one", "two", "x".repeat(65_536))) {
      signing = signsBls(key, message);
    }

    // One that has signed last: a party that is asked after the others may not be asked at all.
    for (int number = 0;
        installation.query("select cause from key_exclusions").isEmpty();
        number++) {
      parties.forger = requireNonNull(signing).getSigningSet(0);
      signing = signsBls(key, "forged " + number);
      assertThat(signing.getSigningSetList()).hasSize(2).doesNotContain(parties.forger);
    }
    assertThat(installation.query("select 'p' || party_id || cause from key_exclusions"))
        .isEqualTo(parties.forger + "ABORT_CAUSE_NOT_ENOUGH_PARTIALS");
  }

  private Signing signsBls(Key key, String message) throws Exception {
    Signing signing =
        signing(client)
            .sign(sign(installation.wallet.sign(signingIntent("real", message).build())));
    assertThat(
            TestBls.verifies(
                key.getPublicKey(),
                message.getBytes(StandardCharsets.UTF_8),
                signing.getSignature().toByteArray()))
        .isTrue();
    return signing;
  }

  @Test
  void an_ecdsa_key_signs_by_rounds_and_with_presignatures_before_and_after_a_refresh()
      throws Exception {
    start(
        "--coterie.coordinator.presignatures.target=4",
        "--coterie.coordinator.presignatures.max-running=2");
    Key key = installation.createEcdsaKey(client, "real", 2, "p1", "p2", "p3");
    for (List<Integer> path : List.of(List.<Integer>of(), List.of(44, 60, 0, 0, 7))) {
      Integer[] numbers = path.toArray(Integer[]::new);
      assertThat(signs(intent("real", 1, numbers)).getPresigned()).isFalse();
      // The pool says how many there are, not what for.
      eventually(() -> signs(intent("real", 2, numbers)).getPresigned());
    }

    // The other parties' shares, so that nothing of the old epoch can be used by accident.
    Key refreshed = refresh("real", Scheme.SCHEME_ECDSA_SECP256K1);
    assertThat(facts(refreshed)).isEqualTo(facts(key).toBuilder().setEpoch(2).build());
    assertThat(signs(intent("real", 3)).getPresigned()).isFalse();
    eventually(() -> signs(intent("real", 4)).getPresigned());

    // A party that signs something else spoils a session, and another quorum signs.
    parties.forger = "p1";
    assertThat(signs(intent("real", 5)).getSigningSetList()).containsExactly("p2", "p3");
  }

  @Test
  void schnorr_keys_sign_by_rounds_and_with_presignatures_before_and_after_a_refresh()
      throws Exception {
    start(
        "--coterie.coordinator.presignatures.target=2",
        "--coterie.coordinator.presignatures.max-running=2");
    for (Scheme scheme : List.of(Scheme.SCHEME_ED25519, Scheme.SCHEME_BIP340_SECP256K1)) {
      parties.forger = "";
      String name = "real-" + scheme.getNumber();
      Key key =
          keys(client)
              .createKey(
                  createKey(
                      installation.wallet.sign(
                          keyIntent(name, 2, "p1", "p2", "p3").setScheme(scheme).build())));
      assertThat(key.getPublicKey().size()).isEqualTo(32);
      assertThat(key.getXpub().isEmpty()).isEqualTo(scheme == Scheme.SCHEME_ED25519);
      for (SigningIntent.Builder intent : schnorrIntents(name, scheme)) {
        assertThat(signsSchnorr(intent).getPresigned()).isFalse();
        eventually(() -> signsSchnorr(intent).getPresigned());
      }
      assertThat(facts(refresh(name, scheme)))
          .isEqualTo(facts(key).toBuilder().setEpoch(2).build());
      SigningIntent.Builder intent = schnorrIntents(name, scheme).getFirst();
      assertThat(signsSchnorr(intent).getPresigned()).isFalse();
      eventually(() -> signsSchnorr(intent).getPresigned());

      // All of a signing set are needed: a party that signs something else is named and left out.
      parties.forger = "p1";
      Signing signing = signsSchnorr(intent);
      assertThat(signing.getSigningSetList()).containsExactly("p2", "p3");
    }
  }

  /** One for each kind of key that signs. */
  private static List<SigningIntent.Builder> schnorrIntents(String name, Scheme scheme) {
    SigningIntent.Builder intent = signingIntent(name, "a message").setScheme(scheme);
    if (scheme == Scheme.SCHEME_ED25519) {
      return List.of(intent);
    }
    intent.setDigest(ByteString.fromHex("5a".repeat(31) + "00"));
    TaprootOutput.Builder tree =
        TaprootOutput.newBuilder().setMerkleRoot(ByteString.fromHex("77".repeat(32)));
    return List.of(
        intent.clone(),
        intent.clone().addDerivationPath(7),
        intent.clone().setTaproot(TaprootOutput.newBuilder()),
        intent.clone().addDerivationPath(7).setTaproot(tree));
  }

  private Signing signsSchnorr(SigningIntent.Builder intent) {
    Signing signing =
        signing(client)
            .sign(sign(installation.wallet.sign(intent.setRequestId(RequestId.next()).build())));
    ResultVerifier verifier =
        intent.getScheme() == Scheme.SCHEME_ED25519 ? new Ed25519Verifier() : new Bip340Verifier();
    assertThat(
            verifier.verifies(
                signing.getPublicKey(),
                intent.hasDigest() ? intent.getDigest() : intent.getMessage(),
                new Signature(signing.getSignature(), OptionalInt.empty())))
        .isTrue();
    assertThat(signing.getDigest()).isEqualTo(intent.getDigest());
    assertThat(signing.hasRecoveryId() || !signing.getDerSignature().isEmpty()).isFalse();
    return signing;
  }

  @Test
  void evidence_of_real_parties_is_judged_for_a_key_generation_and_a_refresh() throws Exception {
    start();
    parties.restarting = "p1";
    installation.createKey(client, "real", 2, 3);
    parties.restarting = "p2";
    assertThat(refresh("real", Scheme.SCHEME_BLS12381).getEpoch()).isEqualTo(2);
    eventually(
        () ->
            installation
                .query(
                    "select string_agg(distinct concat_ws(' ', protocol, cause, accused,"
                        + " verdict), ', ') from abort_evidence"
                        + " where verdict = 'VERDICT_RESTARTED'")
                .equals(
                    "PROTOCOL_ID_BLS_KEYGEN ABORT_CAUSE_PARTY_RESTARTED 1 VERDICT_RESTARTED,"
                        + " PROTOCOL_ID_BLS_REFRESH ABORT_CAUSE_PARTY_RESTARTED 2"
                        + " VERDICT_RESTARTED"));
  }

  private Key refresh(String name, Scheme scheme) {
    SignedIntent intent = installation.wallet.sign(refreshIntent(name, scheme, 1).build());
    return keys(client).refreshKey(RefreshKeyRequest.newBuilder().setSignedIntent(intent).build());
  }

  private Signing signs(SigningIntent.Builder intent) {
    Signing signing = signing(client).sign(sign(installation.wallet.sign(intent.build())));
    assertThat(
            TestEcdsa.verifies(signing.getPublicKey(), intent.getDigest(), signing.getSignature()))
        .isTrue();
    return signing;
  }

  /** Parties with vaults, that believe every order. */
  private static final class RealParties {
    private final Map<Integer, RealParty> parties = new ConcurrentHashMap<>();

    /** The runs of the parties that have a share, by session. */
    private final Map<ByteString, List<Runnable>> waiting = new HashMap<>();

    /** This party signs something else. */
    volatile String forger = "";

    /** This party runs the next session twice. */
    volatile String restarting = "";

    RealParties(NativeMpcCore core, int n) {
      Random random = new Random(5);
      for (int i = 1; i <= n; i++) {
        byte[] dataKey = new byte[32];
        random.nextBytes(dataKey);
        Vault vault = core.openVault(dataKey);
        parties.put(i, new RealParty(this, vault, vault.createIdentity("p" + i)));
      }
    }

    /** Every party of a session uses its share when all of them have theirs. */
    synchronized void stored(ByteString session, Order order, Runnable use) {
      List<Runnable> uses = waiting.computeIfAbsent(session, s -> new ArrayList<>());
      uses.add(use);
      if (uses.size() == order.getSigningSetCount()) {
        uses.forEach(Runnable::run);
      }
    }

    /** The word of all parties of a session, who have all stored their share. */
    List<EvidenceSignature> certificate(CompletedStatement statement, Order order) {
      return order.getSigningSetList().stream()
          .map(
              party ->
                  EvidenceSignature.newBuilder()
                      .setParty(party)
                      .setSignature(parties.get(party).sign(statement, party))
                      .build())
          .toList();
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
    private final Map<ByteString, ByteString> presignatures = new HashMap<>();
    private final Set<ByteString> ended = new HashSet<>();
    private final List<Early> early = new ArrayList<>();
    private final Map<String, byte[]> shares = new HashMap<>();

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
          if (channel.self().name().equals(all.restarting)) {
            all.restarting = "";
            session.close();
            session = start(channel, id, order);
            running.put(id, new Running(order, session));
            take(channel, id, order, session.firstStep());
          }
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
      if (run != null) {
        take(
            channel,
            envelope.getSessionId(),
            run.order(),
            run.session().handle(sender, envelope.getEnvelope().toByteArray()));
      } else if (!ended.contains(envelope.getSessionId())) {
        early.add(new Early(sender, envelope));
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
      byte[] shareIn = shares.getOrDefault(order.getKey(), new byte[0]);
      if (isSigning(order)) {
        SigningIntent intent = SigningIntent.parseFrom(order.getSignedIntent().getPayload());
        ByteString payload = intent.hasDigest() ? intent.getDigest() : intent.getMessage();
        KeyTarget.of(intent).into(config);
        ByteString another = payload.substring(1).concat(payload.substring(0, 1));
        boolean forges = channel.self().name().equals(all.forger);
        if (forges && order.getProtocol() == ProtocolId.PROTOCOL_ID_BLS_SIGN) {
          MpcSession other =
              vault.start(config.setPayload(another).build(), identity.sealed(), shareIn);
          return new Forging(
              vault.start(config.setPayload(payload).build(), identity.sealed(), shareIn), other);
        }
        config.setPayload(forges ? another : payload);
      } else {
        KeyTarget.of(order).into(config);
        config.setPresignatureCount(order.getPresignatureCount());
      }
      if (!order.getPresignatureId().isEmpty()) {
        config
            .setPresignatureId(order.getPresignatureId())
            .setSealedPresignature(presignatures.remove(order.getPresignatureId()));
        shareIn = new byte[0];
      }
      return vault.start(config.build(), identity.sealed(), shareIn);
    }

    /** Sends the contribution to another message in the place of its own, in the right session. */
    private record Forging(MpcSession session, MpcSession other) implements MpcSession {
      private static final int CONTRIBUTION_BYTES = 96;

      @Override
      public Step firstStep() {
        Step.Builder step = session.firstStep().toBuilder();
        ByteString wrong = other.firstStep().getOutgoing(0).getEnvelope();
        Outgoing.Builder out = step.getOutgoingBuilder(0);
        int header = out.getEnvelope().size() - CONTRIBUTION_BYTES;
        out.setEnvelope(out.getEnvelope().substring(0, header).concat(wrong.substring(header)));
        return step.build();
      }

      @Override
      public Step handle(int authenticatedSender, byte[] envelope) {
        return session.handle(authenticatedSender, envelope);
      }

      @Override
      public void close() {
        session.close();
        other.close();
      }
    }

    private static boolean isSigning(Order order) {
      return order.getSignedIntent().getPayloadType().contains("signing-intent");
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
      if (step.hasDone() || step.hasAbort()) {
        running.remove(id).session().close();
        ended.add(id);
      }
      if (step.hasDone()) {
        done(channel, id, order, step.getDone());
      }
      if (step.hasAbort() && order.getPresignatureCount() == 0 && !isSigning(order)) {
        report(channel, SessionReport.newBuilder().setSessionId(id).setAborted(step.getAbort()));
      }
    }

    private void done(SecureChannel channel, ByteString id, Order order, Done done) {
      Completed.Builder completed = Completed.newBuilder();
      if (!done.getSealedShare().isEmpty()) {
        shares.put(done.getKeyPublic().getKeyId(), done.getSealedShare().toByteArray());
        CompletedStatement statement =
            CompletedStatement.stored(
                "test",
                id,
                done.getKeyPublic(),
                IntentVerifier.digest(order.getSignedIntent().getPayload()));
        completed
            .setKeyPublic(done.getKeyPublic())
            .setIntentDigest(statement.intentDigest())
            .setEvidenceSignature(sign(statement, channel.self().partyId()));
        all.stored(
            id,
            order,
            () ->
                report(
                    channel,
                    id,
                    completed
                        .clone()
                        .setActive(true)
                        .setUseSignature(sign(statement.inUse(), channel.self().partyId()))
                        .addAllCertificate(all.certificate(statement, order))));
      } else if (done.getPresignaturesCount() > 0) {
        for (Presignature made : done.getPresignaturesList()) {
          presignatures.put(made.getId(), made.getSealed());
          completed.addPresignatureIds(made.getId());
        }
      } else {
        return;
      }
      report(channel, id, completed);
    }

    ByteString sign(CompletedStatement statement, int self) {
      return ByteString.copyFrom(
          vault.signStatement(identity.sealed(), statement.of(self).toByteArray()));
    }

    private static void report(SecureChannel channel, ByteString id, Completed.Builder completed) {
      report(channel, SessionReport.newBuilder().setSessionId(id).setCompleted(completed));
    }

    private static void report(SecureChannel channel, SessionReport.Builder report) {
      channel.broadcast(
          channel.roster().coordinators(),
          PartyMessage.newBuilder().setReport(report).build().toByteArray(),
          SendOptions.online(null));
    }
  }
}
