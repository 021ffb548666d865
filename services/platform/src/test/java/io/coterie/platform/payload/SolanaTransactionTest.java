package io.coterie.platform.payload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SolanaTransactionTest {
  private static final String PAYER =
      "1398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93ca";
  private static final String ALICE =
      "fd439fccb66727f289c5c6de3bc4a8fe5dd5d77770bc8ff15c3eeedcb14af3fc";
  private static final String SYSTEM = "00".repeat(32);
  private static final String BLOCKHASH =
      "c49ae77603782054f17a9decea43b444eba0edb12c6f1d31c6e0e4a84bf052eb";

  /** A transfer, from the tests of @solana/web3.js: its signature, and its message. */
  private static final String SIGNATURE =
      "5b84ad01da5efd121b4fcf721ba77f11cab7cc0c45f319cea574b640b9a8eea8c18c56536bfcef50285b2c06a0542be33faaffb984f2522e7cd97f9318fe9d0d";

  static final ByteString TRANSFER =
      ByteString.fromHex(
          "010001"
              + "03"
              + PAYER
              + ALICE
              + SYSTEM
              + BLOCKHASH
              + "01"
              + "020200010c020000003100000000000000");

  static final ByteString KEY = ByteString.fromHex(PAYER);

  /**
   * Of two signers, with two accounts from a table; encoded by @solana/transaction-messages 6.0.0.
   */
  static final ByteString VERSION_0 =
      ByteString.fromHex(
          "80020104071398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93cafd439fccb66727f289c5c6de3bc4a8fe5dd5d77770bc8ff15c3eeedcb14af3fc7e8c088760bfde1dddcf32c17f209b8242ee52aaf131facd88d0ea2c6d0b06f20306466fe5211732ffecadba72c39be7bc8ce5bbc5f7126b2c439b3a400000000479d55bf231c06eee74c56ece681507fdb1b2dea3f48e5102b1cda256bc138f054a535a992921064d24e87160da387c7c35b5ddbc92bb81e4251dec5ef4d08d06ddf6e1d765a193d9cbe146ceeb79ac1cb485ed5f5b37913a8cf5857eff00a9c49ae77603782054f17a9decea43b444eba0edb12c6f1d31c6e0e4a84bf052eb0503000502400d030003000903e8030000000000000604020807010a0ca025260000000000060501000c696e766f69636520343731310402070809e517cb977ae3ad2a0101198f1f4c3a452263d413b2cd17ebcbc1a0e5887364e6261a12a81792ea165a3e01020100");

  /** A payment in tokens to an account that may be missing; encoded by the same. */
  private static final ByteString PAYMENT =
      ByteString.fromHex(
          "800201060a1398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93cafd439fccb66727f289c5c6de3bc4a8fe5dd5d77770bc8ff15c3eeedcb14af3fc43c2f1eb1c05d1ebf83a962ada472bb1b73e3760d8293b927984df18276d03a37e8c088760bfde1dddcf32c17f209b8242ee52aaf131facd88d0ea2c6d0b06f200000000000000000000000000000000000000000000000000000000000000008c97258f4e2489f1bb3d1029148e0d830b5a1399daff1084048e7bd8dbe9f8590306466fe5211732ffecadba72c39be7bc8ce5bbc5f7126b2c439b3a40000000c6fa7af3bedbad3a3d65f36aabc97431b1bbe4c2d2f6e0e47ca60203452f5d61054a535a992921064d24e87160da387c7c35b5ddbc92bb81e4251dec5ef4d08d06ddf6e1d765a193d9cbe146ceeb79ac1cb485ed5f5b37913a8cf5857eff00a9c49ae77603782054f17a9decea43b444eba0edb12c6f1d31c6e0e4a84bf052eb0506000502400d030006000903e803000000000000050600020107040901010904030702010a0ca025260000000000060801000c696e766f696365203437313100");

  /** With a durable nonce, and a transfer by a multisig; encoded by the same. */
  private static final ByteString LEGACY =
      ByteString.fromHex(
          "020103071398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93cafd439fccb66727f289c5c6de3bc4a8fe5dd5d77770bc8ff15c3eeedcb14af3fc43c2f1eb1c05d1ebf83a962ada472bb1b73e3760d8293b927984df18276d03a37e8c088760bfde1dddcf32c17f209b8242ee52aaf131facd88d0ea2c6d0b06f2000000000000000000000000000000000000000000000000000000000000000006a7d517192c568ee08a845f73d29788cf035c3145b21ab344d8062ea940000006ddf6e1d765a193d9cbe146ceeb79ac1cb485ed5f5b37913a8cf5857eff00a9c49ae77603782054f17a9decea43b444eba0edb12c6f1d31c6e0e4a84bf052eb02040303050004040000000604030200010903ffffffffffffffff");

  static SigningIntent intent(ByteString message) {
    return SigningIntent.newBuilder()
        .setScheme(Scheme.SCHEME_ED25519)
        .setSolanaTransaction(message)
        .build();
  }

  private static void assertRefused(ByteString message) {
    PayloadsTest.assertRefused(IntentProblem.SOLANA_TRANSACTION_MALFORMED, intent(message), KEY);
  }

  private static void assertRefused(String message) {
    assertRefused(ByteString.fromHex(message));
  }

  @Test
  void a_transfer() throws Exception {
    DecodedPayload decoded = Payloads.decode(intent(TRANSFER), KEY);
    assertThat(decoded.toSign()).isEqualTo(TRANSFER);
    assertThat(PayloadsTest.text(decoded))
        .isEqualTo(
            """
            version: legacy
            fee payer: 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1
            recent blockhash: EETubP5AKHgjPAhzPAFcb8BAY1hMH639CWCFTqi3hq1k
            instructions: 1
            instruction 0: system program: transfer
            0 lamports: 49
            0 from: 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1, signs, writable
            0 to: J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99, writable
            """);
  }

  /** The published transaction comes out, with its signature. */
  @Test
  void the_signature_is_put_where_nodes_look_for_it() throws Exception {
    ByteString signature = ByteString.fromHex(SIGNATURE);
    assertThat(SolanaTransaction.decode(TRANSFER).signed(KEY, signature))
        .isEqualTo(ByteString.fromHex("01" + SIGNATURE).concat(TRANSFER));
    assertThat(SolanaTransaction.decode(LEGACY).signed(ByteString.fromHex(ALICE), signature))
        .isEqualTo(ByteString.fromHex("02" + "00".repeat(64) + SIGNATURE).concat(LEGACY));
    assertThatThrownBy(() -> SolanaTransaction.decode(TRANSFER).signed(KEY, signature.substring(1)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** Only the chain knows whom it would pay. */
  @Test
  void accounts_out_of_tables_are_refused() throws Exception {
    assertThat(SolanaTransaction.isTransaction(VERSION_0)).isTrue();
    PayloadsTest.assertNotRead(
        "accounts out of an address lookup table", intent(VERSION_0), ByteString.fromHex(ALICE));
    // Even if no instruction names one.
    String unused =
        "80" + message(SYSTEM, "020200010c020000003100000000000000") + "01" + "19".repeat(32);
    PayloadsTest.assertNotRead(
        "accounts out of an address lookup table",
        intent(ByteString.fromHex(unused + "000107")),
        KEY);
  }

  @Test
  void version_0_with_a_payment_in_tokens() throws Exception {
    DecodedPayload decoded = Payloads.decode(intent(PAYMENT), ByteString.fromHex(ALICE));
    assertThat(decoded.toSign()).isEqualTo(PAYMENT);
    assertThat(PayloadsTest.text(decoded))
        .isEqualTo(
            """
            version: 0
            fee payer: 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1
            also signed by: J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99
            recent blockhash: EETubP5AKHgjPAhzPAFcb8BAY1hMH639CWCFTqi3hq1k
            priority fee at most, lamports: 200
            instructions: 5
            instruction 0: compute budget: unit limit
            0 units: 200000
            instruction 1: compute budget: unit price
            1 micro-lamports: 1000
            instruction 2: associated token account: create if missing
            2 payer: 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1, signs, writable
            2 account: 5ZWj7a1f8tWkjBESHKgrLmXshuXxqeY9SYcfbshpAqPG, writable
            2 wallet: J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99, signs
            2 mint: EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v
            2 system program: 11111111111111111111111111111111
            2 token program: TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA
            instruction 3: SPL token: transfer checked
            3 amount: 2500000
            3 decimals: 6
            3 from: 9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM, writable
            3 mint: EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v
            3 to: 5ZWj7a1f8tWkjBESHKgrLmXshuXxqeY9SYcfbshpAqPG, writable
            3 authority: J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99, signs
            instruction 4: memo
            4 text: invoice 4711
            4 account 0: 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1, signs, writable
            """);
    // The program that is called in turn is one of the token programs, and no other.
    String other = PayloadsTest.hex(PAYMENT).replace("0506000201070409", "0506000201070408");
    PayloadsTest.assertNotRead(
        "instruction 2 of program ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL",
        intent(ByteString.fromHex(other)),
        KEY);
    other = PayloadsTest.hex(PAYMENT).replace("0506000201070409", "0506000201070709");
    PayloadsTest.assertNotRead(
        "instruction 2 of program ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL",
        intent(ByteString.fromHex(other)),
        KEY);
  }

  @ParameterizedTest
  @CsvSource({
    "system, 010100, 04000000, advance nonce, nonce account: A|recent blockhashes: A|authority: P",
    "token, 01010100, 0c 3100000000000000 06, transfer checked,"
        + " amount: 49|decimals: 6|from: A|mint: A|to: A|authority: P",
    // Of an account of several owners, who sign
    "token, 0101010100, 0c 3100000000000000 06, transfer checked,"
        + " amount: 49|decimals: 6|from: A|mint: A|to: A|authority: A|account 4: P",
    "token, 0100, 05, revoke, account: A|authority: P",
    "token, 01010100, 0d 3100000000000000 06, approve checked,"
        + " amount: 49|decimals: 6|account: A|mint: A|delegate: A|authority: P",
    "token, 01010100, 0d feffffffffffffff 06, approve checked,"
        + " amount: 18446744073709551614|decimals: 6|account: A|mint: A|delegate: A|authority: P",
    "token, 01010100, 0d ffffffffffffffff 06, approve checked,"
        + " 'amount: 18446744073709551615, without limit|decimals: 6|account: A|mint: A|delegate: A"
        + "|authority: P'",
    "budget, '', 01 00000400, heap, bytes: 262144",
    "budget, '', 02 400d0300, unit limit, units: 200000",
    "budget, '', 03 e803000000000000, unit price, micro-lamports: 1000",
    "budget, '', 04 00000100, loaded accounts, bytes: 65536",
    "memo, 00, 6869, memo, text: hi|account 0: P",
  })
  void an_ordinary_instruction_is_read(
      String program, String accounts, String data, String text, String values) throws Exception {
    String shown =
        ("instruction 0: " + name(program) + text + "|" + values + "|")
            .replace(": P|", ": 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1, signs, writable|")
            .replace(": A|", ": J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99, writable|")
            .replaceAll("\\|$", "\n")
            .replace("|", "\n0 ");
    ByteString message = calling(program, accounts, data.replace(" ", ""));
    assertThat(PayloadsTest.text(Payloads.decode(intent(message), KEY))).contains(shown);
  }

  /** An account that nothing uses is in the message, too. */
  @Test
  void an_account_that_no_instruction_uses_is_shown() throws Exception {
    assertThat(PayloadsTest.text(Payloads.decode(intent(calling("budget", "", "02400d0300")), KEY)))
        .endsWith("used by no instruction: J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99\n");
  }

  private static String name(String program) {
    return switch (program) {
      case "system" -> "system program: ";
      case "token" -> "SPL token: ";
      case "budget" -> "compute budget: ";
      default -> "";
    };
  }

  private static ByteString calling(String program, String accounts, String data) {
    return ByteString.fromHex(
        message(
            program(program),
            "02%02x%s%02x%s".formatted(accounts.length() / 2, accounts, data.length() / 2, data)));
  }

  private static String program(String name) {
    return switch (name) {
      case "system" -> SYSTEM;
      case "token" -> TOKEN;
      case "budget" -> BUDGET;
      case "memo" -> "054a535a992921064d24e87160da387c7c35b5ddbc92bb81e4251dec5ef4d08d";
      case "associated" -> "8c97258f4e2489f1bb3d1029148e0d830b5a1399daff1084048e7bd8dbe9f859";
      case "stake" -> "06a1d8179137542a983437bdfe2a7ab2557f535c8a78722b68a49dc000000000";
      default -> throw new IllegalArgumentException(name);
    };
  }

  @Test
  void a_durable_nonce_and_a_multisig_are_seen() throws Exception {
    PayloadsTest.assertNotRead(
        "instruction 1 of program TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
        intent(LEGACY),
        KEY);
    String checked =
        PayloadsTest.hex(LEGACY)
            .replace("0604030200010903ffffffffffffffff", "060503050200010a0cffffffffffffffff06");
    assertThat(PayloadsTest.text(Payloads.decode(intent(ByteString.fromHex(checked)), KEY)))
        .endsWith(
            """
            recent blockhash: EETubP5AKHgjPAhzPAFcb8BAY1hMH639CWCFTqi3hq1k
            expires: never
            instructions: 2
            instruction 0: system program: advance nonce
            0 nonce account: 9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM, writable
            0 recent blockhashes: SysvarRecentB1ockHashes11111111111111111111
            0 authority: 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1, signs, writable
            instruction 1: SPL token: transfer checked
            1 amount: 18446744073709551615
            1 decimals: 6
            1 from: 9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM, writable
            1 mint: SysvarRecentB1ockHashes11111111111111111111
            1 to: 5ZWj7a1f8tWkjBESHKgrLmXshuXxqeY9SYcfbshpAqPG, writable
            1 authority: 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1, signs, writable
            1 account 4: J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99, signs
            """);
  }

  /** A part of a lamport is paid as a whole one. */
  @ParameterizedTest
  @CsvSource({
    "'', 0100000000000000, 2",
    "400d0300, 0000000000000000, 0",
    "400d0300, 0100000000000000, 1",
    "40420f00, 0100000000000000, 1",
    "41420f00, 0100000000000000, 2",
    // More units than a transaction may have
    "ffffffff, ffffffffffffffff, 25825441703193372261",
  })
  void the_most_that_a_place_in_the_queue_costs_is_shown(String limit, String price, String most)
      throws Exception {
    String calls = (limit.isEmpty() ? "" : "020005" + "02" + limit) + "020009" + "03" + price;
    String message = "010001" + "03" + PAYER + ALICE + BUDGET + BLOCKHASH;
    ByteString encoded = ByteString.fromHex(message + (limit.isEmpty() ? "01" : "02") + calls);
    assertThat(PayloadsTest.text(Payloads.decode(intent(encoded), KEY)))
        .contains("priority fee at most, lamports: " + most + "\n");
  }

  /** Only the first instruction makes the nonce take the place of the blockhash. */
  @Test
  void a_nonce_that_is_advanced_later_lets_the_transaction_expire() throws Exception {
    assertThat(
            PayloadsTest.text(
                Payloads.decode(intent(ByteString.fromHex(version1("00000000", ""))), KEY)))
        .contains("instruction 1: system program: advance nonce\n")
        .doesNotContain("expires");
  }

  /** Of one signer: the payer, Alice, the program; one instruction of it. */
  private static String message(String program, String instruction) {
    return "010001" + "03" + PAYER + ALICE + program + BLOCKHASH + "01" + instruction;
  }

  /** An instruction that is nearly a known one is none, and nor is one of another program. */
  @ParameterizedTest
  @CsvSource({
    // More or fewer accounts than a transfer has
    "system, 00, 020000003100000000000000",
    "system, 000101, 020000003100000000000000",
    // More or fewer bytes
    "system, 0001, 02000000310000000000000000",
    "system, 0001, 0200000031000000000000",
    "system, 0001, 020000013100000000000000",
    "system, 0001, 030000003100000000000000",
    "system, 0001, ''",
    "token, 0001, 033100000000000000",
    "token, 000101, 0c3100000000000000",
    // An account whose owner is any program
    "system, 0001, 000000000100000000000000a500000000000000" + ALICE,
    // Of which token, nothing says
    "token, 010100, 033100000000000000",
    "token, 01010100, 033100000000000000",
    "token, 010100, 043100000000000000",
    // To close an account, which pays out what it has, without an amount
    "token, 010000, 09",
    // Set authority: to give an account away
    "token, 0100, 060201" + ALICE,
    // One account more, which does not sign: it would be for code of the token's issuer
    "token, 0101010001, 0c310000000000000006",
    "budget, 00, 0240420f00",
    "budget, '', 0040420f00",
    "memo, '', ff",
    "memo, 01, 6869",
    "associated, 000101010101, 01",
    "associated, 000101010101, 02",
    "stake, 010000, 05000000",
  })
  void instructions_are_understood_exactly_or_refused(
      String program, String accounts, String data) {
    PayloadsTest.assertNotRead(
        "instruction 0 of program " + SolanaAddress.of(ByteString.fromHex(program(program))),
        intent(calling(program, accounts, data)),
        KEY);
  }

  /** One that is not read is enough. */
  @Test
  void the_instruction_that_nobody_read_is_named() {
    String transfer = "020200010c020000003100000000000000";
    PayloadsTest.assertNotRead(
        "instruction 1 of program " + SolanaAddress.of(ByteString.fromHex(SYSTEM)),
        intent(
            ByteString.fromHex(
                "010001"
                    + "03"
                    + PAYER
                    + ALICE
                    + SYSTEM
                    + BLOCKHASH
                    + "02"
                    + transfer
                    + "020001ff")),
        KEY);
  }

  @Test
  void only_required_signers_sign() {
    PayloadsTest.assertRefused(
        IntentProblem.SOLANA_SIGNER_MISSING, intent(TRANSFER), ByteString.fromHex(ALICE));
    PayloadsTest.assertRefused(
        IntentProblem.SOLANA_SIGNER_MISSING, intent(TRANSFER), ByteString.EMPTY);
    PayloadsTest.assertRefused(
        IntentProblem.SOLANA_SIGNER_MISSING,
        intent(VERSION_0),
        // In the table, and the table itself
        ByteString.fromHex("198f1f4c3a452263d413b2cd17ebcbc1a0e5887364e6261a12a81792ea165a3e"));
  }

  private static final String TOKEN =
      "06ddf6e1d765a193d9cbe146ceeb79ac1cb485ed5f5b37913a8cf5857eff00a9";
  private static final String BUDGET =
      "0306466fe5211732ffecadba72c39be7bc8ce5bbc5f7126b2c439b3a40000000";

  /**
   * SIMD-0385, laid out by hand: of two signers, one of whom is only read; two instructions, whose
   * sizes stand before what both of them say.
   */
  private static String version1(String mask, String values) {
    return "81"
        + "020101"
        + mask
        + BLOCKHASH
        + "02"
        + "04"
        + PAYER
        + ALICE
        + "33".repeat(32)
        + SYSTEM
        + values
        + "03020c00"
        + "03030400"
        + "0002"
        + "020000003100000000000000"
        + "020200"
        + "04000000";
  }

  private static final String ALL = "0102030405060708" + "400d0300" + "00000100" + "00000200";

  @Test
  void version_1_with_everything_it_asks_for() throws Exception {
    ByteString message = ByteString.fromHex(version1("1f000000", ALL));
    DecodedPayload decoded = Payloads.decode(intent(message), KEY);
    assertThat(decoded.toSign()).isEqualTo(message);
    assertThat(PayloadsTest.text(decoded))
        .isEqualTo(
            """
            version: 1
            fee payer: 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1
            also signed by: J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99
            recent blockhash: EETubP5AKHgjPAhzPAFcb8BAY1hMH639CWCFTqi3hq1k
            priority fee, lamports: 578437695752307201
            compute units: 200000
            loaded accounts, bytes: 65536
            heap, bytes: 131072
            instructions: 2
            instruction 0: system program: transfer
            0 lamports: 49
            0 from: 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1, signs, writable
            0 to: OTHER, writable
            instruction 1: system program: advance nonce
            1 nonce account: OTHER, writable
            1 recent blockhashes: OTHER, writable
            1 authority: 2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1, signs, writable
            """
                .replace("OTHER", SolanaAddress.of(ByteString.fromHex("33".repeat(32)))));
    PayloadsTest.assertRefused(
        IntentProblem.SOLANA_SIGNER_MISSING, intent(message), ByteString.fromHex("33".repeat(32)));
  }

  @Test
  void version_1_shows_what_it_asks_for_by_saying_nothing() throws Exception {
    String text =
        PayloadsTest.text(
            Payloads.decode(intent(ByteString.fromHex(version1("00000000", ""))), KEY));
    assertThat(text)
        .contains(
            """
            priority fee, lamports: 0
            compute units: 0
            loaded accounts, bytes: 0
            heap, bytes: 32768
            """);
    text =
        PayloadsTest.text(
            Payloads.decode(intent(ByteString.fromHex(version1("04000000", "ffffffff"))), KEY));
    assertThat(text).contains("compute units: 4294967295\n", "priority fee, lamports: 0\n");
    text =
        PayloadsTest.text(
            Payloads.decode(intent(ByteString.fromHex(version1("03000000", "ff".repeat(8)))), KEY));
    assertThat(text).contains("priority fee, lamports: 18446744073709551615\n");
  }

  /** Version 1 runs instructions of the compute budget, and they ask for nothing. */
  @Test
  void a_budget_that_changes_nothing_is_shown_as_such() throws Exception {
    String call = "020500" + "0240420f00";
    ByteString message =
        ByteString.fromHex(
            "81010001"
                + "00000000"
                + BLOCKHASH
                + "01"
                + "03"
                + PAYER
                + ALICE
                + BUDGET
                + call.substring(0, 2)
                + "000500"
                + call.substring(6));
    assertThat(PayloadsTest.text(Payloads.decode(intent(message), KEY)))
        .contains("instruction 0: compute budget: unit limit, without effect\n0 units: 1000000\n");
  }

  /** The signatures of version 1 stand at the end, and have no count. */
  @Test
  void the_signature_of_version_1_is_put_behind_the_message() throws Exception {
    ByteString message = ByteString.fromHex(version1("00000000", ""));
    ByteString signature = ByteString.fromHex(SIGNATURE);
    assertThat(SolanaTransaction.decode(message).signed(ByteString.fromHex(ALICE), signature))
        .isEqualTo(message.concat(ByteString.fromHex("00".repeat(64) + SIGNATURE)));
  }

  @Test
  void version_1_has_one_encoding_and_its_own_bounds() throws Exception {
    ByteString good = ByteString.fromHex(version1("1f000000", ALL));
    for (int length = 1; length < good.size(); length++) {
      assertRefused(good.substring(0, length));
    }
    assertRefused(good.concat(ByteString.fromHex("00")));
    // Half a fee, a bit that nobody knows, values without their bits
    assertRefused(version1("01000000", "00000000"));
    assertRefused(version1("02000000", "00000000"));
    assertRefused(version1("20000000", "00000000"));
    assertRefused(version1("00000080", "00000000"));
    assertRefused(version1("00000000", "00000000"));
    // Heaps: below the least, above the most, between two steps
    for (String heap : List.of("007c0000", "00040400", "01800000", "00000000")) {
      assertRefused(version1("10000000", heap));
    }
    assertThat(
            SolanaTransaction.isTransaction(ByteString.fromHex(version1("10000000", "00000400"))))
        .isTrue();
    // A body of version 0 behind the first byte of version 1, and the other way round
    assertRefused(ByteString.fromHex("81").concat(VERSION_0.substring(1)));
    assertRefused(ByteString.fromHex("80").concat(good.substring(1)));
    // The payer as program, a program and an account that are not there
    String small = "81010001" + "00000000" + BLOCKHASH + "01" + "03" + PAYER + ALICE + TOKEN;
    assertThat(SolanaTransaction.isTransaction(ByteString.fromHex(small + "02010000" + "01")))
        .isTrue();
    assertRefused(small + "00010000" + "01");
    assertRefused(small + "03010000" + "01");
    assertRefused(small + "02010000" + "03");
    // An account twice, a payer who is only read, no signer
    assertRefused("81010001" + "00000000" + BLOCKHASH + "00" + "02" + PAYER + PAYER);
    assertRefused("81010100" + "00000000" + BLOCKHASH + "00" + "01" + PAYER);
    assertRefused("81000000" + "00000000" + BLOCKHASH + "00" + "01" + PAYER);
  }

  /** Signers, accounts, instructions and bytes, each at its bound and one beyond. */
  @Test
  void version_1_is_as_large_as_the_chain_takes_it() throws Exception {
    for (int beyond = 0; beyond <= 1; beyond++) {
      boolean fits = beyond == 0;
      assertThat(isVersion1(12 + beyond, 20, 0, 0)).as("signers").isEqualTo(fits);
      assertThat(isVersion1(1, 64 + beyond, 0, 0)).as("accounts").isEqualTo(fits);
      assertThat(isVersion1(1, 2, 64 + beyond, 0)).as("instructions").isEqualTo(fits);
      // 42 bytes before the accounts, two of these, four of an instruction, one signature
      assertThat(isVersion1(1, 2, 1, 4096 - 42 - 64 - 4 - 64 + beyond)).as("bytes").isEqualTo(fits);
    }
  }

  private static boolean isVersion1(int signers, int accounts, int instructions, int data) {
    StringBuilder message =
        new StringBuilder("81%02x0000".formatted(signers) + "00000000" + BLOCKHASH)
            .append("%02x%02x".formatted(instructions, accounts));
    for (int i = 0; i < accounts; i++) {
      message.append("%064x".formatted(i + 1));
    }
    message.append("0100%02x%02x".formatted(data & 0xff, data >> 8).repeat(instructions));
    message.append("00".repeat(data * instructions));
    return SolanaTransaction.isTransaction(ByteString.fromHex(message.toString()));
  }

  @Test
  void other_versions_are_refused() {
    for (String version : List.of("82", "83", "ff")) {
      PayloadsTest.assertRefused(
          IntentProblem.SOLANA_TRANSACTION_VERSION,
          intent(ByteString.fromHex(version).concat(VERSION_0.substring(1))),
          KEY);
    }
  }

  @Test
  void only_one_encoding_is_accepted() {
    for (ByteString good : List.of(TRANSFER, VERSION_0, LEGACY)) {
      for (int length = 0; length < good.size(); length++) {
        assertRefused(good.substring(0, length));
      }
      assertRefused(good.concat(ByteString.fromHex("00")));
      assertRefused(good.concat(good));
    }
    // With signatures
    assertRefused(ByteString.fromHex("01" + SIGNATURE).concat(TRANSFER));
    // Counts in more bytes than they need, or of more than 16 bits
    String transfer =
        "010001"
            + "%s"
            + PAYER
            + ALICE
            + SYSTEM
            + BLOCKHASH
            + "%s"
            + "02%s0001%s020000003100000000000000";
    assertThat(ByteString.fromHex(transfer.formatted("03", "01", "02", "0c"))).isEqualTo(TRANSFER);
    assertRefused(transfer.formatted("8300", "01", "02", "0c"));
    assertRefused(transfer.formatted("03", "8100", "02", "0c"));
    assertRefused(transfer.formatted("03", "01", "828000", "0c"));
    assertRefused(transfer.formatted("03", "01", "02", "8c8000"));
    assertRefused(transfer.formatted("03", "01", "02", "8c8004"));
    assertRefused(transfer.formatted("03", "01", "02", "8c808000"));
    assertRefused(transfer.formatted("03", "ffff03", "02", "0c"));
    assertRefused(transfer.formatted("ffff03", "01", "02", "0c"));
  }

  @Test
  void what_the_chain_never_runs_is_refused() {
    String body = "03" + PAYER + ALICE + SYSTEM + BLOCKHASH + "01";
    String call = "020200010c020000003100000000000000";
    // No signer; a payer who is only read; more accounts in the header than there are
    assertRefused("000001" + body + call);
    assertRefused("010101" + body + call);
    assertRefused("010003" + body + call);
    assertRefused("040000" + body + call);
    assertRefused("7f0000" + body + call);
    // The payer as program, a program that is not there, an account that is not there
    assertRefused("010001" + body + "000200010c020000003100000000000000");
    assertRefused("010001" + body + "030200010c020000003100000000000000");
    assertRefused("010001" + body + "020200030c020000003100000000000000");
    assertRefused("010001" + body + "ff0200010c020000003100000000000000");
    // An account twice
    assertRefused("010001" + "03" + PAYER + PAYER + SYSTEM + BLOCKHASH + "01" + call);
    // Longer than a transaction can be
    assertRefused(message(SYSTEM, "0200" + "8708" + "00".repeat(1031)));
    assertThat(
            SolanaTransaction.isTransaction(
                ByteString.fromHex(message(SYSTEM, "0200" + "8608" + "00".repeat(1030)))))
        .isTrue();
    String table = "19".repeat(32);
    String versioned = "80" + message(SYSTEM, "020103" + "00");
    assertThat(
            SolanaTransaction.isTransaction(
                ByteString.fromHex(versioned + "01" + table + "0107" + "00")))
        .isTrue();
    // A table of which nothing is taken, an entry taken twice, a program out of a table
    assertRefused("80" + message(SYSTEM, "020102" + "00") + "01" + table + "0000");
    assertRefused(versioned + "01" + table + "0107" + "0107");
    assertRefused(versioned + "01" + table + "020707" + "00");
    assertRefused("80" + message(SYSTEM, "0300" + "00") + "01" + table + "0107" + "00");
  }

  /** 256 accounts can be named by a byte, and not one more. */
  @Test
  void as_many_accounts_as_a_byte_can_name() {
    String indices = "";
    for (int i = 0; i < 253; i++) {
      indices += "%02x".formatted(i);
    }
    String most =
        "80" + message(SYSTEM, "0201ff" + "00") + "01" + "19".repeat(32) + "fd01" + indices;
    assertThat(SolanaTransaction.isTransaction(ByteString.fromHex(most + "00"))).isTrue();
    assertRefused(most + "01fd");
  }

  @Test
  void a_message_that_is_a_transaction_is_not_signed_as_a_message() throws Exception {
    ByteString version1 = ByteString.fromHex(version1("1f000000", ALL));
    for (ByteString transaction : List.of(TRANSFER, VERSION_0, LEGACY, version1)) {
      SigningIntent message =
          SigningIntent.newBuilder()
              .setScheme(Scheme.SCHEME_ED25519)
              .setMessage(transaction)
              .build();
      PayloadsTest.assertRefused(IntentProblem.MESSAGE_IS_TRANSACTION, message, KEY);
      // Chains with other signatures have nothing to do with it.
      assertThat(
              Payloads.decode(
                      message.toBuilder().setScheme(Scheme.SCHEME_BLS12381).build(),
                      ByteString.EMPTY)
                  .toSign())
          .isEqualTo(transaction);
    }
    PayloadsTest.assertRefused(
        IntentProblem.MESSAGE_NOT_TEXT,
        SigningIntent.newBuilder()
            .setScheme(Scheme.SCHEME_ED25519)
            .setMessage(TRANSFER.substring(1))
            .build(),
        KEY);
  }

  @Test
  void addresses() {
    assertThat(SolanaAddress.of(KEY)).isEqualTo("2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1");
    assertThat(SolanaAddress.of(ByteString.fromHex(SYSTEM))).isEqualTo("1".repeat(32));
    assertThatThrownBy(() -> SolanaAddress.of(KEY.substring(1)))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
