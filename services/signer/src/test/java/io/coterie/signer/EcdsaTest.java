package io.coterie.signer;

import static java.nio.file.StandardCopyOption.REPLACE_EXISTING;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.KeyTrouble;
import io.coterie.signer.storage.PartyStore;
import io.coterie.trust.Member;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.crypto.params.ECDomainParameters;
import org.bouncycastle.crypto.params.ECPublicKeyParameters;
import org.bouncycastle.crypto.signers.ECDSASigner;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Three signers with the native core make ECDSA signatures that an outside verifier accepts. */
class EcdsaTest {
  private static final String KEY = "keys/main";
  private static final X9ECParameters CURVE = CustomNamedCurves.getByName("secp256k1");

  /**
   * The body of the last round: nonce point, then two scalars. Such envelopes have no signature.
   */
  private static final int LAST_BODY_BYTES = 33 + 2 * 32;

  @TempDir Path folder;
  private NativeParties cores;
  private Installation i;

  /** The broadcasts of the last rounds, by session: its nonce points. */
  private final Map<ByteString, Set<ByteString>> noncePoints = new HashMap<>();

  @BeforeEach
  void start() {
    cores = new NativeParties();
    i = new Installation(folder, cores.evidence(), cores::open);
    i.limits = Installation.quick();
    i.start();
    i.createEcdsaKey(KEY, 2);
    i.network.tap(
        (_, to, body) -> {
          logNoncePoint(to.partyId() == 0, body);
          return body;
        });
  }

  @AfterEach
  void stop() {
    i.close();
    cores.close();
  }

  private void logNoncePoint(boolean toCoordinator, byte[] body) {
    try {
      PartyMessage message = PartyMessage.parseFrom(body);
      if (toCoordinator && message.hasEnvelope()) {
        SessionEnvelope envelope = message.getEnvelope();
        int at = envelope.getEnvelope().size() - LAST_BODY_BYTES;
        synchronized (noncePoints) {
          noncePoints
              .computeIfAbsent(envelope.getSessionId(), _ -> new HashSet<>())
              .add(envelope.getEnvelope().substring(at, at + 33));
        }
      }
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  private KeyPublic keyPublic() {
    return i.party("alpha").store.shares().find(KEY).orElseThrow().keyPublic();
  }

  private static ByteString digest() {
    byte[] digest = new byte[32];
    new SecureRandom().nextBytes(digest);
    return ByteString.copyFrom(digest);
  }

  private Order.Builder order(ProtocolId protocol, int... set) {
    return i.coordinator.order(protocol, KEY, 2, set).setEpoch(keyPublic().getEpoch());
  }

  private static List<Integer> path(Integer... numbers) {
    return List.of(numbers);
  }

  /** Signs a digest, with a presignature if there is an id, and verifies outside. */
  private Done sign(ByteString presignature, List<Integer> path, int... set) {
    ByteString digest = digest();
    ProtocolId protocol =
        presignature.isEmpty()
            ? ProtocolId.PROTOCOL_ID_ECDSA_SIGN
            : ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED;
    SessionId session =
        i.coordinator.give(
            order(protocol, set)
                .setPresignatureId(presignature)
                .setSignedIntent(
                    i.signed(i.digestIntent(KEY, digest, path.toArray(Integer[]::new))))
                .build());
    Done done =
        NativeParties.combine(
            i,
            session,
            SessionConfig.newBuilder()
                .setProtocol(protocol)
                .setThreshold(2)
                .setKeyId(KEY)
                .setEpoch(keyPublic().getEpoch())
                .setPayload(digest)
                .addAllDerivationPath(path)
                .setPresignatureId(presignature)
                .setKeyPublic(keyPublic()),
            set);
    assertThat(verifies(done.getSignature(), digest, path)).isTrue();
    assertThat(verifies(done.getSignature(), digest(), path)).isFalse();
    return done;
  }

  private boolean verifies(ByteString signature, ByteString digest, List<Integer> path) {
    assertThat(signature.size()).isEqualTo(64);
    BigInteger r = new BigInteger(1, signature.substring(0, 32).toByteArray());
    BigInteger s = new BigInteger(1, signature.substring(32).toByteArray());
    assertThat(s.shiftLeft(1)).as("low s").isLessThan(CURVE.getN());
    ByteString child =
        ExtendedPublicKey.of(keyPublic().getPublicKey(), keyPublic().getChainCode())
            .derive(path)
            .publicKey();
    ECDSASigner verifier = new ECDSASigner();
    verifier.init(
        false,
        new ECPublicKeyParameters(
            CURVE.getCurve().decodePoint(child.toByteArray()), new ECDomainParameters(CURVE)));
    return verifier.verifySignature(digest.toByteArray(), r, s);
  }

  /** Makes a presignature; says its id, which all parties report. */
  private ByteString presign(List<Integer> path, int... set) {
    return presign(1, path, set).getFirst();
  }

  /** Makes some in one session; says their ids, which all parties report in the same order. */
  private List<ByteString> presign(int count, List<Integer> path, int... set) {
    SessionId session =
        i.coordinator.give(
            order(ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN, set)
                .addAllDerivationPath(path)
                .setPresignatureCount(count)
                .setCoordinatorIncarnation(Installation.INCARNATION)
                .build());
    Set<List<ByteString>> ids = new HashSet<>();
    for (int party : set) {
      var report = i.coordinator.awaitFrom(NativeParties.NAMES.get(party - 1), session).report();
      assertThat(report.hasCompleted()).as(report.toString()).isTrue();
      ids.add(report.getCompleted().getPresignatureIdsList());
    }
    assertThat(ids).hasSize(1);
    List<ByteString> made = ids.iterator().next();
    assertThat(made).hasSize(count).doesNotHaveDuplicates();
    return made;
  }

  private RefusalReason refusalOf(ByteString presignature, String party, int... set) {
    SessionId session =
        i.coordinator.give(
            order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED, set)
                .setPresignatureId(presignature)
                .setSignedIntent(i.signed(i.digestIntent(KEY, digest())))
                .build());
    return i.coordinator.awaitFrom(party, session).report().getRefused().getReason();
  }

  /** Most of it is kept for each peer, so shares of larger keys fit too. */
  @Test
  void a_share_takes_for_each_peer_no_more_than_is_set_aside_for_it() {
    KeyShare share = i.party("alpha").store.shares().find(KEY).orElseThrow();
    assertThat((long) share.sealed().size()).isBetween(2 * 8_272L, DiskShares.shareBytes(2));
  }

  @Test
  void every_quorum_signs_with_the_key_and_its_descendants() {
    assertThat(keyPublic().getChainCode().size()).isEqualTo(32);
    for (int[] set : new int[][] {{1, 2}, {1, 3}, {2, 3}, {1, 2, 3}}) {
      sign(ByteString.EMPTY, path(), set);
      sign(ByteString.EMPTY, path(44, 60, 0), set);
    }
    assertThat(i.coordinator.envelopes).as("no private message reached it").hasSize(18 + 9);
  }

  @Test
  void presignatures_of_one_session_sign_in_any_order() {
    List<ByteString> made = new ArrayList<>(presign(4, path(7), 1, 3));
    Collections.reverse(made);
    made.forEach(id -> sign(id, path(7), 1, 3));
  }

  @Test
  void presignatures_sign_once() {
    ByteString first = presign(path(), 1, 2);
    ByteString second = presign(path(7), 1, 2, 3);
    assertThat(second).isNotEqualTo(first);
    sign(second, path(7), 1, 2, 3);
    sign(first, path(), 1, 2);
    assertThat(refusalOf(first, "alpha", 1, 2))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(i.party("alpha").meters.get("coterie.presignatures.used").counter().count())
        .isEqualTo(2);
    assertThat(
            i.party("alpha")
                .meters
                .get("coterie.presignatures.ready")
                .tag("key", KEY)
                .gauge()
                .value())
        .isZero();
  }

  private void refresh() {
    int next = keyPublic().getEpoch() + 1;
    i.coordinator.give(
        order(ProtocolId.PROTOCOL_ID_ECDSA_REFRESH, 1, 2, 3)
            .setSignedIntent(
                i.signed(
                    RefreshIntent.newBuilder()
                        .setRequestId(Installation.requestId())
                        .setKey(KEY)
                        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                        .setEpoch(next - 1)
                        .setNotAfter(Installation.in(Duration.ofMinutes(5)))))
            .build());
    Installation.until(
        "the next epoch everywhere",
        () ->
            i.parties.stream()
                .allMatch(
                    p -> p.store.shares().find(KEY).filter(s -> s.epoch() == next).isPresent()));
  }

  @Test
  void new_shares_sign_with_the_same_key_and_the_old_ones_do_not() {
    KeyPublic before = keyPublic();
    ByteString made = presign(path(), 1, 2);
    refresh();
    assertThat(keyPublic().getPublicKey()).isEqualTo(before.getPublicKey());
    assertThat(keyPublic().getChainCode()).isEqualTo(before.getChainCode());
    assertThat(keyPublic().getVerificationSharesList())
        .doesNotContainAnyElementsOf(before.getVerificationSharesList());
    sign(ByteString.EMPTY, path(1), 2, 3);
    sign(presign(path(), 1, 3), path(), 1, 3);
    assertThat(refusalOf(made, "alpha", 1, 2))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    NativeParties.NAMES.forEach(i::restart);
    sign(ByteString.EMPTY, path(), 1, 2);
  }

  /** bravo cheats in the multiplication: alpha never computes with that pair's state again. */
  @Test
  void pair_whose_transfer_check_failed_is_excluded_until_there_are_new_shares() {
    ByteString before = i.party("alpha").store.shares().find(KEY).orElseThrow().sealed();
    ByteString ready = presign(path(), 1, 2);
    i.network.tap(
        (from, to, body) -> {
          if (from.partyId() == 2 && to.partyId() == 1 && body.length > 30_000) {
            body[body.length / 2] ^= 1;
          }
          return body;
        });
    SessionId cheated =
        i.coordinator.give(
            order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, 1, 2)
                .setSignedIntent(i.signed(i.digestIntent(KEY, digest())))
                .build());
    Abort abort = i.coordinator.awaitFrom("alpha", cheated).report().getAborted();
    assertThat(abort.getCause()).isEqualTo(AbortCause.ABORT_CAUSE_TRANSFER_CHECK_FAILED);
    assertThat(abort.getCulpritsList()).containsExactly(2);
    i.network.tap((_, _, body) -> body);

    assertThat(refusalOf(ready, "alpha", 1, 2))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
    i.restart("alpha");
    assertThat(i.party("alpha").store.shares().find(KEY).orElseThrow().sealed())
        .isNotEqualTo(before);
    sign(ByteString.EMPTY, path(), 1, 3);
    assertThat(refusalOf(ready, "alpha", 1, 2))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);

    refresh();
    sign(ByteString.EMPTY, path(), 1, 2);
    sign(presign(path(), 1, 2, 3), path(), 1, 2, 3);
  }

  /**
   * bravo cheats in the multiplication, and alpha is killed each time before the exclusion reaches
   * its disk. The disk has the session as begun and not ended, which counts until it excludes.
   */
  @Test
  void kills_that_keep_exclusions_from_the_disk_are_counted_until_they_exclude() throws Exception {
    Path disk = folder.resolve("alpha");
    Path copy = folder.resolve("alpha as the kill leaves it");
    i.network.tap(
        (from, to, body) -> {
          if (from.partyId() == 2 && to.partyId() == 1 && body.length > 30_000) {
            body[body.length / 2] ^= 1;
            copyBegunSession(disk, copy);
          }
          return body;
        });
    for (int end = 1; end <= KeyTrouble.EXCLUDE_AT; end++) {
      SessionId cheated = i.coordinator.give(order(signing(), 1, 2));
      Abort abort = i.coordinator.awaitFrom("alpha", cheated).report().getAborted();
      assertThat(abort.getCause()).isEqualTo(AbortCause.ABORT_CAUSE_TRANSFER_CHECK_FAILED);
      i.putBack("alpha", copy);
      assertThat(i.party("alpha").store.shares().excluded(KEY))
          .as("after %d kills", end)
          .isEqualTo(end < KeyTrouble.EXCLUDE_AT ? Set.of() : Set.of(2));
    }
    SessionId refused = i.coordinator.give(order(signing(), 1, 2));
    assertThat(refused("alpha", refused).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
    sign(ByteString.EMPTY, path(), 1, 3);
  }

  /** The disk as it is when the session is begun there, and nothing of its end is. */
  private static void copyBegunSession(Path disk, Path copy) {
    try (Connection file =
        DriverManager.getConnection("jdbc:sqlite:" + disk.resolve(PartyStore.FILE))) {
      Installation.until("alpha has begun", () -> hasBegun(file));
      Files.createDirectories(copy);
      try (Stream<Path> parts = Files.list(disk)) {
        for (Path part : parts.filter(f -> !f.toString().contains(PartyStore.FILE)).toList()) {
          Files.copy(part, copy.resolve(part.getFileName()), REPLACE_EXISTING);
        }
      }
      Files.deleteIfExists(copy.resolve(PartyStore.FILE));
      try (Statement run = file.createStatement()) {
        run.execute("VACUUM INTO '" + copy.resolve(PartyStore.FILE) + "'");
      }
    } catch (IOException | SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  private static boolean hasBegun(Connection file) {
    try (Statement run = file.createStatement();
        ResultSet row = run.executeQuery("SELECT count(*) FROM open_multiplication")) {
      return row.getInt(1) > 0;
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * alpha's disk is put back: it does not know any more with which peers it has multiplied since.
   */
  @Test
  void party_that_went_back_multiplies_with_nobody_until_there_are_new_shares() throws Exception {
    sign(ByteString.EMPTY, path(), 1, 2);
    Path copy = i.copy("alpha");
    sign(ByteString.EMPTY, path(), 1, 2);
    sign(ByteString.EMPTY, path(), 1, 2);
    long claimed = i.party("alpha").store.claims().position().claims();
    for (String peer : List.of("bravo", "charlie")) {
      Installation.until(
          peer + " knows how many sessions alpha has claimed",
          () ->
              i.party(peer).store.shownClaims().shown().stream()
                  .anyMatch(s -> s.party() == 1 && s.position().claims() == claimed));
    }
    i.putBack("alpha", copy);
    awaitWentBack();
    for (int round = 0; round < 2; round++) {
      SessionId session = i.coordinator.give(order(signing(), 1, 2));
      assertThat(refused("alpha", session).getReason())
          .isEqualTo(RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
      assertThat(refused("bravo", session).getReason())
          .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
      i.restart("alpha");
      i.restart("bravo");
    }
    sign(ByteString.EMPTY, path(), 2, 3);
    refresh();
    sign(ByteString.EMPTY, path(), 1, 2);
    sign(ByteString.EMPTY, path(), 1, 3);
  }

  /** The same state is put back again and again, and others never remember less. */
  @Test
  void store_that_is_put_back_twice_is_noticed_twice_and_new_shares_end_it() {
    sign(ByteString.EMPTY, path(), 1, 2);
    Path copy = i.copy("alpha");
    sign(ByteString.EMPTY, path(), 1, 2);
    for (int time = 0; time < 3; time++) {
      i.putBack("alpha", copy);
      awaitWentBack();
    }
    refresh();
    for (int round = 0; round < 2; round++) {
      sign(ByteString.EMPTY, path(), 1, 2);
      sign(ByteString.EMPTY, path(), 1, 3);
      NativeParties.NAMES.forEach(i::restart);
    }
    assertThat(i.parties).allMatch(p -> p.store.shares().troubles().isEmpty());
  }

  /**
   * alpha is killed the moment a signature with bravo is done, and put back: charlie, who took no
   * part in it, knows of it already, and bravo says nothing.
   */
  @Test
  void a_claim_is_known_outside_the_signing_set_before_it_can_be_forgotten() {
    Path copy = i.copy("alpha");
    sign(ByteString.EMPTY, path(), 1, 2);
    i.network.tap((from, _, body) -> from.partyId() == 2 ? null : body);
    i.putBack("alpha", copy);
    Installation.until(
        "charlie has told alpha",
        () -> i.party("alpha").store.shares().excluded(KEY).contains(KeyShareStore.ITSELF));
  }

  /**
   * alpha's only peer is corrupt and has forgotten, and the third party is gone: the coordinator
   * has not.
   */
  @Test
  void an_honest_coordinator_notices_what_a_corrupt_peer_conceals() {
    sign(ByteString.EMPTY, path(), 1, 2);
    forgetWithBravo();
    SessionId session = i.coordinator.give(order(signing(), 1, 2));
    Installation.until(
        "alpha has heard it from the coordinator",
        () -> i.party("alpha").store.shares().excluded(KEY).contains(KeyShareStore.ITSELF));
    SessionId next = i.coordinator.give(order(signing(), 1, 2));
    assertThat(refused("alpha", next).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    assertThat(i.coordinator.partials(session)).as("contributions").isLessThan(2);
    i.startParty("charlie");
  }

  /** The limit: nobody honest is left, so nobody tells. */
  @Test
  void a_hostile_coordinator_that_is_the_only_witness_conceals_it_too() {
    sign(ByteString.EMPTY, path(), 1, 2);
    i.coordinator.memory = (_, stated) -> ClaimMemory.newBuilder().addRemembered(stated).build();
    forgetWithBravo();
    sign(ByteString.EMPTY, path(), 1, 2);
    assertThat(i.party("alpha").store.shares().excluded(KEY)).isEmpty();
    i.startParty("charlie");
  }

  /** Without its answer nothing is multiplied, and no party is named for that. */
  @Test
  void a_coordinator_without_a_memory_gets_no_multiplication() {
    Set<Member> stated = ConcurrentHashMap.newKeySet();
    i.coordinator.memory =
        (party, _) -> {
          stated.add(party);
          return null;
        };
    SessionId session =
        i.coordinator.give(
            order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, 1, 2)
                .setDeadline(Installation.in(Duration.ofSeconds(20)))
                .setSignedIntent(signing())
                .build());
    Installation.until("both have asked for its memory", () -> stated.size() >= 2);
    i.time.pass(Duration.ofSeconds(20));
    // The first one whose time is up tells the other that nothing comes of it, which ends it there.
    i.coordinator.await(
        "time is up",
        r -> r.report().getSessionId().equals(session.bytes()) && r.report().hasTimedOut());
    for (String party : List.of("alpha", "bravo")) {
      Installation.until("it has ended at " + party, () -> i.party(party).live() == 0);
    }
    assertThat(i.coordinator.partials(session)).isZero();
  }

  /** Puts alpha and bravo back to now, after one more signature; charlie is killed before. */
  private void forgetWithBravo() {
    Path alpha = i.copy("alpha");
    Path bravo = i.copy("bravo");
    sign(ByteString.EMPTY, path(), 1, 2);
    i.party("charlie").kill();
    i.putBack("bravo", bravo);
    i.putBack("alpha", alpha);
  }

  /**
   * A new start multiplies with nobody before those who can be reached have said what they know.
   */
  @Test
  void a_start_hears_everybody_before_it_multiplies() {
    Path copy = i.copy("alpha");
    sign(ByteString.EMPTY, path(), 1, 3);
    AtomicInteger multiplied = new AtomicInteger();
    i.network.tap(
        (from, _, body) -> {
          if (from.partyId() == 1 && body.length > 30_000) {
            multiplied.incrementAndGet();
          }
          return body;
        });
    i.putBack("alpha", copy);
    i.coordinator.give(order(signing(), 1, 2));
    awaitWentBack();
    Installation.until("its session has ended", () -> i.party("alpha").live() == 0);
    SessionId next = i.coordinator.give(order(signing(), 1, 2));
    assertThat(refused("alpha", next).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    assertThat(multiplied).hasValue(0);
  }

  private SignedIntent signing() {
    return i.signed(i.digestIntent(KEY, digest()));
  }

  private Order order(SignedIntent intent, int... set) {
    return order(intent, ByteString.EMPTY, set);
  }

  private void awaitWentBack() {
    Installation.until(
        "everybody knows that alpha went back",
        () ->
            i.party("alpha").store.shares().excluded(KEY).contains(KeyShareStore.ITSELF)
                && i.party("bravo").store.shares().excluded(KEY).contains(1)
                && i.party("charlie").store.shares().excluded(KEY).contains(1));
  }

  @Test
  void restart_leaves_no_presignature() {
    ByteString made = presign(path(), 1, 2);
    i.restart("bravo");
    assertThat(refusalOf(made, "bravo", 1, 2))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    sign(presign(path(), 1, 2), path(), 1, 2);
  }

  /** The coordinator's order for one request, by the rounds or with a presignature. */
  private Order order(SignedIntent intent, ByteString presignature, int... set) {
    return order(
            presignature.isEmpty()
                ? ProtocolId.PROTOCOL_ID_ECDSA_SIGN
                : ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED,
            set)
        .setPresignatureId(presignature)
        .setSignedIntent(intent)
        .build();
  }

  /** The observer's result of a session, from the envelopes that the coordinator has received. */
  private Done combine(Order order, ByteString digest, int... set) {
    return NativeParties.combine(
        i,
        SessionId.ofOrder(order.toByteString()),
        SessionConfig.newBuilder()
            .setProtocol(order.getProtocol())
            .setThreshold(2)
            .setKeyId(KEY)
            .setEpoch(keyPublic().getEpoch())
            .setPayload(digest)
            .setPresignatureId(order.getPresignatureId())
            .setKeyPublic(keyPublic()),
        set);
  }

  private Refused refused(String party, SessionId session) {
    return i.coordinator.awaitFrom(party, session).report().getRefused();
  }

  /** The last message of a party is lost, and so is the party's process. */
  @Test
  void part_that_was_lost_is_sent_again_after_a_kill_and_no_other_is_made() {
    ByteString digest = digest();
    SignedIntent intent = i.signed(i.digestIntent(KEY, digest));
    Order order = order(intent, presign(path(), 1, 2), 1, 2);
    Set<ByteString> lost = ConcurrentHashMap.newKeySet();
    i.network.tap(
        (from, _, body) -> {
          if (!from.name().equals("bravo")) {
            return body;
          }
          lost.add(Installation.parse(body).getEnvelope().getSessionId());
          return null;
        });
    SessionId session = i.coordinator.give(order);
    Installation.until("alpha's contribution is there", () -> i.coordinator.partials(session) == 1);
    // On disk is not enough: a party that stops before it sends withholds what it has stored.
    Installation.until("bravo's contribution is lost", () -> lost.contains(session.bytes()));
    i.restart("bravo");
    i.network.tap((_, _, body) -> body);

    for (int[] others : new int[][] {{1, 3}, {2, 3}}) {
      Member bound = i.network.roster().byPartyId(others[0]).orElseThrow();
      // Not to the third: that one declines the second of these, and so may end it here unjudged.
      SessionId second =
          i.coordinator.giveBytes(
              order(intent, ByteString.EMPTY, others).toByteString(), List.of(bound));
      Refused refused = refused(bound.name(), second);
      assertThat(refused.getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
      assertThat(refused.getBoundOrder())
          .isEqualTo(order.toBuilder().clearSignedIntent().build().toByteString());
    }
    i.coordinator.envelopes.clear();
    i.coordinator.give(order);
    Done done = combine(order, digest, 1, 2);
    assertThat(verifies(done.getSignature(), digest, path())).isTrue();
  }

  /** A party that has lost its presignature says so, and the others sign with it by the rounds. */
  @Test
  void request_goes_on_by_the_rounds_when_a_party_has_lost_its_presignature() {
    ByteString digest = digest();
    SignedIntent intent = i.signed(i.digestIntent(KEY, digest));
    ByteString presignature = presign(path(), 1, 2);
    i.restart("bravo");
    SessionId first = i.coordinator.give(order(intent, presignature, 1, 2));
    assertThat(refused("bravo", first).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    Installation.until("alpha knows that nothing comes of it", () -> i.party("alpha").live() == 0);
    // As a coordinator does: alpha refuses while its claim of the first is on its way to the disk.
    List<Order> orders = new ArrayList<>();
    do {
      orders.add(order(intent, ByteString.EMPTY, 1, 2));
      SessionId session = i.coordinator.give(orders.getLast());
      Installation.until(
          "alpha answers",
          () -> i.coordinator.partials(session) == 2 || i.coordinator.hasReport("alpha", session));
    } while (i.coordinator.hasReport("alpha", SessionId.ofOrder(orders.getLast().toByteString())));
    Order second = orders.getLast();
    assertThat(verifies(combine(second, digest, 1, 2).getSignature(), digest, path())).isTrue();
  }

  /**
   * A coordinator that wants two signatures of one request gets one, from any two quorums that have
   * an honest party in common.
   */
  @Test
  void coordinator_that_asks_two_quorums_gets_one_signature() {
    ByteString digest = digest();
    SignedIntent intent = i.signed(i.digestIntent(KEY, digest));
    Order first = order(intent, presign(path(), 1, 2), 1, 2);
    SessionId signed = i.coordinator.give(first);
    Installation.until("both contributions are there", () -> i.coordinator.partials(signed) == 2);
    combine(first, digest, 1, 2);
    for (int[] set : new int[][] {{1, 2}, {1, 3}, {2, 3}, {1, 2, 3}}) {
      for (ByteString presignature : List.of(ByteString.EMPTY, presign(path(), set))) {
        SessionId again = i.coordinator.give(order(intent, presignature, set));
        assertThat(refused(set[0] == 1 ? "alpha" : "bravo", again).getReason())
            .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
      }
    }
    i.restart("alpha");
    SessionId afterwards = i.coordinator.give(order(intent, ByteString.EMPTY, 1, 3));
    assertThat(refused("alpha", afterwards).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_BOUND);
  }

  /**
   * A signer is stopped, its store is put back as it was 50 signatures earlier, and more is signed:
   * nothing that may be used once is seen twice.
   */
  @Test
  void restored_store_brings_nothing_back() {
    Path copy = i.copy("alpha");

    Set<ByteString> ids = new HashSet<>();
    List<ByteString> left = new ArrayList<>();
    for (int number = 0; number < 10; number++) {
      left.add(presign(path(), 1, 2));
    }
    ids.addAll(left);
    signMany(50, ids);
    Order forgotten = order(signing(), 1, 2);
    SessionId before = i.coordinator.give(forgotten);
    Installation.until("it is signed", () -> i.coordinator.partials(before) == 2);

    i.putBack("alpha", copy);
    awaitWentBack();
    i.coordinator.give(forgotten);
    assertThat(refused("alpha", before).getReason())
        .as("the identical order, which alpha does not know any more")
        .isEqualTo(RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    Set<Object> signings = Set.copyOf(noncePoints.keySet());
    refresh();
    noncePoints.keySet().retainAll(signings);
    for (ByteString old : left) {
      assertThat(refusalOf(old, "alpha", 1, 2))
          .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    }
    signMany(60, ids);

    assertThat(ids).as("no id is given twice").hasSize(10 + 25 + 30);
    List<ByteString> points = new ArrayList<>();
    noncePoints.forEach(
        (session, ofSession) -> {
          assertThat(ofSession).as("the parties of a session agree").hasSize(1);
          points.addAll(ofSession);
        });
    assertThat(points).hasSizeGreaterThanOrEqualTo(111).doesNotHaveDuplicates();
  }

  /** Signatures of two parties, every second one with a presignature. */
  private void signMany(int count, Set<ByteString> ids) {
    for (int number = 0; number < count; number++) {
      if (number % 2 == 0) {
        ByteString id = presign(path(), 1, 2);
        ids.add(id);
        sign(id, path(), 1, 2);
      } else {
        sign(ByteString.EMPTY, path(), 1, 2);
      }
    }
  }
}
