package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.KeySplit;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SplitKey;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.ImportedShares;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionReport;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Three signers with the native core take over the key of RFC 8032's TEST 2, and sign with it. */
@Timeout(300)
class ExactTest {
  private static final String KEY = "keys/main";
  private static final String OTHER_KEY = "keys/treasury-1";
  private static final byte[] SEED =
      hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb").toByteArray();
  private static final ByteString PUBLIC_KEY =
      hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  private static final String MESSAGE = "r";
  private static final ByteString SIGNATURE =
      hex(
          "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
              + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");

  @TempDir Path folder;
  private NativeParties cores;
  private Installation i;

  @BeforeEach
  void start() {
    cores = new NativeParties();
    i = new Installation(folder, cores.evidence(), cores::open);
    i.start();
  }

  @AfterEach
  void stop() {
    i.close();
    cores.close();
  }

  private static ByteString hex(String text) {
    return ByteString.fromHex(text);
  }

  /** The owner's split of a seed: a share for each of alpha, bravo and charlie. */
  private List<ByteString> split(byte[] seed, String key) {
    SplitKey.Builder call =
        SplitKey.newBuilder().setSecret(ByteString.copyFrom(seed)).setKeyId(key);
    for (int id = 1; id <= 3; id++) {
      call.addParties(NativeParties.party(i, id));
    }
    KeySplit split =
        NativeMpcCore.load().call(ImportCall.newBuilder().setSplitKey(call).build()).getKeySplit();
    return split.getSharesList().stream().map(PartyBytes::getValue).toList();
  }

  private static ImportIntent.Builder intent(String key, List<ByteString> shares) {
    return ImportIntent.newBuilder()
        .setRequestId(Installation.requestId())
        .setKey(key)
        .setScheme(Scheme.SCHEME_ED25519_EXACT)
        .setThreshold(2)
        .addAllParties(List.of("alpha", "bravo", "charlie"))
        .setPublicKey(PUBLIC_KEY)
        .addAllShareDigests(shares.stream().map(IntentVerifier::digest).toList())
        .setNotAfter(Installation.in(Duration.ofMinutes(5)));
  }

  private Order.Builder order(ImportIntent.Builder intent, List<ByteString> shares) {
    ImportedShares.Builder all = ImportedShares.newBuilder();
    for (int at = 0; at < shares.size(); at++) {
      all.addShares(PartyBytes.newBuilder().setParty(at + 1).setValue(shares.get(at)));
    }
    return i.coordinator
        .order(ProtocolId.PROTOCOL_ID_ED25519_EXACT_PAIR, intent.getKey(), 2, 1, 2, 3)
        .setSignedIntent(
            new IntentSigner("wallet", i.wallet.getPrivate())
                .sign(intent.setInstallation(i.network.roster().installation()).build()))
        .setImported(all)
        .setDeadline(Installation.in(Duration.ofSeconds(50)));
  }

  private void importKey() {
    List<ByteString> shares = split(SEED, KEY);
    i.coordinator.give(order(intent(KEY, shares), shares).build());
    Installation.until("active", () -> i.parties.stream().allMatch(p -> p.hasActive(KEY)));
  }

  private Order.Builder signOrder(String message, int... set) {
    SigningIntent.Builder intent =
        i.signingIntent(Installation.requestId(), KEY, message)
            .setScheme(Scheme.SCHEME_ED25519_EXACT);
    return i.coordinator
        .order(ProtocolId.PROTOCOL_ID_ED25519_EXACT_ANSWER, KEY, 2, set)
        .setSignedIntent(i.signed(intent))
        .setDeadline(Installation.in(Duration.ofSeconds(50)));
  }

  private static String name(int party) {
    return Installation.NAMES.get(party - 1);
  }

  private ByteString sign(String message, int... set) {
    SessionId session = i.coordinator.give(signOrder(message, set).build());
    List<ByteString> signatures = new ArrayList<>();
    for (int party : set) {
      SessionReport report = i.coordinator.awaitFrom(name(party), session).report();
      assertThat(report.hasCompleted()).as(report.toString()).isTrue();
      signatures.add(report.getCompleted().getSignature());
    }
    assertThat(signatures.get(0)).isEqualTo(signatures.get(1));
    return signatures.getFirst();
  }

  private Refused refusal(String party, SessionId session) {
    SessionReport report = i.coordinator.awaitFrom(party, session).report();
    assertThat(report.hasRefused()).as(report.toString()).isTrue();
    return report.getRefused();
  }

  private static ByteString sha512(String message) {
    try {
      return ByteString.copyFrom(
          MessageDigest.getInstance("SHA-512")
              .digest(ByteString.copyFromUtf8(message).toByteArray()));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void every_pair_signs_as_rfc_8032_says_also_after_a_restart() {
    importKey();
    assertThat(sign(MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
    assertThat(sign(MESSAGE, 1, 3)).isEqualTo(SIGNATURE);
    i.restart("charlie");
    assertThat(sign(MESSAGE, 2, 3)).isEqualTo(SIGNATURE);
    byte[] other = new byte[Ed25519.SIGNATURE_SIZE];
    byte[] text = "transfer 12".repeat(20).getBytes(java.nio.charset.StandardCharsets.US_ASCII);
    Ed25519.sign(SEED, 0, text, 0, text.length, other, 0);
    assertThat(sign("transfer 12".repeat(20), 2, 3).toByteArray()).isEqualTo(other);
    ByteString point = SIGNATURE.substring(0, 32);
    // Each party has stored the nonce point of the signature, across all its peers.
    for (Installation.Party party : i.parties) {
      assertThat(
              party
                  .store
                  .exactNonces()
                  .settle(PUBLIC_KEY, sha512(MESSAGE), point, "wallet")
                  .toCompletableFuture()
                  .join())
          .isEqualTo(point);
    }
  }

  @Test
  void a_party_with_another_nonce_on_record_answers_nothing_and_leaves_the_peer_out() {
    importKey();
    ByteString foreign = hex("11".repeat(32));
    i.party("alpha")
        .store
        .exactNonces()
        .settle(PUBLIC_KEY, sha512(MESSAGE), foreign, "wallet")
        .toCompletableFuture()
        .join();
    SessionId session = i.coordinator.give(signOrder(MESSAGE, 1, 2).build());
    SessionReport report = i.coordinator.awaitFrom("alpha", session).report();
    assertThat(report.getAborted().getCause()).isEqualTo(AbortCause.ABORT_CAUSE_OTHER_NONCE);
    assertThat(i.coordinator.hasReport("bravo", session)).isFalse();
    SessionId again = i.coordinator.give(signOrder("another", 1, 2).build());
    assertThat(refusal("alpha", again).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
  }

  @Test
  void a_restored_party_signs_other_messages_and_the_same_nonce_for_the_same() {
    importKey();
    Path before = i.copy("alpha");
    assertThat(sign(MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
    i.putBack("alpha", before);
    assertThat(sign(MESSAGE, 1, 3)).isEqualTo(SIGNATURE);
    byte[] other = new byte[Ed25519.SIGNATURE_SIZE];
    Ed25519.sign(SEED, 0, new byte[] {'s'}, 0, 1, other, 0);
    assertThat(sign("s", 1, 2).toByteArray()).isEqualTo(other);
  }

  @Test
  void shares_that_do_not_fit_are_refused() {
    List<ByteString> shares = split(SEED, KEY);
    // The coordinator gives parties the shares of others.
    List<ByteString> swapped = new ArrayList<>(shares);
    Collections.swap(swapped, 0, 1);
    SessionId mixed = i.coordinator.give(order(intent(KEY, shares), swapped).build());
    assertThat(refusal("alpha", mixed).getDetail()).contains("the requester has made for this");
    // The requester itself has them mixed up: they are sealed to other parties.
    SessionId misled = i.coordinator.give(order(intent(KEY, swapped), swapped).build());
    assertThat(refusal("bravo", misled).getDetail()).contains("not made for this party and key");
    // The shares of one key under the name of another.
    SessionId renamed = i.coordinator.give(order(intent(OTHER_KEY, shares), shares).build());
    assertThat(refusal("charlie", renamed).getDetail()).contains("not made for this party and key");
    // The shares of another key.
    byte[] seed = SEED.clone();
    seed[0]++;
    List<ByteString> foreign = split(seed, KEY);
    SessionId other = i.coordinator.give(order(intent(KEY, foreign), foreign).build());
    assertThat(refusal("alpha", other).getDetail()).contains("of another key");
    assertThat(i.parties).noneMatch(party -> party.hasActive(KEY));
  }

  @Test
  void parties_whose_shares_are_of_two_splits_keep_none() {
    List<ByteString> shares = new ArrayList<>(split(SEED, KEY));
    // The points of the shares differ, so the digest of a session does: no pair understands.
    shares.set(2, split(SEED, KEY).get(2));
    SessionId session =
        i.coordinator.give(
            order(intent(KEY, shares), shares)
                .setDeadline(Installation.in(Duration.ofSeconds(6)))
                .build());
    for (String party : List.of("alpha", "bravo", "charlie")) {
      SessionReport report = i.coordinator.awaitFrom(party, session).report();
      assertThat(report.hasCompleted()).as(report.toString()).isFalse();
    }
    assertThat(i.parties).noneMatch(party -> party.hasActive(KEY));
  }

  @Test
  void a_key_is_not_used_before_every_pair_has_made_the_test_signature() {
    AtomicBoolean apart = new AtomicBoolean(true);
    i.network.tap(
        (from, to, body) ->
            apart.get()
                    && from.partyId() == 3
                    && to.partyId() == 2
                    && Installation.parse(body).hasEnvelope()
                ? null
                : body);
    List<ByteString> shares = split(SEED, KEY);
    SessionId session =
        i.coordinator.give(
            order(intent(KEY, shares), shares)
                .setDeadline(Installation.in(Duration.ofSeconds(8)))
                .build());
    for (String party : List.of("bravo", "charlie")) {
      SessionReport report = i.coordinator.awaitFrom(party, session).report();
      assertThat(report.hasTimedOut()).as(report.toString()).isTrue();
    }
    assertThat(i.parties).noneMatch(party -> party.hasActive(KEY));
    apart.set(false);
    importKey();
    assertThat(sign(MESSAGE, 2, 3)).isEqualTo(SIGNATURE);
  }

  @Test
  void a_key_of_that_name_and_an_order_without_shares_are_refused() {
    importKey();
    List<ByteString> shares = split(SEED, KEY);
    SessionId again = i.coordinator.give(order(intent(KEY, shares), shares).build());
    assertThat(refusal("alpha", again).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_EXISTS);
    List<ByteString> others = split(SEED, OTHER_KEY);
    SessionId empty =
        i.coordinator.give(order(intent(OTHER_KEY, others), others).clearImported().build());
    assertThat(refusal("alpha", empty).getDetail()).contains("has no shares");
    SessionId three = i.coordinator.give(signOrder(MESSAGE, 1, 2, 3).build());
    assertThat(refusal("alpha", three).getDetail()).contains("two parties sign");
  }
}
