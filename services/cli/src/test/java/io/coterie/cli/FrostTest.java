package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.cli.key.AttestedKeys;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Payloads of Ed25519 and BIP-340 keys, as far as they need no installation. */
class FrostTest extends OfflineIntents {
  /** A signed transfer, from the tests of @solana/web3.js. */
  private static final String SOLANA =
      "010001031398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93cafd439fccb66727f289c5c6de3bc4a8fe5dd5d77770bc8ff15c3eeedcb14af3fc0000000000000000000000000000000000000000000000000000000000000000c49ae77603782054f17a9decea43b444eba0edb12c6f1d31c6e0e4a84bf052eb01020200010c020000003100000000000000";

  private static final String SOLANA_KEY =
      "1398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93ca";
  private static final String SOLANA_SIGNATURE =
      "5b84ad01da5efd121b4fcf721ba77f11cab7cc0c45f319cea574b640b9a8eea8c18c56536bfcef50285b2c06a0542be33faaffb984f2522e7cd97f9318fe9d0d";

  /**
   * BIP-341, wallet test vectors: the transaction, with an address for its second output, whose
   * script is nobody's, the entries of its input 4, and a witness by the published private key and
   * the library noble-curves 1.9.7.
   */
  private static final String PSBT =
      "70736274ff0100fdc80102000000097de20cbff686da83a54981d2b9bab3586f4ca7e48f57f5b55963115f3b334e9c010000000000000000d7b7cab57b1393ace2d064f4d4a2cb8af6def61273e127517d44759b6dafdd990000000000fffffffff8e1f583384333689228c5d28eac13366be082dc57441760d957275419a418420000000000fffffffff0689180aa63b30cb162a73c6d2a38b7eeda2a83ece74310fda0843ad604853b0100000000feffffffaa5202bdf6d8ccd2ee0f0202afbbb7461d9264a25e5bfd3c5a52ee1239e0ba6c0000000000feffffff956149bdc66faa968eb2be2d2faa29718acbfe3941215893a2a3446d32acd050000000000000000000e664b9773b88c09c32cb70a2a3e4da0ced63b7ba3b22f848531bbb1d5d5f4c94010000000000000000e9aa6b8e6c9de67619e6a3924ae25696bb7b694bb677a632a74ef7eadfd4eabf0000000000ffffffffa778eb6a263dc090464cd125c466b5a99667720b1c110468831d058aa1b82af10100000000ffffffff0200ca9a3b000000001976a91406afd46bcdfd22ef94ac122aa11f241244a37ecc88ac807840cb00000000225120a60869f0dbcf1dc659c9cecbaf8050135ea9e8cdc487053f1dc6880949dc684c0065cd1d0001012b00b108190000000022512053a1f6e454df1aa2776a2814a721372d6258050de330b3c6d10ee8f4e0dda3430001012b808f891b00000000225120147c9c57132f6e7ecddba9800bb0c4449251c92a1e60371ee77557b6620f3ea30001012280158611000000001976a914751e76e8199196d454941c45d1b3a323f1433bd688ac0001012b006e0a1e00000000225120e4d810fd50586274face62b8a807eb9719cef49c04177cc6b76a9a4251d5450e0001012b80098d250000000022512091b64d5324723a985170e4dc5a0f84c041804f2cd12660fa5dec09fc21783605011720e0dfe2300b0dd746a3f8674dfd4525623639042569d829c7f0eed9602d263e6f011820ccbd66c6f7e8fdab47b3a486f59d28262be857f30d4773f2d5ea47f7761ce0e20001011f80d28716000000001600147dd65592d0ab2fe0d0257d571abf032cd9db93dc0001012b00e80d280000000022512075169f4001aa68f15bbed28b218df1d0a62cbbcf1188c6665110c293c907b8310001012b804c8b2000000000225120712447206d7a5238acc7ff53fbe94a3b64539ad291c7cdbc490b7577e4b17df50001012b002b0c230000000022512077e30a5522dd9f894c3f8b8bd4c4b2cf82ca7da8a3ea6a239655c39c050ab220000000";

  private static final String ROOT =
      "ccbd66c6f7e8fdab47b3a486f59d28262be857f30d4773f2d5ea47f7761ce0e2";
  private static final String OUTPUT_KEY =
      "91b64d5324723a985170e4dc5a0f84c041804f2cd12660fa5dec09fc21783605";
  private static final String WITNESS =
      "f592b1fba183f5927ff5ade89998ac1d63ac9684c4b8b90bfcf1d356b55f193bf1c6cc52b09d4c74436f46d66fec1675364706101414ab0a795352e6f9acbc10";

  @Test
  void everyKindOfPayloadCanBeSigned() throws Exception {
    byte[] message = HexFormat.of().parseHex(SOLANA);
    for (Path transaction :
        List.of(
            file("tx.bin", message),
            file("tx.hex", SOLANA + "\n"),
            file("tx.b64", Base64.getMimeEncoder().encodeToString(message) + "\n"))) {
      SigningIntent intent = signed("--solana-transaction", "" + transaction);
      assertThat(intent.getSolanaTransaction()).isEqualTo(ByteString.copyFrom(message));
      assertThat(intent.getScheme()).isEqualTo(Scheme.SCHEME_ED25519);
    }
    SigningIntent psbt =
        signed("--psbt", "" + file("psbt", HexFormat.of().parseHex(PSBT)), "--input", "4");
    assertThat(psbt.getScheme()).isEqualTo(Scheme.SCHEME_BIP340_SECP256K1);
    assertThat(psbt.getTaproot().getMerkleRoot()).isEqualTo(ByteString.fromHex(ROOT));

    SigningIntent text = signed("-m", "hello", "--scheme", "ed25519");
    assertThat(text.getScheme()).isEqualTo(Scheme.SCHEME_ED25519);
    String digest = "ab".repeat(32);
    SigningIntent plain = signed("--digest", digest, "--scheme", "bip340");
    assertThat(plain.getScheme()).isEqualTo(Scheme.SCHEME_BIP340_SECP256K1);
    assertThat(plain.hasTaproot()).isFalse();
    SigningIntent tweaked =
        signed("--digest", digest, "--scheme", "bip340", "--path", "m/1", "--taproot");
    assertThat(KeyTarget.of(tweaked))
        .isEqualTo(new KeyTarget(List.of(1), Optional.of(ByteString.EMPTY)));
    assertThat(
            KeyTarget.of(signed("--digest", digest, "--scheme", "bip340", "--taproot=" + ROOT))
                .taproot())
        .contains(ByteString.fromHex(ROOT));
  }

  private void assertRefused(String text, String... payload) {
    assertRefused(ExitCode.LOCAL, text, payload);
  }

  @Test
  void mistakesShowBeforeAnythingIsSigned() throws Exception {
    String solana = "--solana-transaction";
    assertRefused("cannot be read", solana, "" + folder.resolve("absent"));
    assertRefused("only encoding", solana, "" + file("cut", SOLANA.substring(2)));
    assertRefused("only encoding", solana, "" + file("text", "not a transaction!"));
    assertRefused("only encoding", solana, "" + file("none", ""));
    assertRefused("only encoding", solana, "" + file("signed", "01" + SOLANA_SIGNATURE + SOLANA));
    assertRefused("other than legacy, 0 and 1", solana, "" + file("version", "82" + SOLANA));
    assertRefused("base64", solana, "" + file("half", "zzzzz"));
    String good = "" + file("good", SOLANA);
    String call = SOLANA.replace("020000003100000000000000", "020000003100000000000001ff");
    assertRefused("only encoding", solana, "" + file("longer", call));
    call = SOLANA.replace("020000003100000000000000", "090000003100000000000000");
    assertRefused(
        "(instruction 0 of program 11111111111111111111111111111111)",
        solana,
        "" + file("call", call));
    assertRefused("no children", solana, good, "--path", "m/0");
    assertRefused("output keys", solana, good, "--taproot");
    assertRefused("do not sign payloads of kind", solana, good, "--scheme", "ecdsa");
    assertRefused("solana_transaction only", "--message-hex", SOLANA, "--scheme", "ed25519");
    assertRefused("signs it as digest", "--message-hex", "1b".repeat(32), "--scheme", "ed25519");
    assertRefused("is not text", "--message-hex", "680065", "--scheme", "ed25519");
    assertRefused("is not text", "-m", "pay \u202eem", "--scheme", "ed25519");
    byte[] latin = "gr\u00fc\u00df dich".getBytes(StandardCharsets.ISO_8859_1);
    assertRefused("is not text", "-f", "" + file("latin", latin), "--scheme", "ed25519");
    assertRefused("do not sign payloads of kind", "-m", "hello", "--scheme", "bip340");
    assertRefused("is 32 bytes", "--digest", "ab".repeat(32), "--scheme", "bip340", "--taproot=ab");
    String psbt = "" + file("psbt", HexFormat.of().parseHex(PSBT));
    assertRefused("no such input", "--psbt", psbt, "--input", "9");
    assertRefused("output keys", "--psbt", psbt, "--input", "4", "--scheme", "ecdsa");
  }

  @Test
  void verifiesWithoutAnInstallation() throws Exception {
    String[] solana = {
      "verify",
      "--public-key",
      SOLANA_KEY,
      "--solana-transaction",
      "" + file("solana", SOLANA),
      "--signature",
      SOLANA_SIGNATURE
    };
    String[] taproot = {
      "verify",
      "--public-key",
      OUTPUT_KEY,
      "--psbt",
      "" + file("psbt", HexFormat.of().parseHex(PSBT)),
      "--signature",
      WITNESS,
      "--input",
      "4"
    };
    for (String[] good : List.of(solana, taproot)) {
      assertThat(Run.of(good)).isEqualTo(new Run(0, "valid\n", ""));
      for (String bad :
          List.of(
              "",
              "00",
              "00".repeat(64),
              "ff".repeat(64),
              good[6].substring(2),
              good[6].substring(0, 126) + "00",
              "00" + good[6].substring(2))) {
        String[] args = good.clone();
        args[6] = bad;
        assertThat(Run.of(args)).isEqualTo(new Run(ExitCode.NO, "NOT VALID\n", ""));
      }
    }
    // Of other keys, the transaction and the input are not.
    solana[2] = OUTPUT_KEY;
    assertThat(Run.of(solana).err()).hasLineCount(1).contains("among its signers");
    taproot[2] = SOLANA_KEY;
    assertThat(Run.of(taproot).err()).hasLineCount(1).contains("does not pay to this key");
    for (String key : List.of("00".repeat(32), "ff".repeat(32), "01" + "00".repeat(31), "ab")) {
      for (String scheme : List.of("ed25519", "bip340")) {
        List<String> args =
            new ArrayList<>(
                List.of("verify", "--public-key", key, "--signature", WITNESS, "--scheme", scheme));
        args.addAll(
            scheme.equals("ed25519")
                ? List.of("-m", "hello")
                : List.of("--digest", "ab".repeat(32)));
        assertThat(Run.of(args.toArray(String[]::new)))
            .isEqualTo(new Run(ExitCode.NO, "NOT VALID\n", ""));
      }
    }
  }

  @Test
  void theSignatureIsPutIntoThePayload() throws Exception {
    SigningIntent transaction = signed("--solana-transaction", "" + file("tx", SOLANA));
    Signing signing =
        Signing.newBuilder().setSignature(ByteString.fromHex(SOLANA_SIGNATURE)).build();
    assertThat(SignedPayload.signed(transaction, ByteString.fromHex(SOLANA_KEY), signing))
        .contains(
            Base64.getEncoder()
                .encodeToString(HexFormat.of().parseHex("01" + SOLANA_SIGNATURE + SOLANA)));
    SigningIntent psbt =
        signed("--psbt", "" + file("psbt", HexFormat.of().parseHex(PSBT)), "--input", "4");
    String spent =
        SignedPayload.signed(
                psbt,
                ByteString.fromHex(OUTPUT_KEY),
                Signing.newBuilder().setSignature(ByteString.fromHex(WITNESS)).build())
            .orElseThrow();
    assertThat(HexFormat.of().formatHex(Base64.getDecoder().decode(spent)))
        .contains("0113" + "40" + WITNESS + "0117");
  }

  @Test
  void theKeysOfASchemeAreItsOwn() {
    // BIP-86: the account's key, and its first receiving address.
    AttestedKey taproot =
        attested(
            Scheme.SCHEME_BIP340_SECP256K1,
            ExtendedPublicKey.parse(
                "xpub6BgBgsespWvERF3LHQu6CnqdvfEvtMcQjYrcRzx53QJjSxarj2afYWcLteoGVky7D3UKDP9QyrLprQ3VCECoY49yfdDEHGCtMMj92pReUsQ"));
    assertThat(
            AttestedKeys.verifyingKey(
                taproot, new KeyTarget(List.of(0, 0), Optional.of(ByteString.EMPTY))))
        .isEqualTo(
            ByteString.fromHex("a60869f0dbcf1dc659c9cecbaf8050135ea9e8cdc487053f1dc6880949dc684c"));
    AttestedKey ed25519 = attested(Scheme.SCHEME_ED25519, ByteString.fromHex(SOLANA_KEY));
    assertThat(AttestedKeys.verifyingKey(ed25519, KeyTarget.SELF))
        .isEqualTo(ByteString.fromHex(SOLANA_KEY));
    assertThatThrownBy(() -> AttestedKeys.verifyingKey(ed25519, KeyTarget.at(List.of(0))))
        .isInstanceOf(CliException.class)
        .hasMessageContaining("no such child");
  }
}
