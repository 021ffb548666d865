package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.protocol.SessionId;
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
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.party.ProtocolCore;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Three signers with the native core, and the owner of the key of RFC 8032's TEST 2. */
abstract class ExactFixture {
  static final String KEY = "keys/main";
  static final String OTHER_KEY = "keys/treasury-1";
  static final byte[] SEED =
      hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb").toByteArray();
  static final ByteString PUBLIC_KEY =
      hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  static final String MESSAGE = "r";
  static final ByteString SIGNATURE =
      hex(
          "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
              + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");

  @TempDir Path folder;
  NativeParties cores;
  Installation i;

  @BeforeEach
  void start() {
    cores = new NativeParties();
    i = new Installation(folder, cores.evidence(), name -> open(name, cores.open(name)));
    i.start();
  }

  /** The core of a party, or something around it. */
  ProtocolCore open(String party, ProtocolCore core) {
    return core;
  }

  @AfterEach
  void stop() {
    i.close();
    cores.close();
  }

  static ByteString hex(String text) {
    return ByteString.fromHex(text);
  }

  /** The owner's split of a seed: a share for each of alpha, bravo and charlie. */
  List<ByteString> split(byte[] seed, String key) {
    SplitKey.Builder call =
        SplitKey.newBuilder().setSecret(ByteString.copyFrom(seed)).setKeyId(key);
    for (int id = 1; id <= 3; id++) {
      call.addParties(NativeParties.party(i, id));
    }
    KeySplit split =
        NativeMpcCore.load().call(ImportCall.newBuilder().setSplitKey(call).build()).getKeySplit();
    return split.getSharesList().stream().map(PartyBytes::getValue).toList();
  }

  static ImportIntent.Builder intent(String key, List<ByteString> shares) {
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

  Order.Builder order(ImportIntent.Builder intent, List<ByteString> shares) {
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

  void importKey() {
    List<ByteString> shares = split(SEED, KEY);
    i.coordinator.give(order(intent(KEY, shares), shares).build());
    Installation.until("active", () -> i.parties.stream().allMatch(p -> p.hasActive(KEY)));
  }

  Order.Builder signOrder(String message, int... set) {
    SigningIntent.Builder intent =
        i.signingIntent(Installation.requestId(), KEY, message)
            .setScheme(Scheme.SCHEME_ED25519_EXACT);
    return i.coordinator
        .order(ProtocolId.PROTOCOL_ID_ED25519_EXACT_ANSWER, KEY, 2, set)
        .setSignedIntent(i.signed(intent))
        .setDeadline(Installation.in(Duration.ofSeconds(50)));
  }

  static String name(int party) {
    return Installation.NAMES.get(party - 1);
  }

  ByteString sign(String message, int... set) {
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

  Refused refusal(String party, SessionId session) {
    SessionReport report = i.coordinator.awaitFrom(party, session).report();
    assertThat(report.hasRefused()).as(report.toString()).isTrue();
    return report.getRefused();
  }

  static ByteString sha512(String message) {
    try {
      return ByteString.copyFrom(
          MessageDigest.getInstance("SHA-512")
              .digest(ByteString.copyFromUtf8(message).toByteArray()));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
