package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TaprootOutput;
import io.coterie.proto.party.v1.Declined;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.share.KeyShare;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Three signers with the native core make Schnorr signatures, each with fresh nonce points. */
class FrostTest {
  private static final String KEY = "keys/main";
  private static final ByteString DIGEST = ByteString.fromHex("5a".repeat(32));

  // Of a core envelope, as engine/src/envelope.rs draws it.
  private static final int PROTOCOL_AT = 1;
  private static final int ROUND_AT = 35;
  private static final int BODY_AT = 46 + 16;

  @TempDir Path folder;
  private NativeParties cores;
  private Installation i;
  private Suite suite = Suite.ED25519;

  /** The nonce points that parties showed in signing. */
  private final Set<ByteString> shown = new HashSet<>();

  private final Set<ByteString> shownTwice = new HashSet<>();

  private enum Suite {
    ED25519(
        Scheme.SCHEME_ED25519,
        ProtocolId.PROTOCOL_ID_ED25519_KEYGEN,
        ProtocolId.PROTOCOL_ID_ED25519_SIGN,
        ProtocolId.PROTOCOL_ID_ED25519_PRESIGN,
        ProtocolId.PROTOCOL_ID_ED25519_SIGN_PRESIGNED,
        ProtocolId.PROTOCOL_ID_ED25519_REFRESH,
        32),
    BIP340(
        Scheme.SCHEME_BIP340_SECP256K1,
        ProtocolId.PROTOCOL_ID_BIP340_KEYGEN,
        ProtocolId.PROTOCOL_ID_BIP340_SIGN,
        ProtocolId.PROTOCOL_ID_BIP340_PRESIGN,
        ProtocolId.PROTOCOL_ID_BIP340_SIGN_PRESIGNED,
        ProtocolId.PROTOCOL_ID_BIP340_REFRESH,
        33);

    final Scheme scheme;
    final ProtocolId keygen;
    final ProtocolId sign;
    final ProtocolId presign;
    final ProtocolId signPresigned;
    final ProtocolId refresh;
    final int pointBytes;

    Suite(
        Scheme scheme,
        ProtocolId keygen,
        ProtocolId sign,
        ProtocolId presign,
        ProtocolId signPresigned,
        ProtocolId refresh,
        int pointBytes) {
      this.scheme = scheme;
      this.keygen = keygen;
      this.sign = sign;
      this.presign = presign;
      this.signPresigned = signPresigned;
      this.refresh = refresh;
      this.pointBytes = pointBytes;
    }

    /** The keys that sign, from the one that the parties share. */
    List<SigningIntent> targets() {
      SigningIntent.Builder intent = SigningIntent.newBuilder();
      return this == ED25519
          ? List.of(intent.build())
          : List.of(
              intent.build(),
              intent.addDerivationPath(7).build(),
              intent.setTaproot(TaprootOutput.newBuilder().setMerkleRoot(DIGEST)).build());
    }
  }

  @BeforeEach
  void start() {
    cores = new NativeParties();
    i = new Installation(folder, cores.evidence(), cores::open);
    i.limits = Installation.quick();
    i.start();
  }

  @AfterEach
  void stop() {
    i.close();
    cores.close();
    assertThat(shownTwice).isEmpty();
  }

  private void createKey(Suite wanted) {
    suite = wanted;
    i.createKey(KEY, suite.scheme, suite.keygen, 2);
    i.network.tap(
        (_, to, body) -> {
          if (to.partyId() == 0) {
            note(body);
          }
          return body;
        });
  }

  private void note(byte[] body) {
    ByteString envelope = envelope(body);
    if (envelope.isEmpty() || envelope.byteAt(ROUND_AT) != 1) {
      return;
    }
    int protocol = envelope.byteAt(PROTOCOL_AT) << 8 | envelope.byteAt(PROTOCOL_AT + 1);
    // Presigning shows what the signature will.
    if (protocol == suite.sign.getNumber() || protocol == suite.signPresigned.getNumber()) {
      for (int at = BODY_AT; at < BODY_AT + 2 * suite.pointBytes; at += suite.pointBytes) {
        synchronized (shown) {
          ByteString commitment = envelope.substring(at, at + suite.pointBytes);
          if (!shown.add(commitment)) {
            shownTwice.add(commitment);
          }
        }
      }
    }
  }

  private static ByteString envelope(byte[] body) {
    try {
      return PartyMessage.parseFrom(body).getEnvelope().getEnvelope();
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  private KeyPublic keyPublic() {
    return i.party("alpha").store.shares().find(KEY).orElseThrow().keyPublic();
  }

  private Order.Builder order(ProtocolId protocol, int... set) {
    return i.coordinator.order(protocol, KEY, 2, set).setEpoch(keyPublic().getEpoch());
  }

  private SigningIntent.Builder intent(SigningIntent target) {
    SigningIntent.Builder intent =
        target.toBuilder()
            .setRequestId(Installation.requestId())
            .setKey(KEY)
            .setScheme(suite.scheme)
            .setNotAfter(Installation.in(Duration.ofMinutes(5)));
    return intent.setDigest(DIGEST);
  }

  private Order signing(ByteString presignature, SigningIntent target, int... set) {
    return order(presignature.isEmpty() ? suite.sign : suite.signPresigned, set)
        .setPresignatureId(presignature)
        .setSignedIntent(i.signed(intent(target)))
        .build();
  }

  /** Signs, with a presignature if there is an id; the observer verifies what it combines. */
  private void sign(ByteString presignature, SigningIntent target, int... set) {
    Order order = signing(presignature, target, set);
    SessionId session = i.coordinator.give(order);
    SessionConfig.Builder config =
        SessionConfig.newBuilder()
            .setProtocol(order.getProtocol())
            .setThreshold(2)
            .setKeyId(KEY)
            .setEpoch(keyPublic().getEpoch())
            .setPayload(DIGEST)
            .setPresignatureId(presignature)
            .setKeyPublic(keyPublic());
    KeyTarget.of(target).into(config);
    ByteString signature =
        NativeParties.combine(i, session, presignature.isEmpty() ? 2 : 1, config, set)
            .getSignature();
    assertThat(signature.size()).isEqualTo(64);
    if (suite == Suite.ED25519) {
      assertThat(
              Ed25519.verify(
                  signature.toByteArray(),
                  0,
                  keyPublic().getPublicKey().toByteArray(),
                  0,
                  DIGEST.toByteArray(),
                  0,
                  DIGEST.size()))
          .isTrue();
    }
  }

  /** Makes a presignature; says its id, which all parties report. */
  private ByteString presign(SigningIntent target, int... set) {
    return presign(1, target, set).getFirst();
  }

  /** Makes some in one session; says their ids, which all parties report in the same order. */
  private List<ByteString> presign(int count, SigningIntent target, int... set) {
    Order.Builder order =
        order(suite.presign, set)
            .setPresignatureCount(count)
            .setCoordinatorIncarnation(Installation.INCARNATION);
    KeyTarget.of(target).into(order);
    SessionId session = i.coordinator.give(order.build());
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

  private RefusalReason refusalOf(Order order, String party) {
    SessionId session = i.coordinator.give(order);
    return i.coordinator.awaitFrom(party, session).report().getRefused().getReason();
  }

  private void refresh() {
    int next = keyPublic().getEpoch() + 1;
    orderRefresh();
    awaitEverywhere(next);
  }

  private SessionId orderRefresh() {
    return i.coordinator.give(
        order(suite.refresh, 1, 2, 3)
            .setSignedIntent(
                i.signed(
                    RefreshIntent.newBuilder()
                        .setRequestId(Installation.requestId())
                        .setKey(KEY)
                        .setScheme(suite.scheme)
                        .setEpoch(keyPublic().getEpoch())
                        .setNotAfter(Installation.in(Duration.ofMinutes(5)))))
            .build());
  }

  private boolean isAt(int epoch, Installation.Party party) {
    return party.store.shares().find(KEY).filter(s -> s.epoch() == epoch).isPresent();
  }

  private void awaitEverywhere(int epoch) {
    Installation.until(
        "epoch " + epoch + " everywhere", () -> i.parties.stream().allMatch(p -> isAt(epoch, p)));
  }

  /** charlie tells alpha that it has its share, and bravo, whenever it could say so, that not. */
  @ParameterizedTest
  @EnumSource
  void a_liar_splits_no_refresh(Suite wanted) {
    createKey(wanted);
    AtomicBoolean apart = new AtomicBoolean(true);
    i.network.tap(
        (from, to, body) -> {
          if (to.partyId() == 0) {
            note(body);
          }
          if (to.partyId() != 2 || !report(body).hasCompleted()) {
            return body;
          }
          if (from.partyId() == 3) {
            return PartyMessage.newBuilder()
                .setReport(
                    SessionReport.newBuilder()
                        .setSessionId(report(body).getSessionId())
                        .setDeclined(Declined.getDefaultInstance()))
                .build()
                .toByteArray();
          }
          return apart.get() ? null : body;
        });
    SessionId session = orderRefresh();
    Installation.until("alpha uses its share", () -> isAt(2, i.party("alpha")));
    Installation.until(
        "bravo has given it up",
        () ->
            i.party("bravo")
                .store
                .shares()
                .ofSession(session)
                .filter(s -> s.state() == KeyShare.State.ABANDONED)
                .isPresent());
    i.restart("bravo");
    assertThat(isAt(1, i.party("bravo"))).isTrue();
    apart.set(false);
    awaitEverywhere(2);
    sign(ByteString.EMPTY, suite.targets().getFirst(), 1, 2);
  }

  private static SessionReport report(byte[] body) {
    try {
      return PartyMessage.parseFrom(body).getReport();
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  @ParameterizedTest
  @EnumSource
  void every_quorum_signs_with_every_target_by_rounds_and_with_presignatures(Suite wanted) {
    createKey(wanted);
    for (SigningIntent target : suite.targets()) {
      for (int[] set : new int[][] {{1, 2}, {1, 3}, {2, 3}, {1, 2, 3}}) {
        sign(ByteString.EMPTY, target, set);
        sign(presign(target, set), target, set);
      }
    }
    assertThat(shown).hasSize(suite.targets().size() * 2 * 9 * 2);
  }

  @ParameterizedTest
  @EnumSource
  void a_presignature_signs_once_for_its_own_target(Suite wanted) {
    createKey(wanted);
    for (SigningIntent target : suite.targets()) {
      ByteString id = presign(target, 1, 2);
      for (SigningIntent other : suite.targets()) {
        if (!other.equals(target)) {
          assertThat(refusalOf(signing(id, other, 1, 2), "alpha"))
              .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
        }
      }
      sign(id, target, 1, 2);
      assertThat(refusalOf(signing(id, target, 1, 2), "alpha"))
          .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    }
  }

  /** {@link #note} looks at every nonce. */
  @ParameterizedTest
  @EnumSource
  void presignatures_of_one_session_sign_in_any_order(Suite wanted) {
    createKey(wanted);
    SigningIntent target = suite.targets().getLast();
    List<ByteString> made = new ArrayList<>(presign(16, target, 1, 3));
    Collections.reverse(made);
    made.forEach(id -> sign(id, target, 1, 3));
    assertThat(shown).hasSize(2 * 2 * 16);
    Order.Builder more =
        order(suite.presign, 1, 3)
            .setPresignatureCount(17)
            .setCoordinatorIncarnation(Installation.INCARNATION);
    KeyTarget.of(target).into(more);
    assertThat(refusalOf(more.build(), "alpha"))
        .isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
  }

  @ParameterizedTest
  @EnumSource
  void a_wrong_share_names_its_sender_until_there_are_new_shares(Suite wanted) {
    createKey(wanted);
    KeyPublic before = keyPublic();
    SigningIntent target = suite.targets().getLast();
    ByteString ready = presign(target, 1, 2);
    i.network.tap(
        (from, to, body) -> {
          ByteString envelope = envelope(body);
          if (from.partyId() == 2 && !envelope.isEmpty() && envelope.byteAt(ROUND_AT) == 2) {
            body[body.length - 1] ^= 1;
          }
          return body;
        });
    SessionId cheated = i.coordinator.give(signing(ByteString.EMPTY, target, 1, 2));
    Abort abort = i.coordinator.awaitFrom("alpha", cheated).report().getAborted();
    assertThat(abort.getCause()).isEqualTo(AbortCause.ABORT_CAUSE_WRONG_PARTIAL_SIGNATURE);
    assertThat(abort.getCulpritsList()).containsExactly(2);
    i.network.tap((_, _, body) -> body);

    assertThat(refusalOf(signing(ready, target, 1, 2), "alpha"))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
    sign(ByteString.EMPTY, target, 1, 3);
    refresh();
    assertThat(keyPublic().getPublicKey()).isEqualTo(before.getPublicKey());
    assertThat(keyPublic().getVerificationSharesList())
        .doesNotContainAnyElementsOf(before.getVerificationSharesList());
    assertThat(refusalOf(signing(ready, target, 2, 3), "charlie"))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    sign(ByteString.EMPTY, target, 1, 2);
    sign(presign(target, 1, 2), target, 1, 2);
  }

  /**
   * Nothing of a session reaches the coordinator; a coordinator that asks again gets its result.
   */
  @ParameterizedTest
  @EnumSource
  void a_signature_that_only_its_parties_have_seen_is_told_to_who_asks_again(Suite wanted) {
    createKey(wanted);
    i.network.tap((_, to, body) -> to.partyId() == 0 ? null : body);
    Order order = signing(ByteString.EMPTY, suite.targets().getFirst(), 1, 2);
    SessionId session = i.coordinator.give(order);
    for (String party : List.of("alpha", "bravo")) {
      Installation.until(
          "it has ended at " + party,
          () ->
              i.party(party).store.claims().bindings(1).stream()
                      .anyMatch(b -> b.session().equals(session))
                  && i.party(party).live() == 0);
    }
    i.network.tap((_, _, body) -> body);
    i.coordinator.give(order);
    Set<ByteString> signatures = new HashSet<>();
    for (String party : List.of("alpha", "bravo")) {
      Refused refused = i.coordinator.awaitFrom(party, session).report().getRefused();
      assertThat(refused.getReason()).isEqualTo(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED);
      assertThat(refused.getSignature().size()).isEqualTo(64);
      signatures.add(refused.getSignature());
    }
    assertThat(signatures).hasSize(1);
  }

  /** The store is put back as it was some signatures ago; {@link #note} looks at every nonce. */
  @ParameterizedTest
  @EnumSource
  void a_restored_store_brings_nothing_back(Suite wanted) {
    createKey(wanted);
    SigningIntent target = suite.targets().getLast();
    Path copy = i.copy("alpha");
    List<ByteString> left = new ArrayList<>();
    for (int number = 0; number < 5; number++) {
      left.add(presign(target, 1, 2));
    }
    signMany(10, target);

    i.putBack("alpha", copy);
    for (ByteString old : left) {
      assertThat(refusalOf(signing(old, target, 1, 2), "alpha"))
          .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    }
    signMany(10, target);
    // Two points of each party for each signature; bravo may have contributed to the others before
    // it heard that alpha does not.
    assertThat(shown).hasSizeBetween(2 * 2 * 40, 2 * (2 * 40 + left.size()));
  }

  /** As many signatures by the rounds, and with presignatures. */
  private void signMany(int count, SigningIntent target) {
    for (int number = 0; number < count; number++) {
      sign(presign(target, 1, 2), target, 1, 2);
      sign(ByteString.EMPTY, target, 1, 2);
    }
  }
}
