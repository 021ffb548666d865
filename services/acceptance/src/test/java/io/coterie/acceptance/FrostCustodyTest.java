package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.util.Timestamps;
import io.coterie.acceptance.Deviation.Kind;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.Settings;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.scheme.TaprootKey;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TaprootOutput;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.trust.Member;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Ed25519 and BIP-340 keys from end to end; after each test, no nonce was ever shown twice. */
@Timeout(600)
class FrostCustodyTest {
  /** The process of the coordinator that presigning orders come from. */
  private static final ByteString INCARNATION = ByteString.copyFrom(new byte[16]);

  private static final String CORRUPT = "party-4";
  private static final String MALLORY = "mallory";
  private static final int POOL = 4;
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  /** A call that waits for a party to be started again, on a busy machine. */
  private static final Duration RESTART = Duration.ofSeconds(240);

  private static final ByteString MESSAGE = ByteString.copyFromUtf8("withdrawal 4711");
  private static final ByteString DIGEST = ByteString.fromHex("5a".repeat(31) + "00");

  private static Cluster cluster;
  private static WalletBackend wallet;
  private static OutsideVerifier outside;

  /** Requests that ended with a signature. */
  private static int signed;

  private static int keys;

  /** The schemes and their protocols. */
  private enum Suite {
    ED25519(
        Scheme.SCHEME_ED25519,
        ProtocolId.PROTOCOL_ID_ED25519_SIGN,
        ProtocolId.PROTOCOL_ID_ED25519_PRESIGN,
        ProtocolId.PROTOCOL_ID_ED25519_SIGN_PRESIGNED),
    BIP340(
        Scheme.SCHEME_BIP340_SECP256K1,
        ProtocolId.PROTOCOL_ID_BIP340_SIGN,
        ProtocolId.PROTOCOL_ID_BIP340_PRESIGN,
        ProtocolId.PROTOCOL_ID_BIP340_SIGN_PRESIGNED);

    final Scheme scheme;
    final ProtocolId sign;
    final ProtocolId presign;
    final ProtocolId signPresigned;

    Suite(Scheme scheme, ProtocolId sign, ProtocolId presign, ProtocolId signPresigned) {
      this.scheme = scheme;
      this.sign = sign;
      this.presign = presign;
      this.signPresigned = signPresigned;
    }

    SigningIntent.Builder intent(Key key) {
      SigningIntent.Builder intent = WalletBackend.signingIntent(shortName(key), scheme);
      return this == ED25519 ? intent.setMessage(MESSAGE) : intent.setDigest(DIGEST);
    }
  }

  @BeforeAll
  static void start() {
    WireLog.clear();
    cluster =
        Cluster.of(4)
            .threshold(2)
            .setting(Settings.COORDINATOR, "--coterie.coordinator.presignatures.target=" + POOL)
            .setting(Settings.COORDINATOR, "--" + WireLog.PROPERTY + "=true")
            .setting(CORRUPT, "--" + Deviation.PROPERTY + "=true")
            .secondCoordinator(MALLORY)
            .folder(Path.of("target", "cluster-frost"))
            .progress(line -> System.out.println("progress: frost: " + line))
            .start();
    wallet = cluster.wallet();
    outside = OutsideVerifier.start(ProjectRoot.PATH);
  }

  @AfterAll
  static void stop() {
    Deviation.current = new Deviation(Kind.NONE, 0);
    if (outside != null) {
      outside.close();
    }
    if (cluster != null) {
      cluster.close();
    }
  }

  @AfterEach
  void nothingIsUsedTwice() {
    Deviation.current = new Deviation(Kind.NONE, 0);
    assertThat(WireLog.signatures()).as("one signature for each request").isEqualTo(signed);
    assertThat(WireLog.points()).isGreaterThanOrEqualTo(4 * signed);
    assertThat(WireLog.shownTwice()).isEmpty();
  }

  private static String shortName(Key key) {
    return key.getName().substring("keys/".length());
  }

  private static Key createKey(Suite suite, int threshold, List<String> holders) {
    Key key =
        wallet.createKey(
            "%s-%d".formatted(suite.name().toLowerCase(), ++keys),
            suite.scheme,
            threshold,
            holders);
    assertThat(key.getState()).isEqualTo(Key.State.ACTIVE);
    assertThat(key.getEpoch()).isEqualTo(1);
    assertThat(key.getPublicKey().size()).isEqualTo(32);
    assertThat(key.getXpub().isEmpty()).isEqualTo(suite == Suite.ED25519);
    return key;
  }

  /** The key that an intent asks to sign with. */
  private static ByteString verifyingKey(Key key, SigningIntent intent) {
    if (key.getXpub().isEmpty()) {
      return key.getPublicKey();
    }
    KeyTarget target = KeyTarget.of(intent);
    ByteString internal =
        TaprootKey.xOnly(ExtendedPublicKey.parse(key.getXpub()).derive(target.path()).publicKey());
    return target.taproot().map(root -> TaprootKey.output(internal, root)).orElse(internal);
  }

  private static Signing sign(Key key, SigningIntent.Builder intent) {
    SigningIntent asked = intent.build();
    SignRequest request = WalletBackend.signRequest(wallet.intents().sign(asked));
    Signing signing = wallet.signings().sign(request);
    check(key, asked, signing);
    assertThat(wallet.signings().sign(request)).isEqualTo(signing);
    return signing;
  }

  /** Checks what holds for every signature. */
  private static void check(Key key, SigningIntent asked, Signing signing) {
    signed++;
    assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(signing.getSigningSetList()).hasSize(key.getThreshold());
    assertThat(signing.getPublicKey()).isEqualTo(verifyingKey(key, asked));
    ByteString signature = signing.getSignature();
    if (key.getScheme() == Scheme.SCHEME_ED25519) {
      assertThat(outside.ed25519(signing.getPublicKey(), asked.getMessage(), signature).valid())
          .isTrue();
      assertThat(
              Ed25519.verify(
                  signature.toByteArray(),
                  0,
                  signing.getPublicKey().toByteArray(),
                  0,
                  asked.getMessage().toByteArray(),
                  0,
                  asked.getMessage().size()))
          .isTrue();
    } else {
      assertThat(signing.getDigest()).isEqualTo(asked.getDigest());
      assertThat(outside.bip340(signing.getPublicKey(), asked.getDigest(), signature).valid())
          .isTrue();
    }
    assertThat(
            wallet
                .signings()
                .getSigning(GetSigningRequest.newBuilder().setName(signing.getName()).build()))
        .isEqualTo(signing);
  }

  /** Signs until a presignature was there for it. */
  private static Signing signPresigned(Key key, SigningIntent.Builder intent) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (System.nanoTime() < end) {
      Signing signing = sign(key, intent.setRequestId(RequestId.next()));
      if (signing.getPresigned()) {
        return signing;
      }
      LockSupport.parkNanos(Duration.ofMillis(50).toNanos());
    }
    throw new AssertionError("no presignature came for " + key.getName());
  }

  private static void await(String what, BooleanSupplier condition) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean() && System.nanoTime() < end) {
      LockSupport.parkNanos(Duration.ofMillis(50).toNanos());
    }
    assertThat(condition.getAsBoolean()).as(what).isTrue();
  }

  @ParameterizedTest
  @EnumSource
  void keysOfEveryShapeSignByRoundsWithPresignaturesAndAfterARefresh(Suite suite) {
    for (int parties = 2; parties <= 4; parties++) {
      for (int threshold = 2; threshold <= parties; threshold++) {
        List<String> holders = cluster.partyNames().subList(4 - parties, 4);
        Key key = createKey(suite, threshold, holders);
        assertThat(sign(key, suite.intent(key)).getPresigned()).isFalse();
        signPresigned(key, suite.intent(key));
        Key refreshed = wallet.refreshKey(shortName(key), suite.scheme, 1);
        assertThat(refreshed.toBuilder().clearAttestation().build())
            .isEqualTo(key.toBuilder().clearAttestation().setEpoch(2).build());
        assertThat(sign(key, suite.intent(key)).getPresigned()).isFalse();
      }
    }
  }

  @Test
  void aBip340KeySignsAsItsDescendantsAndTheirOutputKeys() {
    Key key = createKey(Suite.BIP340, 2, cluster.partyNames().subList(0, 3));
    TaprootOutput tree =
        TaprootOutput.newBuilder().setMerkleRoot(ByteString.fromHex("77".repeat(32))).build();
    Set<ByteString> publicKeys = new HashSet<>();
    for (List<Integer> path : List.of(List.<Integer>of(), List.of(86, 0, 7))) {
      SigningIntent.Builder intent = Suite.BIP340.intent(key).addAllDerivationPath(path);
      for (SigningIntent.Builder target :
          List.of(
              intent.clone(),
              intent.clone().setTaproot(TaprootOutput.getDefaultInstance()),
              intent.clone().setTaproot(tree))) {
        Signing first = sign(key, target.setRequestId(RequestId.next()));
        assertThat(first.getPresigned()).as("made for another key").isFalse();
        publicKeys.add(first.getPublicKey());
        assertThat(signPresigned(key, target).getPublicKey()).isEqualTo(first.getPublicKey());
      }
    }
    assertThat(publicKeys).hasSize(6);
    Refusals.refused(
        ErrorReason.INTENT_MALFORMED,
        () ->
            wallet.sign(
                Suite.BIP340
                    .intent(key)
                    .setTaproot(TaprootOutput.newBuilder().setMerkleRoot(DIGEST.substring(1)))));
  }

  private record Work(Key key, SigningIntent intent, ListenableFuture<Signing> answer) {}

  /**
   * While only the corrupt party can complete a quorum it spoils every session; it is found out,
   * and the very calls that it spoiled are answered once another party is back.
   */
  @Test
  void aWrongShareNamesItsSenderAndTheSameCallGoesOnWithoutIt() throws Exception {
    String victim = "party-2";
    List<Key> byRounds = new ArrayList<>();
    List<Key> presigned = new ArrayList<>();
    for (Suite suite : Suite.values()) {
      byRounds.add(createKey(suite, 2, List.of("party-1", victim, CORRUPT)));
      presigned.add(createKey(suite, 2, List.of("party-1", victim, CORRUPT)));
    }
    cluster.kill(victim);
    List<Work> spoilt = new ArrayList<>();
    double before = wrongShares();
    try {
      for (Suite suite : Suite.values()) {
        assertThat(
                signPresigned(
                        presigned.get(suite.ordinal()),
                        suite.intent(presigned.get(suite.ordinal())))
                    .getSigningSetList())
            .containsExactly("party-1", CORRUPT);
      }
      Deviation.current = new Deviation(Kind.WRONG_SHARE, 0);
      for (Suite suite : Suite.values()) {
        for (Key key : List.of(byRounds.get(suite.ordinal()), presigned.get(suite.ordinal()))) {
          SigningIntent intent = suite.intent(key).build();
          spoilt.add(
              new Work(
                  key,
                  intent,
                  wallet
                      .signingsAsync()
                      .withDeadlineAfter(RESTART.toSeconds(), TimeUnit.SECONDS)
                      .sign(WalletBackend.signRequest(wallet.intents().sign(intent)))));
        }
      }
      await("every call is spoilt", () -> wrongShares() >= before + spoilt.size());
      for (Work work : spoilt) {
        assertThat(work.answer().isDone() ? work.answer().get() : null)
            .as("what nobody but the corrupt party could have helped to sign")
            .isNull();
      }
    } finally {
      cluster.restart(victim);
    }
    for (Work work : spoilt) {
      Signing signing = work.answer().get(RESTART.toSeconds(), TimeUnit.SECONDS);
      check(work.key(), work.intent(), signing);
      assertThat(signing.getSigningSetList()).containsExactly("party-1", victim);
      assertThat(signing.getSessions()).isGreaterThanOrEqualTo(2);
    }
    // It stays left out, though it deviates no more.
    Deviation.current = new Deviation(Kind.NONE, 0);
    for (Suite suite : Suite.values()) {
      Key key = byRounds.get(suite.ordinal());
      assertThat(sign(key, suite.intent(key)).getSigningSetList())
          .containsExactly("party-1", victim);
    }
  }

  private static double wrongShares() {
    return cluster
        .coordinator()
        .metrics()
        .sum("coterie_sessions_total", s -> s.label("cause").equals("wrong_partial_signature"));
  }

  @ParameterizedTest
  @EnumSource
  void aWrongShareWhereEveryPartyIsNeededNamesItsSender(Suite suite) {
    Key key = createKey(suite, 2, List.of("party-1", CORRUPT));
    Deviation.current = new Deviation(Kind.WRONG_SHARE, 0);
    assertThat(
            Refusals.refused(ErrorReason.PARTY_MISBEHAVED, () -> wallet.sign(suite.intent(key)))
                .getMetadataOrThrow("party"))
        .isEqualTo(CORRUPT);
  }

  @Test
  void aSignerThatIsKilledWithAFullPoolAndACoordinatorThatStartsAgainRepeatNothing() {
    String victim = "party-3";
    List<Key> all = new ArrayList<>();
    for (Suite suite : Suite.values()) {
      Key key = createKey(suite, 2, List.of("party-2", victim));
      all.add(key);
      signPresigned(key, suite.intent(key));
    }
    cluster.kill(victim);
    cluster.restart(victim);
    for (Suite suite : Suite.values()) {
      Key key = all.get(suite.ordinal());
      sign(key, suite.intent(key));
      signPresigned(key, suite.intent(key));
    }
    cluster.coordinator().close();
    cluster.coordinator().start();
    cluster.coordinator().awaitReady(PATIENCE);
    wallet
        .keys()
        .withWaitForReady()
        .getKey(GetKeyRequest.newBuilder().setName(all.getFirst().getName()).build());
    for (Suite suite : Suite.values()) {
      Key key = all.get(suite.ordinal());
      sign(key, suite.intent(key));
      signPresigned(key, suite.intent(key));
    }
  }

  // ---- a coordinator that everybody pins, and that lies ----------------------------------------

  private static final class Mallory implements AutoCloseable {
    private record Report(int party, SessionReport said) {}

    private final BlockingQueue<Report> reports = new LinkedBlockingQueue<>();
    private final BlockingQueue<ByteString> envelopes = new LinkedBlockingQueue<>();
    private final SecureChannel channel;
    private final List<Member> parties;

    Mallory(List<Integer> set) throws Exception {
      channel =
          cluster
              .members()
              .openChannel(cluster.members().secondCoordinator(), cluster.members().roster());
      parties = set.stream().map(id -> channel.roster().byPartyId(id).orElseThrow()).toList();
      channel.onMessage(this::receive);
      channel.start();
      channel
          .established(parties)
          .toCompletableFuture()
          .get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }

    private void receive(InboundMessage inbound) {
      try {
        PartyMessage message = PartyMessage.parseFrom(inbound.body());
        if (message.hasReport()) {
          reports.add(new Report(inbound.sender().partyId(), message.getReport()));
        } else if (message.hasEnvelope()) {
          WireLog.saw(message.getEnvelope().getEnvelope());
          envelopes.add(message.getEnvelope().getEnvelope());
        }
      } catch (InvalidProtocolBufferException e) {
        throw new AssertionError(e);
      }
    }

    Order.Builder order(ProtocolId protocol, Key key) {
      byte[] nonce = new byte[32];
      new SecureRandom().nextBytes(nonce);
      Order.Builder order =
          Order.newBuilder()
              .setCoordinatorNonce(ByteString.copyFrom(nonce))
              .setProtocol(protocol)
              .setKey(key.getName())
              .setEpoch(1)
              .setThreshold(key.getThreshold())
              .setDeadline(Timestamps.fromMillis(System.currentTimeMillis() + 30_000));
      parties.forEach(party -> order.addSigningSet(party.partyId()));
      return order;
    }

    Order signing(ProtocolId protocol, Key key, SigningIntent.Builder intent, ByteString id) {
      return order(protocol, key)
          .setSignedIntent(wallet.intents().sign(intent.build()))
          .setPresignatureId(id)
          .build();
    }

    void give(Order order) throws Exception {
      channel
          .broadcast(
              parties,
              PartyMessage.newBuilder().setOrder(order.toByteString()).build().toByteArray(),
              SendOptions.online(null))
          .toCompletableFuture()
          .get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }

    /**
     * Gives an order that every party answers with a report. A party that still follows a session
     * of that very order does not answer: it is given again until all have.
     */
    Collection<SessionReport> answers(Order order) throws Exception {
      MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
      sha256.update("coterie/session/1".getBytes(StandardCharsets.US_ASCII));
      ByteString session = ByteString.copyFrom(sha256.digest(order.toByteArray()));
      Map<Integer, SessionReport> answers = new HashMap<>();
      long end = System.nanoTime() + PATIENCE.toNanos();
      give(order);
      while (answers.size() < parties.size()) {
        Report report = reports.poll(2, TimeUnit.SECONDS);
        if (report == null) {
          assertThat(System.nanoTime()).as("an answer of each party in time").isLessThan(end);
          give(order);
        } else if (report.said().getSessionId().equals(session)) {
          answers.putIfAbsent(report.party(), report.said());
        }
      }
      return answers.values();
    }

    void refused(RefusalReason reason, Order order) throws Exception {
      for (SessionReport report : answers(order)) {
        assertThat(report.getRefused().getReason()).as("%s", report).isEqualTo(reason);
      }
    }

    void signs(Order order, int envelopesExpected) throws Exception {
      envelopes.clear();
      give(order);
      for (int i = 0; i < envelopesExpected; i++) {
        assertThat(envelopes.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS))
            .as("an envelope of the parties")
            .isNotNull();
      }
    }

    /** The ids of what the parties made, on which they agree. */
    List<ByteString> presign(Order order) throws Exception {
      Set<List<ByteString>> ids = new HashSet<>();
      for (SessionReport report : answers(order)) {
        ids.add(report.getCompleted().getPresignatureIdsList());
      }
      assertThat(ids).hasSize(1);
      assertThat(ids.iterator().next())
          .hasSize(order.getPresignatureCount())
          .doesNotHaveDuplicates()
          .allMatch(id -> id.size() == 32);
      return ids.iterator().next();
    }

    @Override
    public void close() {
      channel.close();
    }
  }

  @Test
  void aCoordinatorThatReplaysOrdersAndPresignaturesGetsNothingTwice() throws Exception {
    List<Key> shared = new ArrayList<>();
    for (Suite suite : Suite.values()) {
      shared.add(createKey(suite, 2, cluster.partyNames().subList(0, 3)));
    }
    try (Mallory mallory = new Mallory(List.of(1, 2))) {
      for (Suite suite : Suite.values()) {
        Key key = shared.get(suite.ordinal());
        Order byRounds = mallory.signing(suite.sign, key, suite.intent(key), ByteString.EMPTY);
        mallory.signs(byRounds, 4);
        mallory.refused(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED, byRounds);

        Order presign =
            mallory
                .order(suite.presign, key)
                .setPresignatureCount(2)
                .setCoordinatorIncarnation(INCARNATION)
                .build();
        ByteString id = mallory.presign(presign).getLast();
        // Not for another key: the session costs nobody its presignature.
        if (suite == Suite.BIP340) {
          for (SigningIntent.Builder other :
              List.of(
                  suite.intent(key).addDerivationPath(7),
                  suite.intent(key).setTaproot(TaprootOutput.getDefaultInstance()))) {
            mallory.refused(
                RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN,
                mallory.signing(suite.signPresigned, key, other, id));
          }
        }
        Order presigned = mallory.signing(suite.signPresigned, key, suite.intent(key), id);
        mallory.signs(presigned, 2);
        mallory.refused(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN, presigned);
        mallory.refused(
            RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN,
            mallory.signing(suite.signPresigned, key, suite.intent(key), id));
        for (int count : new int[] {0, 17, -1}) {
          mallory.refused(
              RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
              mallory
                  .order(suite.presign, key)
                  .setPresignatureCount(count)
                  .setCoordinatorIncarnation(INCARNATION)
                  .build());
        }
        mallory.refused(
            RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
            mallory.signing(suite.sign, key, suite.intent(key), ByteString.EMPTY).toBuilder()
                .setTaproot(TaprootOutput.getDefaultInstance())
                .build());
      }
      mallory.refused(
          RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
          mallory
              .order(Suite.ED25519.presign, shared.get(Suite.ED25519.ordinal()))
              .setPresignatureCount(1)
              .setCoordinatorIncarnation(INCARNATION)
              .setTaproot(TaprootOutput.getDefaultInstance())
              .build());
    }
    for (Suite suite : Suite.values()) {
      Key key = shared.get(suite.ordinal());
      sign(key, suite.intent(key));
    }
  }
}
