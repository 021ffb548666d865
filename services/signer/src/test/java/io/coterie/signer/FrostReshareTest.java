package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditRecord;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.storage.OperatorRequests;
import io.coterie.signer.storage.OperatorRequests.Kind;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.telemetry.SignerMetrics;
import io.coterie.trust.Member;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** FROST keys go to other parties, with the native core at each of them. */
class FrostReshareTest {
  private static final String KEY = "keys/main";
  private static final ByteString DIGEST = ByteString.fromHex("5a".repeat(32));
  private static final List<Integer> FIRST = List.of(1, 2, 3);
  private static final List<Integer> OTHERS = List.of(3, 4, 5);

  // Of a signed core envelope, as engine/src/envelope.rs draws it.

  @TempDir Path folder;
  private NativeParties cores;
  private Installation i;
  private Suite suite = Suite.ED25519;

  private enum Suite {
    ED25519(
        Scheme.SCHEME_ED25519,
        ProtocolId.PROTOCOL_ID_ED25519_KEYGEN,
        ProtocolId.PROTOCOL_ID_ED25519_SIGN,
        ProtocolId.PROTOCOL_ID_ED25519_PRESIGN,
        ProtocolId.PROTOCOL_ID_ED25519_SIGN_PRESIGNED,
        ProtocolId.PROTOCOL_ID_ED25519_RESHARE),
    BIP340(
        Scheme.SCHEME_BIP340_SECP256K1,
        ProtocolId.PROTOCOL_ID_BIP340_KEYGEN,
        ProtocolId.PROTOCOL_ID_BIP340_SIGN,
        ProtocolId.PROTOCOL_ID_BIP340_PRESIGN,
        ProtocolId.PROTOCOL_ID_BIP340_SIGN_PRESIGNED,
        ProtocolId.PROTOCOL_ID_BIP340_RESHARE);

    final Scheme scheme;
    final ProtocolId keygen;
    final ProtocolId sign;
    final ProtocolId presign;
    final ProtocolId signPresigned;
    final ProtocolId reshare;

    Suite(
        Scheme scheme,
        ProtocolId keygen,
        ProtocolId sign,
        ProtocolId presign,
        ProtocolId signPresigned,
        ProtocolId reshare) {
      this.scheme = scheme;
      this.keygen = keygen;
      this.sign = sign;
      this.presign = presign;
      this.signPresigned = signPresigned;
      this.reshare = reshare;
    }
  }

  @BeforeEach
  void start() {
    cores = new NativeParties(Installation.NAMES);
    i = new Installation(folder, cores.evidence(), cores::open);
    i.limits = Installation.quick();
    i.start();
    i.join("delta");
    i.join("echo");
  }

  @AfterEach
  void stop() {
    i.close();
    cores.close();
  }

  private void createKey(Suite wanted) {
    suite = wanted;
    i.coordinator.give(
        i.coordinator
            .order(suite.keygen, KEY, 2, 1, 2, 3)
            .setSignedIntent(
                i.signed(i.keyIntent(Installation.requestId(), KEY, 2).setScheme(suite.scheme)))
            .build());
    awaitAt(1, FIRST);
  }

  private KeyShare share(int party) {
    return i.party(Installation.NAMES.get(party - 1)).store.shares().find(KEY).orElseThrow();
  }

  private void awaitAt(int epoch, List<Integer> holders) {
    Installation.until(
        "epoch " + epoch + " at " + holders,
        () ->
            holders.stream()
                .map(id -> i.party(Installation.NAMES.get(id - 1)).store)
                .allMatch(
                    store ->
                        store
                            .shares()
                            .find(KEY)
                            .filter(s -> s.state() == KeyShare.State.ACTIVE && s.epoch() == epoch)
                            .isPresent()));
  }

  private SessionId reshare(int threshold, List<Integer> dealers, List<Integer> receivers) {
    KeyPublic current = share(dealers.getFirst()).keyPublic();
    Set<Integer> all = new TreeSet<>(dealers);
    all.addAll(receivers);
    return i.coordinator.give(
        i.coordinator
            .order(suite.reshare, KEY, threshold)
            .addAllSigningSet(all)
            .addAllDealers(dealers)
            .setKeyPublic(current)
            .setEpoch(current.getEpoch())
            .setSignedIntent(
                i.signed(
                    ReshareIntent.newBuilder()
                        .setRequestId(Installation.requestId())
                        .setKey(KEY)
                        .setScheme(suite.scheme)
                        .setEpoch(current.getEpoch())
                        .setThreshold(threshold)
                        .addAllParties(
                            receivers.stream().map(id -> Installation.NAMES.get(id - 1)).toList())
                        .setPublicKey(current.getPublicKey())
                        .setNotAfter(Installation.in(Duration.ofMinutes(5)))))
            .build());
  }

  private Order signing(ByteString presignature, int epoch, int threshold, int... set) {
    SigningIntent.Builder intent =
        SigningIntent.newBuilder()
            .setRequestId(Installation.requestId())
            .setKey(KEY)
            .setScheme(suite.scheme)
            .setNotAfter(Installation.in(Duration.ofMinutes(5)));
    return i.coordinator
        .order(presignature.isEmpty() ? suite.sign : suite.signPresigned, KEY, threshold, set)
        .setEpoch(epoch)
        .setPresignatureId(presignature)
        .setSignedIntent(i.signed(intent.setDigest(DIGEST)))
        .build();
  }

  /** Signs; the observer verifies what it combines, under the key's first public data. */
  private void signs(ByteString presignature, int threshold, int... set) {
    KeyPublic keyPublic = share(set[0]).keyPublic();
    Order order = signing(presignature, keyPublic.getEpoch(), threshold, set);
    SessionId session = i.coordinator.give(order);
    SessionConfig.Builder config =
        SessionConfig.newBuilder()
            .setProtocol(order.getProtocol())
            .setThreshold(threshold)
            .setKeyId(KEY)
            .setEpoch(keyPublic.getEpoch())
            .setPayload(DIGEST)
            .setPresignatureId(presignature)
            .setKeyPublic(keyPublic);
    assertThat(
            NativeParties.combine(i, session, presignature.isEmpty() ? 2 : 1, config, set)
                .getSignature()
                .size())
        .isEqualTo(64);
  }

  private ByteString presign(int epoch, int... set) {
    SessionId session =
        i.coordinator.give(
            i.coordinator
                .order(suite.presign, KEY, 2, set)
                .setEpoch(epoch)
                .setPresignatureCount(1)
                .setCoordinatorIncarnation(Installation.INCARNATION)
                .build());
    ByteString id = ByteString.EMPTY;
    for (int party : set) {
      var report = i.coordinator.awaitFrom(Installation.NAMES.get(party - 1), session).report();
      assertThat(report.hasCompleted()).as(report.toString()).isTrue();
      id = report.getCompleted().getPresignatureIds(0);
    }
    return id;
  }

  private RefusalReason refusal(int party, Order order) {
    SessionId session = i.coordinator.give(order);
    return i.coordinator
        .awaitFrom(Installation.NAMES.get(party - 1), session)
        .report()
        .getRefused()
        .getReason();
  }

  @ParameterizedTest
  @EnumSource
  void key_goes_to_other_parties_and_another_threshold_and_back(Suite wanted) {
    createKey(wanted);
    KeyPublic before = share(1).keyPublic();
    signs(ByteString.EMPTY, 2, 1, 2);
    ByteString old = presign(1, 1, 2);

    reshare(3, FIRST, List.of(2, 3, 4, 5));
    awaitAt(2, List.of(1, 2, 3, 4, 5));
    KeyPublic after = share(2).keyPublic();
    assertThat(after.getPublicKey()).isEqualTo(before.getPublicKey());
    assertThat(after.getChainCode()).isEqualTo(before.getChainCode());
    assertThat(after.getVerificationSharesList())
        .doesNotContainAnyElementsOf(before.getVerificationSharesList());
    assertThat(share(1).left()).isTrue();
    assertThat(share(1).sealed()).isEmpty();
    signs(ByteString.EMPTY, 3, 2, 4, 5);
    assertThat(refusal(2, signing(old, 1, 2, 1, 2)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);

    reshare(2, List.of(2, 3, 4), FIRST);
    awaitAt(3, List.of(1, 2, 3, 4));
    assertThat(share(1).keyPublic().getPublicKey()).isEqualTo(before.getPublicKey());
    signs(ByteString.EMPTY, 2, 1, 3);
    signs(presign(3, 1, 2), 2, 1, 2);
  }

  /** bravo opens something else than it has committed itself to, under its own signature. */
  @ParameterizedTest
  @EnumSource
  void wrong_opening_names_its_sender_and_the_key_stays_as_it_was(Suite wanted) {
    createKey(wanted);
    // Afterwards it says nothing to the parties: its own signer, which is honest, ends its run when
    // it is accused, and a party that hears that first has no culprit to name.
    AtomicBoolean opened = new AtomicBoolean();
    i.network.tap(
        (from, to, body) -> {
          if (!from.name().equals("bravo")) {
            return body;
          }
          if (isOpening(body)) {
            opened.set(true);
            return CrashTest.withEnvelope(body, WrongOpening.of(cores, "bravo", envelope(body)));
          }
          return opened.get() && to.role() == Member.Role.PARTY ? null : body;
        });
    SessionId cheated = reshare(2, FIRST, OTHERS);
    for (String honest : List.of("alpha", "charlie", "delta", "echo")) {
      Abort abort = i.coordinator.awaitFrom(honest, cheated).report().getAborted();
      assertThat(abort.getCause()).as(honest).isEqualTo(AbortCause.ABORT_CAUSE_WRONG_OPENING);
      assertThat(abort.getCulpritsList()).as(honest).containsExactly(2);
    }
    i.network.tap((_, _, body) -> body);
    assertThat(i.parties).allSatisfy(p -> assertThat(p.store.shares().undecided()).isEmpty());
    assertThat(i.party("delta").store.shares().find(KEY)).isEmpty();

    // Evidence of a renewal excludes nobody from the key that is in use.
    signs(ByteString.EMPTY, 2, 1, 3);
    signs(ByteString.EMPTY, 2, 1, 2);
    reshare(2, List.of(1, 3), OTHERS);
    awaitAt(2, List.of(1, 3, 4, 5));
    signs(ByteString.EMPTY, 2, 4, 5);
    // It still has its share of before, and nobody to sign with.
    assertThat(share(2).epoch()).isEqualTo(1);
    for (int other : List.of(1, 3)) {
      Order order = signing(ByteString.EMPTY, 1, 2, Math.min(other, 2), Math.max(other, 2));
      assertThat(refusal(other, order)).isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    }
  }

  private static ByteString envelope(byte[] body) {
    try {
      return PartyMessage.parseFrom(body).getEnvelope().getEnvelope();
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  private static boolean isOpening(byte[] body) {
    ByteString envelope = envelope(body);
    return WrongOpening.isOpening(envelope);
  }

  /** A share of the old epoch, put back from a copy, signs with nobody. */
  @ParameterizedTest
  @EnumSource
  void old_share_is_useless(Suite wanted) throws Exception {
    createKey(wanted);
    i.restart("alpha"); // so that everything is in its file, and the copy is whole
    i.party("alpha").kill();
    Path copy = folder.resolve("copy");
    copyFolder(folder.resolve("alpha"), copy);
    i.parties.set(0, i.startParty("alpha"));
    reshare(2, FIRST, List.of(1, 2, 3, 4));
    awaitAt(2, List.of(1, 2, 3, 4));
    signs(ByteString.EMPTY, 2, 1, 4);

    i.party("alpha").kill();
    deleteFolder(folder.resolve("alpha"));
    copyFolder(copy, folder.resolve("alpha"));
    i.parties.set(0, i.startParty("alpha"));
    assertThat(share(1).epoch()).isEqualTo(1);
    assertThat(refusal(1, signing(ByteString.EMPTY, 2, 2, 1, 2)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    assertThat(refusal(2, signing(ByteString.EMPTY, 1, 2, 1, 2)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    signs(ByteString.EMPTY, 2, 2, 4);
    // It comes back by a reshare in which it only receives.
    reshare(2, List.of(2, 3, 4), List.of(1, 2, 3, 4));
    awaitAt(3, List.of(1, 2, 3, 4));
    signs(ByteString.EMPTY, 2, 1, 2);
  }

  /** A key of the same name and any scheme, of delta and echo, which hold no share of the other. */
  private void createSecondKey(Suite wanted) {
    suite = wanted;
    i.coordinator.give(
        i.coordinator
            .order(suite.keygen, KEY, 2, 4, 5)
            .setSignedIntent(
                i.signed(
                    i.keyIntent(Installation.requestId(), KEY, 2)
                        .setScheme(suite.scheme)
                        .clearParties()
                        .addAllParties(List.of("delta", "echo"))))
            .build());
    awaitAt(1, List.of(4, 5));
  }

  private RefusalReason refusal(String party, SessionId session) {
    return i.coordinator.awaitFrom(party, session).report().getRefused().getReason();
  }

  private void isSecondKeyRefused(Suite ours, Suite theirs) {
    createKey(ours);
    KeyShare before = share(1);
    createSecondKey(theirs);
    // Of the same epoch, then of a later one: parties that only receive may be behind.
    for (int epoch = 1; epoch <= 2; epoch++) {
      SessionId attack = reshare(2, List.of(4, 5), List.of(1, 2, 3));
      for (String holder : List.of("alpha", "bravo", "charlie")) {
        assertThat(refusal(holder, attack))
            .as("%s at epoch %d", holder, epoch)
            .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_EXISTS);
      }
      if (epoch == 1) {
        suite = ours;
        signs(ByteString.EMPTY, 2, 1, 2);
        suite = theirs;
        reshare(2, List.of(4, 5), List.of(4, 5));
        awaitAt(2, List.of(4, 5));
      }
    }
    assertThat(share(1)).isEqualTo(before);
  }

  @ParameterizedTest
  @EnumSource
  void another_key_of_the_same_name_takes_no_shares_place(Suite wanted) {
    isSecondKeyRefused(wanted, wanted);
  }

  /** A floor can be for some schemes only. */
  @ParameterizedTest
  @EnumSource
  void a_key_of_another_scheme_takes_no_shares_place(Suite wanted) {
    isSecondKeyRefused(wanted, wanted == Suite.ED25519 ? Suite.BIP340 : Suite.ED25519);
  }

  /** It knows which key others use, and from which epoch on. */
  @ParameterizedTest
  @EnumSource
  void party_that_has_left_comes_back_to_its_own_key_only(Suite wanted) {
    createKey(wanted);
    reshare(2, FIRST, List.of(2, 3));
    awaitAt(2, FIRST);
    KeyShare left = share(1);
    createSecondKey(wanted);
    for (int epoch = 2; epoch <= 3; epoch++) {
      reshare(2, List.of(4, 5), List.of(4, 5));
      awaitAt(epoch, List.of(4, 5));
      assertThat(refusal("alpha", reshare(2, List.of(4, 5), List.of(1, 4, 5))))
          .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_EXISTS);
    }
    assertThat(share(1)).isEqualTo(left);
    reshare(2, List.of(2, 3), FIRST);
    awaitAt(3, FIRST);
    signs(ByteString.EMPTY, 2, 1, 3);
  }

  /** bravo and charlie were put back, and have gone on without alpha: it has no share of theirs. */
  @ParameterizedTest
  @EnumSource
  void party_at_another_session_of_the_epoch_is_repaired(Suite wanted) {
    createKey(wanted);
    List<Path> copies = List.of(i.copy("bravo"), i.copy("charlie"));
    reshare(2, FIRST, FIRST);
    awaitAt(2, FIRST);
    i.putBack("bravo", copies.get(0));
    i.putBack("charlie", copies.get(1));
    reshare(2, List.of(2, 3), List.of(2, 3, 4));
    awaitAt(2, List.of(2, 3, 4));
    assertThat(share(1).keyPublic()).isNotEqualTo(share(2).keyPublic());
    reshare(2, List.of(2, 3, 4), List.of(1, 2, 3, 4));
    awaitAt(3, List.of(1, 2, 3, 4));
    signs(ByteString.EMPTY, 2, 1, 4);
  }

  /** alpha holds something else under the name, which keeps it out of the key for ever. */
  @Test
  void party_whose_operator_forgets_its_other_key_of_the_name_takes_its_share() throws Exception {
    createKey(Suite.ED25519);
    KeyShare held = share(1);
    presign(1, 1, 2);
    createSecondKey(Suite.ED25519);
    String alpha = folder.resolve("alpha").toString();
    String right = KeyFingerprint.text(KeyFingerprint.of(held.keyPublic()));
    String wrong = KeyFingerprint.text(KeyFingerprint.of(share(4).keyPublic()));
    assertThat(refusal("alpha", reshare(2, List.of(4, 5), List.of(1, 4, 5))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_EXISTS);

    assertThat(forget(alpha, wrong)).contains("holds nothing of", right + " (epoch 1 active)");
    // A request that is left in the folder without the command gets no further.
    new OperatorRequests(Path.of(alpha))
        .ask(new OperatorRequests.Request(Kind.FORGET_KEY, KEY + " " + wrong, "by mistake"));
    Installation.until("it is refused", () -> forgotten().size() == 1);
    assertThat(share(1)).isEqualTo(held);
    assertThat(refusal("alpha", reshare(2, List.of(4, 5), List.of(1, 4, 5))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_EXISTS);

    assertThat(forget(alpha, right)).isEmpty();
    PartyStore store = i.party("alpha").store;
    Installation.until("it is gone", () -> store.shares().find(KEY).isEmpty());
    assertThat(forgotten())
        .extracting(event -> event.outcome() + ": " + event.fields().get("shares"))
        .containsExactly("refused: ", "ok: 1 active");
    assertThat(forgotten().getLast().fields())
        .containsEntry("key", KEY)
        .containsEntry("fingerprint", right.replace(" ", ""))
        .containsEntry("reason", "it was never used");
    Installation.until(
        "no presignature of it is kept",
        () -> i.party("alpha").meters.find(SignerMetrics.PRESIGNATURES_DROPPED).counter() != null);
    assertThat(share(2).keyPublic()).as("others keep theirs").isEqualTo(held.keyPublic());
    reshare(2, List.of(4, 5), List.of(1, 4, 5));
    awaitAt(2, List.of(1, 4, 5));
    signs(ByteString.EMPTY, 2, 1, 4);
  }

  /** Gives the text of a refusal. */
  private static String forget(String party, String fingerprint) {
    var err = new ByteArrayOutputStream();
    var print = new PrintStream(err, true, StandardCharsets.UTF_8);
    String[] words = {"forget-key", party, KEY, fingerprint, "it was never used"};
    int code = SignerApplication.command(InputStream.nullInputStream(), print, print, words);
    assertThat(code == 0).isEqualTo(err.size() == 0);
    return err.toString(StandardCharsets.UTF_8);
  }

  private List<AuditEvent> forgotten() {
    return i.party("alpha").store.audit().read(1, 1000).stream()
        .map(AuditRecord::event)
        .filter(event -> event.action().equals("key.forget"))
        .toList();
  }

  private static void copyFolder(Path from, Path to) throws IOException {
    Files.createDirectories(to);
    try (Stream<Path> files = Files.list(from)) {
      for (Path file : files.toList()) {
        Files.copy(file, to.resolve(file.getFileName()));
      }
    }
  }

  private static void deleteFolder(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    }
  }
}
