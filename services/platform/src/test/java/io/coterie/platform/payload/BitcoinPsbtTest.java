package io.coterie.platform.payload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import fr.acinq.bitcoin.OutPoint;
import fr.acinq.bitcoin.Satoshi;
import fr.acinq.bitcoin.Script;
import fr.acinq.bitcoin.Transaction;
import fr.acinq.bitcoin.TxHash;
import fr.acinq.bitcoin.TxIn;
import fr.acinq.bitcoin.TxOut;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.proto.custody.v1.BitcoinInput;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class BitcoinPsbtTest {
  /** BIP-143, native P2WPKH: the key of the second input. */
  private static final ByteString KEY =
      ByteString.fromHex("025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357");

  private static final String TRANSACTION =
      "0100000002fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f0000000000eeffffffef51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb206000000001976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac9093510d000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa815988ac11000000";

  private static final String MAGIC = "70736274ff";
  private static final String END = "00";

  /** Amount and script of the second input's output. */
  private static final String UTXO =
      "0046c323000000001600141d0f172a0ecb48aee1be1f2687d2963ae33f71a1";

  private static String entry(String key, String value) {
    return size(key.length() / 2) + key + size(value.length() / 2) + value;
  }

  private static String size(int size) {
    return size < 0xfd ? "%02x".formatted(size) : "fd%02x%02x".formatted(size & 0xff, size >>> 8);
  }

  private static ByteString psbt(String transaction, String firstInput, String secondInput) {
    return ByteString.fromHex(
        MAGIC + entry("00", transaction) + END + firstInput + END + secondInput + END + END + END);
  }

  /** The example of BIP-143 as a PSBT. */
  static ByteString bip143() {
    return psbt(TRANSACTION, "", entry("01", UTXO));
  }

  /** The output that another first input spends, and its transaction. */
  private static final Transaction PREVIOUS =
      new Transaction(
          1,
          List.of(new TxIn(new OutPoint(new TxHash("22".repeat(32)), 0), new byte[0], 0xffffffffL)),
          List.of(out(625_000_000, KEY)),
          0);

  /** The transaction whose second output another second input spends. */
  private static final Transaction OWN_PREVIOUS =
      new Transaction(
          1,
          List.of(new TxIn(new OutPoint(new TxHash("33".repeat(32)), 0), new byte[0], 0xffffffffL)),
          List.of(out(1, KEY), out(600_000_000, KEY)),
          0);

  private static final String PROVEN =
      TRANSACTION
          .replace(
              "fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f00000000",
              PREVIOUS.hash.value.toHex() + "00000000")
          .replace(
              "ef51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a01000000",
              OWN_PREVIOUS.hash.value.toHex() + "01000000");

  private static String previous() {
    return entry("00", HexFormat.of().formatHex(Transaction.write(PREVIOUS)));
  }

  private static String ownPrevious() {
    return entry("00", HexFormat.of().formatHex(Transaction.write(OWN_PREVIOUS)));
  }

  /** The second input, with the transaction that has what it spends. */
  private static String own() {
    return ownPrevious() + entry("01", UTXO);
  }

  /** The example with inputs whose previous transactions are there. */
  static ByteString proven() {
    return psbt(PROVEN, previous(), own());
  }

  private static SigningIntent intent(ByteString psbt, int input) {
    return SigningIntent.newBuilder()
        .setBitcoinInput(BitcoinInput.newBuilder().setPsbt(psbt).setInput(input))
        .build();
  }

  private static void assertRefused(IntentProblem problem, ByteString psbt) {
    PayloadsTest.assertRefused(problem, intent(psbt, 1), KEY);
  }

  @Test
  void the_example_of_bip_143() throws Exception {
    assertThat(
            BitcoinPsbt.decode(bip143())
                .witnessHash(
                    1,
                    new fr.acinq.bitcoin.PublicKey(KEY.toByteArray()).hash160(),
                    new Satoshi(600_000_000)))
        .isEqualTo(
            ByteString.fromHex("c37af31116d1b27caf68aae9e3ac82f1477929014d5b917657d0eb49478cb670"));
  }

  @Test
  void the_whole_transaction_is_shown() throws Exception {
    assertThat(PayloadsTest.text(Payloads.decode(intent(proven(), 1), KEY)))
        .isEqualTo(
            """
            input: 1 of 2
            spends: MINE:1
            amount: 600000000
            input 0: 625000000 from OWN, at PREVIOUS:0
            fee: 889210000
            lock time: 17
            sequence: 4294967295
            outputs: 2
            output 0: 112340000 to 1Cu32FVupVCgHkMMRJdYJugxwo2Aprgk7H
            output 1: 223450000 to 16TZ8J6Q5iZKBWizWzFAYnrsaox5Z5aBRV
            """
                .replace("OWN", BitcoinAddress.of(KEY, BitcoinAddress.Network.MAINNET))
                .replace("MINE", OWN_PREVIOUS.txid.value.toHex())
                .replace("PREVIOUS", PREVIOUS.txid.value.toHex()));
  }

  /** CVE-2020-14199: a signature covers the amount of its own input only. */
  @Test
  void an_input_is_not_signed_beside_one_whose_amount_is_only_claimed() {
    assertRefused(IntentProblem.PSBT_PREVIOUS_TRANSACTION, bip143());
    assertRefused(
        IntentProblem.PSBT_PREVIOUS_TRANSACTION,
        psbt(TRANSACTION, entry("01", UTXO), entry("01", UTXO)));
    // The transaction of the own input proves nothing of the other.
    PayloadsTest.assertRefused(
        IntentProblem.PSBT_PREVIOUS_TRANSACTION,
        intent(
            psbt(PROVEN, previous() + entry("01", witnessUtxo(625_000_000)), entry("01", UTXO)), 0),
        KEY);
    // Nor those of the others of the own input.
    assertRefused(
        IntentProblem.PSBT_PREVIOUS_TRANSACTION, psbt(PROVEN, previous(), entry("01", UTXO)));
    // An input may say that it is of Taproot, and not be.
    String taproot = "40420f0000000000" + "22" + "5120" + "11".repeat(32);
    assertRefused(
        IntentProblem.PSBT_PREVIOUS_TRANSACTION, psbt(PROVEN, entry("01", taproot), own()));
  }

  /** Else it proves nothing about the amount that the fee is made of. */
  @Test
  void a_previous_transaction_is_that_of_its_input_and_has_what_it_spends() throws Exception {
    String other = PREVIOUS.hash.value.toHex();
    for (ByteString lie :
        List.of(
            psbt(TRANSACTION, previous(), entry("01", UTXO)),
            psbt(
                PROVEN.replace(other + "00000000", other + "01000000"),
                previous(),
                entry("01", UTXO)),
            psbt(
                PROVEN.replace(other + "00000000", other + "ffffffff"),
                previous(),
                entry("01", UTXO)),
            psbt(PROVEN, previous() + entry("01", witnessUtxo(625_000_001)), entry("01", UTXO)))) {
      assertRefused(IntentProblem.PSBT_MALFORMED, lie);
    }
    ByteString both = psbt(PROVEN, previous() + entry("01", witnessUtxo(625_000_000)), own());
    assertThat(Payloads.decode(intent(both, 1), KEY).toSign())
        .isEqualTo(Payloads.decode(intent(proven(), 1), KEY).toSign());
  }

  private static String witnessUtxo(long amount) {
    return HexFormat.of().formatHex(TxOut.write(out(amount, KEY)));
  }

  @Test
  void a_preview_says_and_hashes_the_same_without_the_key() throws Exception {
    DecodedPayload decoded = Payloads.decode(intent(proven(), 1), KEY);
    assertThat(Payloads.preview(intent(proven(), 1))).isEqualTo(decoded);
    assertThatThrownBy(() -> Payloads.preview(intent(proven(), 0)))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.problem()).isEqualTo(IntentProblem.PSBT_UTXO_MISSING));
    ByteString bare = psbt(TRANSACTION, "", entry("01", "0046c32300000000" + "00"));
    assertThatThrownBy(() -> Payloads.preview(intent(bare, 1)))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.problem()).isEqualTo(IntentProblem.PSBT_UTXO_NOT_OF_KEY));
  }

  /** The published signature goes where finalisers look for it. */
  @Test
  void a_partial_signature_is_added() throws Exception {
    String signature =
        "304402203609e17b84f6a7d30c80bfa610b5b4542f32a8a0d5447a12fb1366d7f01cc44a0220573a954c4518331561406f90300e8f3358f51928d43c212a8caed02de67eebee";
    BitcoinPsbt signed = BitcoinPsbt.decode(proven()).signed(1, KEY, ByteString.fromHex(signature));
    ByteString expected =
        psbt(
            PROVEN,
            previous(),
            own()
                + entry(
                    "02025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357",
                    signature + "01"));
    assertThat(signed.encoded()).isEqualTo(expected);
    // It can be signed again, and by others.
    assertThat(BitcoinPsbt.decode(expected).encoded()).isEqualTo(expected);
    assertThatThrownBy(
            () -> BitcoinPsbt.decode(proven()).signed(0, KEY, ByteString.fromHex(signature)))
        .isInstanceOf(IntentException.class);
  }

  @Test
  void refuses_inputs_that_are_not_this_keys_to_sign() {
    PayloadsTest.assertRefused(IntentProblem.PSBT_UTXO_MISSING, intent(bip143(), 0), KEY);
    PayloadsTest.assertRefused(IntentProblem.PSBT_INPUT_UNKNOWN, intent(bip143(), 2), KEY);
    PayloadsTest.assertRefused(IntentProblem.PSBT_INPUT_UNKNOWN, intent(bip143(), -1), KEY);
    ByteString other =
        ByteString.fromHex("03ad1d8e89212f0b92c74d23bb710c00662ad1470198ac48c43f7d6f93a2a26873");
    PayloadsTest.assertRefused(IntentProblem.PSBT_UTXO_NOT_OF_KEY, intent(bip143(), 1), other);
    for (String script :
        List.of(
            // P2PKH of the key, P2SH, P2WSH, taproot, nothing
            "1976a9141d0f172a0ecb48aee1be1f2687d2963ae33f71a188ac",
            "17a9144733f37cf4db86fbc2efed2500b4f4e49f31202387",
            "2200205d1b56b63d714eebe542309525f484b7e9d6f686b3781b6f61ef925d66d6f6a0",
            "2251205d1b56b63d714eebe542309525f484b7e9d6f686b3781b6f61ef925d66d6f6a0",
            "00")) {
      assertRefused(
          IntentProblem.PSBT_UTXO_NOT_OF_KEY,
          psbt(TRANSACTION, "", entry("01", "0046c32300000000" + script)));
    }
    // P2SH-wrapped: scripts do not belong to a native output
    assertRefused(
        IntentProblem.PSBT_UTXO_NOT_OF_KEY,
        psbt(TRANSACTION, "", entry("01", UTXO) + entry("04", "51")));
    assertRefused(
        IntentProblem.PSBT_UTXO_NOT_OF_KEY,
        psbt(TRANSACTION, "", entry("01", UTXO) + entry("05", "51")));
    assertRefused(
        IntentProblem.PSBT_INPUT_FINAL,
        psbt(TRANSACTION, "", entry("01", UTXO) + entry("08", "0101aa")));
  }

  @Test
  void refuses_other_sighashes() throws Exception {
    for (String sighash :
        List.of("00000000", "02000000", "03000000", "81000000", "83000000", "01000001")) {
      assertRefused(
          IntentProblem.PSBT_SIGHASH,
          psbt(TRANSACTION, "", entry("01", UTXO) + entry("03", sighash)));
    }
    assertThat(
            Payloads.decode(
                    intent(psbt(PROVEN, previous(), own() + entry("03", "01000000")), 1), KEY)
                .toSign())
        .isEqualTo(Payloads.decode(intent(proven(), 1), KEY).toSign());
  }

  @Test
  void refuses_impossible_amounts() {
    for (String amount :
        List.of("0140075af0750700", "ffffffffffffffff", "ffffffffffffff7f", "0000000000000080")) {
      assertRefused(
          IntentProblem.PSBT_AMOUNT,
          psbt(
              TRANSACTION,
              "",
              entry("01", amount + "1600141d0f172a0ecb48aee1be1f2687d2963ae33f71a1")));
      assertRefused(
          IntentProblem.PSBT_AMOUNT,
          psbt(TRANSACTION.replace("202cb20600000000", amount), "", entry("01", UTXO)));
    }
    // Two outputs of 15 million coins each
    assertRefused(
        IntentProblem.PSBT_AMOUNT,
        psbt(
            TRANSACTION
                .replace("202cb20600000000", "00c05773a5540500")
                .replace("9093510d00000000", "00c05773a5540500"),
            "",
            entry("01", UTXO)));
    // Pays 3.3579, spends 0.5 + 0.5
    String half = "80f0fa02000000001600141d0f172a0ecb48aee1be1f2687d2963ae33f71a1";
    assertRefused(
        IntentProblem.PSBT_AMOUNT, psbt(TRANSACTION, entry("01", half), entry("01", half)));
  }

  @Test
  void a_single_input_needs_its_previous_transaction_too() throws Exception {
    List<TxOut> outputs = List.of(out(4_000, KEY));
    assertThat(PayloadsTest.text(Payloads.decode(intent(withOutputs(outputs), 0), KEY)))
        .contains("fee: 599996000\n", "amount: 600000000\n");
    PayloadsTest.assertRefused(
        IntentProblem.PSBT_PREVIOUS_TRANSACTION,
        intent(withOutputs(entry("01", UTXO), outputs), 0),
        KEY);
  }

  @ParameterizedTest
  @CsvSource({
    // P2PKH, P2SH, P2WPKH, P2WSH, P2TR
    "76a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac, 1Cu32FVupVCgHkMMRJdYJugxwo2Aprgk7H",
    "a9143545e6e33b832c47050f24d3eeb93c9c03948bc787, 36YhUacEtcnkfhSbxwm11wDCexLGBLgJF6",
    "00141d0f172a0ecb48aee1be1f2687d2963ae33f71a1, bc1qr583w2swedy2acd7rung055k8t3n7udp7vyzyg",
    "00201111111111111111111111111111111111111111111111111111111111111111,"
        + " bc1qzyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygsszvapf",
    "5120a60869f0dbcf1dc659c9cecbaf8050135ea9e8cdc487053f1dc6880949dc684c,"
        + " bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr",
    "6a0c696e766f6963652034373131, 'nobody, with text: invoice 4711'",
    "6a02c3bc, 'nobody, with text: ü'",
  })
  void an_output_is_read(String script, String recipient) throws Exception {
    List<TxOut> outputs = List.of(out(1, KEY), new TxOut(new Satoshi(2), hex(script)));
    assertThat(PayloadsTest.text(Payloads.decode(intent(withOutputs(outputs), 0), KEY)))
        .endsWith("output 1: 2 to " + recipient + "\n");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        // No script, one that anybody may spend, a key, one of two keys
        "",
        "51",
        "21025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357ac",
        "5121025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357"
            + "21025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee635752ae",
        // Data that are no text, are none, of a protocol, of another length, of two pushes
        "6a",
        "6a00",
        "6a02c328",
        "6a0400ff0102",
        "6a0161e2",
        "6a0361620a0163",
        "6a03616263" + "0164",
        "6a0461e280ae",
        "6a5d0161",
        "6a4c03616263",
        "6aff616263",
        // Witness programs of a version or a size without a rule: anybody may spend, as of P2A
        "51024e73",
        "51143737373737373737373737373737373737373737",
        "5121373737373737373737373737373737373737373737373737373737373737373737",
        "52203737373737373737373737373737373737373737373737373737373737373737",
        "60023737",
        "0015373737373737373737373737373737373737373737",
      })
  void a_script_that_nobody_reads_is_refused(String script) {
    List<TxOut> outputs = List.of(out(1, KEY), new TxOut(new Satoshi(2), hex(script)));
    PayloadsTest.assertNotRead("script of output 1", intent(withOutputs(outputs), 0), KEY);
  }

  private static byte[] hex(String script) {
    return ByteString.fromHex(script).toByteArray();
  }

  private static TxOut out(long amount, ByteString key) {
    return new TxOut(
        new Satoshi(amount), Script.pay2wpkh(new fr.acinq.bitcoin.PublicKey(key.toByteArray())));
  }

  /** BIP-174, invalid PSBTs. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        // Network transaction, not PSBT format
        "AgAAAAEmgXE3Ht/yhek3re6ks3t4AAwFZsuzrWRkFxPKQhcb9gAAAABqRzBEAiBwsiRRI+a/R01gxbUMBD1MaRpdJDXwmjSnZiqdwlF5CgIgATKcqdrPKAvfMHQOwDkEIkIsgctFg5RXrrdvwS7dlbMBIQJlfRGNM1e44PTCzUbbezn22cONmnCry5st5dyNv+TOMf7///8C09/1BQAAAAAZdqkU0MWZA8W6woaHYOkP1SGkZlqnZSCIrADh9QUAAAAAF6kUNUXm4zuDLEcFDyTT7rk8nAOUi8eHsy4TAA==",
        // Missing outputs
        "cHNidP8BAHUCAAAAASaBcTce3/KF6Tet7qSze3gADAVmy7OtZGQXE8pCFxv2AAAAAAD+////AtPf9QUAAAAAGXapFNDFmQPFusKGh2DpD9UhpGZap2UgiKwA4fUFAAAAABepFDVF5uM7gyxHBQ8k0+65PJwDlIvHh7MuEwAAAQD9pQEBAAAAAAECiaPHHqtNIOA3G7ukzGmPopXJRjr6Ljl/hTPMti+VZ+UBAAAAFxYAFL4Y0VKpsBIDna89p95PUzSe7LmF/////4b4qkOnHf8USIk6UwpyN+9rRgi7st0tAXHmOuxqSJC0AQAAABcWABT+Pp7xp0XpdNkCxDVZQ6vLNL1TU/////8CAMLrCwAAAAAZdqkUhc/xCX/Z4Ai7NK9wnGIZeziXikiIrHL++E4sAAAAF6kUM5cluiHv1irHU6m80GfWx6ajnQWHAkcwRAIgJxK+IuAnDzlPVoMR3HyppolwuAJf3TskAinwf4pfOiQCIAGLONfc0xTnNMkna9b7QPZzMlvEuqFEyADS8vAtsnZcASED0uFWdJQbrUqZY3LLh+GFbTZSYG2YVi/jnF6efkE/IQUCSDBFAiEA0SuFLYXc2WHS9fSrZgZU327tzHlMDDPOXMMJ/7X85Y0CIGczio4OFyXBl/saiK9Z9R5E5CVbIBZ8hoQDHAXR8lkqASECI7cr7vCWXRC+B3jv7NYfysb3mk6haTkzgHNEZPhPKrMAAAAAAA==",
        // A filled scriptSig in the unsigned transaction
        "cHNidP8BAP0KAQIAAAACqwlJoIxa98SbghL0F+LxWrP1wz3PFTghqBOfh3pbe+QAAAAAakcwRAIgR1lmF5fAGwNrJZKJSGhiGDR9iYZLcZ4ff89X0eURZYcCIFMJ6r9Wqk2Ikf/REf3xM286KdqGbX+EhtdVRs7tr5MZASEDXNxh/HupccC1AaZGoqg7ECy0OIEhfKaC3Ibi1z+ogpL+////qwlJoIxa98SbghL0F+LxWrP1wz3PFTghqBOfh3pbe+QBAAAAAP7///8CYDvqCwAAAAAZdqkUdopAu9dAy+gdmI5x3ipNXHE5ax2IrI4kAAAAAAAAGXapFG9GILVT+glechue4O/p+gOcykWXiKwAAAAAAAABASAA4fUFAAAAABepFDVF5uM7gyxHBQ8k0+65PJwDlIvHhwEEFgAUhdE1N/LiZUBaNNuvqePdoB+4IwgAAAA=",
        // Without an unsigned transaction
        "cHNidP8AAQD9pQEBAAAAAAECiaPHHqtNIOA3G7ukzGmPopXJRjr6Ljl/hTPMti+VZ+UBAAAAFxYAFL4Y0VKpsBIDna89p95PUzSe7LmF/////4b4qkOnHf8USIk6UwpyN+9rRgi7st0tAXHmOuxqSJC0AQAAABcWABT+Pp7xp0XpdNkCxDVZQ6vLNL1TU/////8CAMLrCwAAAAAZdqkUhc/xCX/Z4Ai7NK9wnGIZeziXikiIrHL++E4sAAAAF6kUM5cluiHv1irHU6m80GfWx6ajnQWHAkcwRAIgJxK+IuAnDzlPVoMR3HyppolwuAJf3TskAinwf4pfOiQCIAGLONfc0xTnNMkna9b7QPZzMlvEuqFEyADS8vAtsnZcASED0uFWdJQbrUqZY3LLh+GFbTZSYG2YVi/jnF6efkE/IQUCSDBFAiEA0SuFLYXc2WHS9fSrZgZU327tzHlMDDPOXMMJ/7X85Y0CIGczio4OFyXBl/saiK9Z9R5E5CVbIBZ8hoQDHAXR8lkqASECI7cr7vCWXRC+B3jv7NYfysb3mk6haTkzgHNEZPhPKrMAAAAAAA==",
        // Duplicate keys in an input
        "cHNidP8BAHUCAAAAASaBcTce3/KF6Tet7qSze3gADAVmy7OtZGQXE8pCFxv2AAAAAAD+////AtPf9QUAAAAAGXapFNDFmQPFusKGh2DpD9UhpGZap2UgiKwA4fUFAAAAABepFDVF5uM7gyxHBQ8k0+65PJwDlIvHh7MuEwAAAQD9pQEBAAAAAAECiaPHHqtNIOA3G7ukzGmPopXJRjr6Ljl/hTPMti+VZ+UBAAAAFxYAFL4Y0VKpsBIDna89p95PUzSe7LmF/////4b4qkOnHf8USIk6UwpyN+9rRgi7st0tAXHmOuxqSJC0AQAAABcWABT+Pp7xp0XpdNkCxDVZQ6vLNL1TU/////8CAMLrCwAAAAAZdqkUhc/xCX/Z4Ai7NK9wnGIZeziXikiIrHL++E4sAAAAF6kUM5cluiHv1irHU6m80GfWx6ajnQWHAkcwRAIgJxK+IuAnDzlPVoMR3HyppolwuAJf3TskAinwf4pfOiQCIAGLONfc0xTnNMkna9b7QPZzMlvEuqFEyADS8vAtsnZcASED0uFWdJQbrUqZY3LLh+GFbTZSYG2YVi/jnF6efkE/IQUCSDBFAiEA0SuFLYXc2WHS9fSrZgZU327tzHlMDDPOXMMJ/7X85Y0CIGczio4OFyXBl/saiK9Z9R5E5CVbIBZ8hoQDHAXR8lkqASECI7cr7vCWXRC+B3jv7NYfysb3mk6haTkzgHNEZPhPKrMAAAAAAQA/AgAAAAH//////////////////////////////////////////wAAAAAA/////wEAAAAAAAAAAANqAQAAAAAAAAAA",
      })
  void refuses_the_invalid_psbts_of_the_standard(String base64) {
    assertRefused(
        IntentProblem.PSBT_MALFORMED, ByteString.copyFrom(Base64.getDecoder().decode(base64)));
  }

  /** Bitcoin Core, Sparrow, hardware wallets: BIP-174 leaves the order of a map's entries open. */
  @Test
  void entries_of_a_map_may_have_any_order() throws Exception {
    List<String> entries =
        List.of(
            ownPrevious(), entry("01", UTXO), entry("03", "01000000"), entry("fc0361626300", "ff"));
    ByteString sorted = psbt(PROVEN, previous(), String.join("", entries));
    for (List<String> order :
        List.of(
            entries,
            entries.reversed(),
            List.of(entries.get(2), entries.get(1), entries.get(3), entries.get(0)))) {
      ByteString psbt = psbt(PROVEN, previous(), String.join("", order));
      assertThat(Payloads.decode(intent(psbt, 1), KEY).toSign())
          .isEqualTo(Payloads.decode(intent(proven(), 1), KEY).toSign());
      assertThat(BitcoinPsbt.decode(psbt).encoded()).isEqualTo(sorted);
    }
    for (String twice : entries) {
      assertRefused(
          IntentProblem.PSBT_MALFORMED, psbt(PROVEN, previous(), String.join("", entries) + twice));
    }
    assertRefused(
        IntentProblem.PSBT_MALFORMED,
        psbt(
            TRANSACTION,
            "",
            entry("01", UTXO) + entry("03", "01000000") + entry("03", "02000000")));
  }

  /**
   * A published PSBT of BIP-174, with two extended public keys and fingerprints of their master.
   */
  @Test
  void extended_public_keys_of_the_wallet_may_stand_in_it() throws Exception {
    ByteString published =
        ByteString.copyFrom(
            Base64.getDecoder()
                .decode(
                    "cHNidP8BAFICAAAAAZ38ZijCbFiZ/hvT3DOGZb/VXXraEPYiCXPfLTht7BJ2AQAAAAD/////AfA9zR0A"
                        + "AAAAFgAUezoAv9wU0neVwrdJAdCdpu8TNXkAAAAATwEENYfPAto/0AiAAAAAlwSLGtBEWx7IJ1UXcnyH"
                        + "tOTrwYogP/oPlMAVZr046QADUbdDiH7h1A3DKmBDck8tZFmztaTXPa7I+64EcvO8Q+IM2QxqT64AAIAA"
                        + "AACATwEENYfPAto/0AiAAAABuQRSQnE5zXjCz/JES+NTzVhgXj5RMoXlKLQH+uP2FzUD0wpel8itvFV9"
                        + "rCrZp+OcFyLrrGnmaLbyZnzB1nHIPKsM2QxqT64AAIABAACAAAEBKwBlzR0AAAAAIgAgLFSGEmxJeAea"
                        + "gU4TcV1l82RZ5NbMre0mbQUIZFuvpjIBBUdSIQKdoSzbWyNWkrkVNq/v5ckcOrlHPY5DtTODarRWKZyI"
                        + "cSEDNys0I07Xz5wf6l0F1EFVeSe+lUKxYusC4ass6AIkwAtSriIGAp2hLNtbI1aSuRU2r+/lyRw6uUc9"
                        + "jkO1M4NqtFYpnIhxENkMak+uAACAAAAAgAAAAAAiBgM3KzQjTtfPnB/qXQXUQVV5J76VQrFi6wLhqyzo"
                        + "AiTACxDZDGpPrgAAgAEAAIAAAAAAACICA57/H1R6HV+S36K6evaslxpL0DukpzSwMVaiVritOh75EO3k"
                        + "XMUAAACAAAAAgAEAAIAA"));
    assertThat(BitcoinPsbt.decode(published).encoded()).isEqualTo(published);

    String key =
        "01043587cf02da3fd0088000000097048b1ad0445b1ec8275517727c87b4e4ebc18a203ffa0f94c01566bd38e9"
            + "000351b743887ee1d40dc32a6043724f2d6459b3b5a4d73daec8fbae0472f3bc43e2";
    String origin = "d90c6a4fae00008000000080";
    ByteString withAccount = withGlobal(entry(key, origin));
    assertThat(Payloads.decode(intent(withAccount, 1), KEY).toSign())
        .isEqualTo(Payloads.decode(intent(proven(), 1), KEY).toSign());
    assertThat(BitcoinPsbt.decode(withAccount).encoded()).isEqualTo(withAccount);
    String signature =
        "304402203609e17b84f6a7d30c80bfa610b5b4542f32a8a0d5447a12fb1366d7f01cc44a0220573a954c4518331561406f90300e8f3358f51928d43c212a8caed02de67eebee";
    ByteString signed =
        BitcoinPsbt.decode(withAccount).signed(1, KEY, ByteString.fromHex(signature)).encoded();
    assertThat(BitcoinPsbt.decode(signed).encoded()).isEqualTo(signed);
    assertThat(HexFormat.of().formatHex(signed.toByteArray())).contains(entry(key, origin));

    for (String wrong :
        List.of(
            // its path has another length, its key is cut, or is no point
            entry(key, origin + "00000080"),
            entry(key, origin.substring(0, 16)),
            entry(key, ""),
            entry(key.substring(0, key.length() - 2), origin),
            entry(key + "00", origin),
            entry(key.replace("000351b743", "000551b743"), origin),
            entry(key.substring(0, key.length() - 64) + "f".repeat(64), origin),
            entry("01", origin),
            entry(key, origin) + entry(key, origin))) {
      assertRefused(IntentProblem.PSBT_MALFORMED, withGlobal(wrong));
    }
  }

  private static ByteString withGlobal(String entries) {
    return ByteString.fromHex(
        MAGIC + entry("00", PROVEN) + entries + END + previous() + END + own() + END + END + END);
  }

  @Test
  void refuses_every_truncation_and_trailing_bytes() {
    ByteString good = bip143();
    for (int length = 0; length < good.size(); length++) {
      ByteString cut = good.substring(0, length);
      assertRefused(IntentProblem.PSBT_MALFORMED, cut);
    }
    assertRefused(IntentProblem.PSBT_MALFORMED, good.concat(ByteString.fromHex("00")));
    assertRefused(IntentProblem.PSBT_MALFORMED, good.concat(good));
    // A size in more bytes than it needs
    ByteString longSize =
        ByteString.fromHex(
            MAGIC
                + "01fd0000".replace("01fd0000", "fd0100")
                + "00"
                + size(TRANSACTION.length() / 2)
                + TRANSACTION
                + END
                + END
                + entry("01", UTXO)
                + END
                + END
                + END);
    assertRefused(IntentProblem.PSBT_MALFORMED, longSize);
    // Another version
    assertRefused(
        IntentProblem.PSBT_MALFORMED,
        ByteString.fromHex(
            MAGIC
                + entry("00", TRANSACTION)
                + entry("fb", "02000000")
                + END
                + END
                + entry("01", UTXO)
                + END
                + END
                + END));
  }

  @Test
  void everything_is_bounded() throws Exception {
    // 20,000 entries of a map, which the library would read by recursion
    StringBuilder entries = new StringBuilder();
    for (int i = 0; i < 12_000; i++) {
      entries.append(entry("f0%04x".formatted(i), ""));
    }
    assertRefused(
        IntentProblem.PSBT_MALFORMED, psbt(TRANSACTION, entries.toString(), entry("01", UTXO)));
    // Counts and sizes that are not there
    for (String size :
        List.of("feffffffff", "ffffffffffffffffff", "ffffffffffffffff7f", "fdffff")) {
      assertRefused(
          IntentProblem.PSBT_MALFORMED,
          ByteString.fromHex(MAGIC + size + "00" + size(TRANSACTION.length() / 2) + TRANSACTION));
      assertRefused(
          IntentProblem.PSBT_MALFORMED, ByteString.fromHex(MAGIC + "0100" + size + TRANSACTION));
      assertRefused(
          IntentProblem.PSBT_MALFORMED,
          psbt("01000000" + size + TRANSACTION.substring(10), "", entry("01", UTXO)));
      assertRefused(
          IntentProblem.PSBT_MALFORMED,
          psbt(TRANSACTION, "", entry("01", UTXO) + entry("08", size + "00")));
    }
    // The same input twice, none, no output
    assertRefused(
        IntentProblem.PSBT_MALFORMED,
        psbt(
            TRANSACTION.replace(
                "fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f00000000",
                "ef51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a01000000"),
            "",
            entry("01", UTXO)));
    assertRefused(
        IntentProblem.PSBT_MALFORMED,
        ByteString.fromHex(MAGIC + entry("00", "01000000000000000000") + END));

    // A transaction whose outputs cannot all be shown is refused.
    List<TxOut> outputs = new ArrayList<>();
    for (int i = 0; i < 1_025; i++) {
      outputs.add(out(1, KEY));
    }
    assertRefused(IntentProblem.PSBT_MALFORMED, withOutputs(outputs));
    outputs.removeLast();
    PayloadsTest.assertRefused(
        IntentProblem.PAYLOAD_TOO_LONG_TO_SHOW, intent(withOutputs(outputs), 0), KEY);
    // The other lines are seven.
    List<TxOut> shown = outputs.subList(0, DecodedPayload.MAX_FIELDS - 7);
    assertThat(Payloads.decode(intent(withOutputs(shown), 0), KEY).fields())
        .hasSize(DecodedPayload.MAX_FIELDS);
    PayloadsTest.assertRefused(
        IntentProblem.PAYLOAD_TOO_LONG_TO_SHOW,
        intent(withOutputs(outputs.subList(0, DecodedPayload.MAX_FIELDS - 6)), 0),
        KEY);
  }

  private static ByteString withOutputs(List<TxOut> outputs) {
    return withOutputs(own(), outputs);
  }

  private static ByteString withOutputs(String input, List<TxOut> outputs) {
    TxIn in = new TxIn(new OutPoint(OWN_PREVIOUS.txid, 1), new byte[0], 0xffffffffL);
    Transaction tx = new Transaction(2, List.of(in), outputs, 0);
    return ByteString.fromHex(
        MAGIC
            + entry("00", java.util.HexFormat.of().formatHex(Transaction.write(tx)))
            + END
            + input
            + END
            + END.repeat(outputs.size()));
  }

  /** BIP-84's first receiving address, from its account's extended key. */
  @Test
  void the_addresses_of_bip_84() {
    ByteString key =
        ByteString.fromHex("0330d54fd0dd420a6e5f8d3624f5f3482cae350f79d5f0753bf5beef9c2d91af3c");
    assertThat(BitcoinAddress.of(key, BitcoinAddress.Network.MAINNET))
        .isEqualTo("bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu");
    assertThat(BitcoinAddress.of(key, BitcoinAddress.Network.TESTNET)).startsWith("tb1q");
    assertThat(BitcoinAddress.of(key, BitcoinAddress.Network.REGTEST)).startsWith("bcrt1q");
  }
}
