package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.cli.key.AttestedKeys;
import io.coterie.cli.payload.EcdsaVerifier;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** Payloads of ECDSA keys, as far as they need no installation. */
class EcdsaTest extends OfflineIntents {
  /** The example of EIP-155; its key is 46 in every byte. */
  private static final String TRANSACTION =
      "ec098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080";

  private static final String TRANSACTION_KEY =
      "024bc2a31265153f07e70e0bab08724e6b85e217f8cd628ceb62974247bb493382";
  private static final String TRANSACTION_SIGNATURE =
      "28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa63627667cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83";
  private static final String TRANSACTION_SIGNED =
      "0xf86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83";

  /**
   * A P2WPKH input with the key and the amount of BIP-143's example, and a signature with the
   * example's private key after RFC 6979.
   */
  private static final String PSBT =
      "70736274ff0100770100000001a2735f656081e7443675836cb3444a7c499f51dd4add7cd01daf527c73c4883a0100000000ffffffff02202cb206000000001976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac9093510d000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa815988ac11000000"
          + "00"
          + "010071010000000133333333333333333333333333333333333333333333333333333333333333330000000000ffffffff0201000000000000001600141d0f172a0ecb48aee1be1f2687d2963ae33f71a10046c323000000001600141d0f172a0ecb48aee1be1f2687d2963ae33f71a100000000"
          + "01011f0046c323000000001600141d0f172a0ecb48aee1be1f2687d2963ae33f71a1"
          + "00"
          + "0000";

  private static final String PSBT_KEY =
      "025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357";
  private static final String PSBT_R =
      "1e4ac714c545051c407f076d1ed5c275952a5f586beb1aa230ae3fdf375c51d5";
  private static final String PSBT_S =
      "0182d0e0ae3d3b351e3e9e21735780498582a446850723d9dd3d78009f21bacb";

  @Test
  void everyKindOfPayloadCanBeSigned() throws Exception {
    byte[] raw = HexFormat.of().parseHex(TRANSACTION);
    for (Path transaction :
        List.of(
            file("tx.bin", raw),
            file("tx.hex", TRANSACTION + "\n"),
            file("tx.0x", "0x" + TRANSACTION))) {
      SigningIntent intent = signed("--ethereum-transaction", "" + transaction, "--path", "m/0/1");
      assertThat(intent.getEthereumTransaction()).isEqualTo(ByteString.copyFrom(raw));
      assertThat(intent.getScheme()).isEqualTo(Scheme.SCHEME_ECDSA_SECP256K1);
      assertThat(intent.getDerivationPathList()).containsExactly(0, 1);
    }
    assertThat(signed("--ethereum-message", "hello").getEthereumMessage().toStringUtf8())
        .isEqualTo("hello");
    String digest = "ab".repeat(32);
    assertThat(signed("--digest", "0x" + digest).getDigest()).isEqualTo(ByteString.fromHex(digest));

    byte[] psbt = HexFormat.of().parseHex(PSBT);
    for (Path file :
        List.of(file("a.psbt", psbt), file("b.psbt", Base64.getMimeEncoder().encode(psbt)))) {
      SigningIntent intent = signed("--psbt", "" + file, "--input", "0");
      assertThat(intent.getBitcoinInput().getPsbt()).isEqualTo(ByteString.fromHex(PSBT));
      assertThat(intent.getBitcoinInput().getInput()).isZero();
    }
    String typed =
        """
        {"types":{"EIP712Domain":[{"name":"name","type":"string"}],"One":[{"name":"it","type":"string"}]},
        "primaryType":"One","domain":{"name":"test"},"message":{"it":"ü"}}
        """;
    assertThat(signed("--typed-data", "" + file("typed.json", typed)).getEthereumTypedData())
        .isEqualTo(typed);
    assertThat(signed("-m", "hello").getScheme()).isEqualTo(Scheme.SCHEME_BLS12381);
  }

  @Test
  void mistakesShowBeforeAnythingIsSigned() throws Exception {
    int usage = CommandLine.ExitCode.USAGE;
    Path signed = file("signed", TRANSACTION_SIGNED);
    assertRefused(
        ExitCode.LOCAL, "not an unsigned transaction", "--ethereum-transaction", "" + signed);
    assertRefused(
        ExitCode.LOCAL, "cannot be read", "--ethereum-transaction", "" + folder.resolve("absent"));
    assertRefused(
        ExitCode.LOCAL, "larger", "--typed-data", "" + file("big", new byte[256 * 1024 + 1]));
    assertRefused(
        ExitCode.LOCAL, "UTF-8", "--typed-data", "" + file("latin", new byte[] {(byte) 0xfc}));
    assertRefused(ExitCode.LOCAL, "not EIP-712", "--typed-data", "" + file("json", "{}"));
    // To 0x3535... with multicall(bytes[])
    String call = "e3010182520894" + "35".repeat(20) + "8084ac9650d8018080";
    assertRefused(
        ExitCode.LOCAL,
        "(call of function 0xac9650d8)",
        "--ethereum-transaction",
        "" + file("call", call));
    assertRefused(ExitCode.LOCAL, "is not text", "--ethereum-message", "pay \u202eem");
    assertRefused(ExitCode.LOCAL, "not 32 bytes", "--digest", "abcd");
    assertRefused(ExitCode.LOCAL, "not hex", "--digest", "xyz");
    assertRefused(ExitCode.LOCAL, "not a PSBT", "--psbt", "" + signed);
    String claimed = PSBT.replaceFirst("010071[0-9a-f]{226}", "");
    assertRefused(
        ExitCode.LOCAL,
        "non_witness_utxo",
        "--psbt",
        "" + file("claimed", HexFormat.of().parseHex(claimed)));
    assertRefused(
        ExitCode.LOCAL,
        "do not sign payloads of kind",
        "--ethereum-message",
        "hello",
        "--scheme",
        "bls12381");
    assertRefused(
        ExitCode.LOCAL,
        "do not sign payloads of kind",
        "-m",
        "hello",
        "--scheme",
        "ecdsa-secp256k1");
    assertRefused(
        ExitCode.LOCAL,
        "there are: bls12381, ecdsa-secp256k1, ed25519, bip340-secp256k1",
        "-m",
        "hello",
        "--scheme",
        "rsa");
    assertRefused(usage, "mutually exclusive", "-m", "hello", "--digest", "ab".repeat(32));
    assertRefused(usage, "--psbt", "--input", "1");
    assertRefused(usage, "Give what to sign", "--path", "m/0");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "m/0'",
        "m/44h/0",
        "m/",
        "/",
        "",
        "m//0",
        "m/-1",
        "m/+1",
        "m/x",
        "M/0",
        "m/2147483648",
        "m/0/0/0/0/0/0/0/0/0/0/0"
      })
  void aPathIsChecked(String path) {
    assertRefused(
        CommandLine.ExitCode.USAGE, "--path", "--ethereum-message", "hello", "--path", path);
  }

  @Test
  void aPathOfAllItsSteps() throws Exception {
    assertThat(
            signed("--ethereum-message", "x", "--path", "2147483647/1/2/3/4/5/6/7/8/9")
                .getDerivationPathList())
        .containsExactly(Integer.MAX_VALUE, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    assertThat(signed("--ethereum-message", "x", "--path", "m").getDerivationPathList()).isEmpty();
  }

  @Test
  void verifiesWithoutAnInstallation() throws Exception {
    String transaction = "" + file("tx", TRANSACTION);
    String[] good = {
      "verify",
      "--public-key",
      TRANSACTION_KEY,
      "--ethereum-transaction",
      transaction,
      "--signature",
      TRANSACTION_SIGNATURE
    };
    assertThat(Run.of(good)).isEqualTo(new Run(0, "valid\n", ""));
    for (String bad :
        Stream.of(
                "",
                "00",
                "00".repeat(64),
                "ff".repeat(64),
                TRANSACTION_SIGNATURE.substring(2),
                // The same with high s
                TRANSACTION_SIGNATURE.substring(0, 64)
                    + "98341626668089e51348fccfb4c7ff32 c5591af2d2 e57ef0965291f63 5fad3be"
                        .replace(" ", ""))
            .toList()) {
      String[] args = good.clone();
      args[6] = bad;
      assertThat(Run.of(args)).isEqualTo(new Run(ExitCode.NO, "NOT VALID\n", ""));
    }
    for (String key : List.of(PSBT_KEY, "00".repeat(33), "02" + "ff".repeat(32), "ab")) {
      String[] args = good.clone();
      args[2] = key;
      assertThat(Run.of(args)).isEqualTo(new Run(ExitCode.NO, "NOT VALID\n", ""));
    }
    Run psbt =
        Run.of(
            "verify",
            "--public-key",
            PSBT_KEY,
            "--psbt",
            "" + file("p", HexFormat.of().parseHex(PSBT)),
            "--input",
            "0",
            "--signature",
            PSBT_R + PSBT_S);
    assertThat(psbt).isEqualTo(new Run(0, "valid\n", ""));
  }

  @Test
  void theSignatureIsPutIntoThePayload() throws Exception {
    SigningIntent transaction = signed("--ethereum-transaction", "" + file("tx", TRANSACTION));
    Signing signing =
        Signing.newBuilder()
            .setSignature(ByteString.fromHex(TRANSACTION_SIGNATURE))
            .setRecoveryId(0)
            .build();
    assertThat(SignedPayload.signed(transaction, ByteString.fromHex(TRANSACTION_KEY), signing))
        .contains(TRANSACTION_SIGNED);

    SigningIntent psbt =
        signed("--psbt", "" + file("p", HexFormat.of().parseHex(PSBT)), "--input", "0");
    String der = "30440220" + PSBT_R + "0220" + PSBT_S;
    Optional<String> signed =
        SignedPayload.signed(
            psbt,
            ByteString.fromHex(PSBT_KEY),
            Signing.newBuilder()
                .setSignature(ByteString.fromHex(PSBT_R + PSBT_S))
                .setDerSignature(ByteString.fromHex(der))
                .build());
    assertThat(HexFormat.of().formatHex(Base64.getDecoder().decode(signed.orElseThrow())))
        .contains("2202" + PSBT_KEY + "47" + der + "01");
  }

  /** The example of EIP-155, whose v is 37. */
  @Test
  void recoveryIdAndSequenceAreThoseOfTheStandards() {
    assertThat(
            EcdsaVerifier.recoveryId(
                ByteString.fromHex(TRANSACTION_KEY),
                ByteString.fromHex(
                    "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"),
                ByteString.fromHex(TRANSACTION_SIGNATURE)))
        .isZero();
    assertThat(EcdsaVerifier.der(ByteString.fromHex(PSBT_R + PSBT_S)))
        .isEqualTo(ByteString.fromHex("30440220" + PSBT_R + "0220" + PSBT_S));
    assertThat(EcdsaVerifier.der(ByteString.fromHex("ff" + PSBT_R.substring(2) + PSBT_S)))
        .isEqualTo(ByteString.fromHex("3045022100ff" + PSBT_R.substring(2) + "0220" + PSBT_S));
  }

  @Test
  void childrenOfAKey() {
    // BIP-32, vector 2, m and m/0
    AttestedKey key =
        attested(
            Scheme.SCHEME_ECDSA_SECP256K1,
            ExtendedPublicKey.parse(
                "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB"));
    assertThat(AttestedKeys.verifyingKey(key, KeyTarget.at(List.of(0))))
        .isEqualTo(
            ByteString.fromHex(
                "02fc9e5af0ac8d9b3cecfe2a888e2117ba3d089d8585886c9c826b6b22a98d12ea"));
    AttestedKey bls = attested(Scheme.SCHEME_BLS12381, ByteString.fromHex("ab"));
    assertThat(AttestedKeys.verifyingKey(bls, KeyTarget.SELF)).isEqualTo(ByteString.fromHex("ab"));
    assertThatThrownBy(() -> AttestedKeys.verifyingKey(bls, KeyTarget.at(List.of(0))))
        .isInstanceOf(CliException.class)
        .hasMessageContaining("no such child");
  }
}
