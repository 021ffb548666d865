package io.coterie.platform.payload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.scheme.TaprootKey;
import io.coterie.proto.custody.v1.BitcoinInput;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TaprootOutput;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Spends by key path. */
class BitcoinTaprootTest {
  /** BIP-341, wallet test vectors, key path spending: the unsigned transaction. */
  private static final String TRANSACTION =
      "02000000097de20cbff686da83a54981d2b9bab3586f4ca7e48f57f5b55963115f3b334e9c010000000000000000d7b7cab57b1393ace2d064f4d4a2cb8af6def61273e127517d44759b6dafdd990000000000fffffffff8e1f583384333689228c5d28eac13366be082dc57441760d957275419a418420000000000fffffffff0689180aa63b30cb162a73c6d2a38b7eeda2a83ece74310fda0843ad604853b0100000000feffffffaa5202bdf6d8ccd2ee0f0202afbbb7461d9264a25e5bfd3c5a52ee1239e0ba6c0000000000feffffff956149bdc66faa968eb2be2d2faa29718acbfe3941215893a2a3446d32acd050000000000000000000e664b9773b88c09c32cb70a2a3e4da0ced63b7ba3b22f848531bbb1d5d5f4c94010000000000000000e9aa6b8e6c9de67619e6a3924ae25696bb7b694bb677a632a74ef7eadfd4eabf0000000000ffffffffa778eb6a263dc090464cd125c466b5a99667720b1c110468831d058aa1b82af10100000000ffffffff0200ca9a3b000000001976a91406afd46bcdfd22ef94ac122aa11f241244a37ecc88ac807840cb0000000020ac9a87f5594be208f8532db38cff670c450ed2fea8fcdefcc9a663f78bab962b0065cd1d";

  /** The same with an address in the place of its second output's script, which is none. */
  private static final String READABLE =
      TRANSACTION.replace(
          "20ac9a87f5594be208f8532db38cff670c450ed2fea8fcdefcc9a663f78bab962b",
          "225120a60869f0dbcf1dc659c9cecbaf8050135ea9e8cdc487053f1dc6880949dc684c");

  /** Amount in satoshi and script of what its inputs spend. */
  private record Spent(long amount, String script) {
    String encoded() {
      return HexFormat.of().toHexDigits(Long.reverseBytes(amount))
          + "%02x".formatted(script.length() / 2)
          + script;
    }
  }

  private static final List<Spent> SPENT =
      List.of(
          new Spent(
              420000000, "512053a1f6e454df1aa2776a2814a721372d6258050de330b3c6d10ee8f4e0dda343"),
          new Spent(
              462000000, "5120147c9c57132f6e7ecddba9800bb0c4449251c92a1e60371ee77557b6620f3ea3"),
          new Spent(294000000, "76a914751e76e8199196d454941c45d1b3a323f1433bd688ac"),
          new Spent(
              504000000, "5120e4d810fd50586274face62b8a807eb9719cef49c04177cc6b76a9a4251d5450e"),
          new Spent(
              630000000, "512091b64d5324723a985170e4dc5a0f84c041804f2cd12660fa5dec09fc21783605"),
          new Spent(378000000, "00147dd65592d0ab2fe0d0257d571abf032cd9db93dc"),
          new Spent(
              672000000, "512075169f4001aa68f15bbed28b218df1d0a62cbbcf1188c6665110c293c907b831"),
          new Spent(
              546000000, "5120712447206d7a5238acc7ff53fbe94a3b64539ad291c7cdbc490b7577e4b17df5"),
          new Spent(
              588000000, "512077e30a5522dd9f894c3f8b8bd4c4b2cf82ca7da8a3ea6a239655c39c050ab220"));

  /** Its input 4: SIGHASH_DEFAULT, with a script tree. */
  private static final ByteString INTERNAL_KEY =
      ByteString.fromHex("e0dfe2300b0dd746a3f8674dfd4525623639042569d829c7f0eed9602d263e6f");

  private static final ByteString ROOT =
      ByteString.fromHex("ccbd66c6f7e8fdab47b3a486f59d28262be857f30d4773f2d5ea47f7761ce0e2");
  static final ByteString OUTPUT_KEY = TaprootKey.output(INTERNAL_KEY, ROOT);
  private static final int INPUT = 4;

  /** And its input 3: SIGHASH_ALL. */
  private static final ByteString INTERNAL_KEY_3 =
      ByteString.fromHex("93478e9488f956df2396be2ce6c5cced75f900dfa18e7dabd2428aae78451820");

  private static final ByteString ROOT_3 =
      ByteString.fromHex("c525714a7f49c28aedbbba78c005931a81c234b2f6c99a73e4d06082adc8bf2b");

  private static final String KEY_ENTRY = "17";
  private static final String ROOT_ENTRY = "18";
  private static final String SIGHASH_ENTRY = "03";

  private static String entry(String key, String value) {
    return size(key) + key + size(value) + value;
  }

  private static String size(String hex) {
    int size = hex.length() / 2;
    return size < 0xfd ? "%02x".formatted(size) : "fd%02x%02x".formatted(size & 0xff, size >>> 8);
  }

  private static String hex(ByteString bytes) {
    return HexFormat.of().formatHex(bytes.toByteArray());
  }

  /** The fields of input 4. */
  private static String own(ByteString internalKey, ByteString root) {
    return entry(KEY_ENTRY, hex(internalKey)) + entry(ROOT_ENTRY, hex(root));
  }

  /** One input has more entries than what it spends. */
  private static ByteString psbt(int input, String more) {
    return psbt(SPENT, input, more);
  }

  private static ByteString psbt(List<Spent> spent, int input, String more) {
    return psbt(READABLE, spent, input, more);
  }

  /** Of the vectors' transaction. */
  private static ByteString published(int input, String more) {
    return psbt(TRANSACTION, SPENT, input, more);
  }

  private static ByteString psbt(String transaction, List<Spent> spent, int input, String more) {
    StringBuilder inputs = new StringBuilder();
    for (int i = 0; i < spent.size(); i++) {
      boolean own = i == input;
      // Entries in the order of their types: the spent output, sighash, Taproot
      inputs
          .append(spent.get(i).amount < 0 ? "" : entry("01", spent.get(i).encoded()))
          .append(own ? more : "")
          .append("00");
    }
    return ByteString.fromHex(
        "70736274ff" + entry("00", transaction) + "00" + inputs + "00".repeat(2));
  }

  private static SigningIntent intent(ByteString psbt, int input, ByteString root) {
    return SigningIntent.newBuilder()
        .setScheme(Scheme.SCHEME_BIP340_SECP256K1)
        .setTaproot(TaprootOutput.newBuilder().setMerkleRoot(root))
        .setBitcoinInput(BitcoinInput.newBuilder().setPsbt(psbt).setInput(input))
        .build();
  }

  static SigningIntent intent() {
    return intent(psbt(INPUT, own(INTERNAL_KEY, ROOT)), INPUT, ROOT);
  }

  private static void assertRefused(IntentProblem problem, ByteString psbt) {
    PayloadsTest.assertRefused(problem, intent(psbt, INPUT, ROOT), OUTPUT_KEY);
  }

  @Test
  void the_vectors_of_bip_341() throws Exception {
    ByteString own = published(INPUT, own(INTERNAL_KEY, ROOT));
    assertThat(BitcoinPsbt.decode(own).taprootDigest(INPUT, OUTPUT_KEY, ROOT))
        .isEqualTo(
            ByteString.fromHex("4f900a0bae3f1446fd48490c2958b5a023228f01661cda3496a11da502a7f7ef"));
    // Its second output is paid to a script that is nobody's.
    PayloadsTest.assertNotRead("script of output 1", intent(own, INPUT, ROOT), OUTPUT_KEY);

    ByteString all = published(3, entry(SIGHASH_ENTRY, "01000000") + own(INTERNAL_KEY_3, ROOT_3));
    ByteString key = TaprootKey.output(INTERNAL_KEY_3, ROOT_3);
    assertThat(BitcoinPsbt.decode(all).taprootDigest(3, key, ROOT_3))
        .isEqualTo(
            ByteString.fromHex("bf013ea93474aa67815b1b6cc441d23b64fa310911d991e713cd34c7f5d46669"));
  }

  /** Digest by bitcoinjs-lib 7.0.5. */
  @Test
  void a_spend_is_shown_with_all_that_it_spends_and_pays() throws Exception {
    DecodedPayload decoded = Payloads.decode(intent(), OUTPUT_KEY);
    assertThat(decoded.toSign())
        .isEqualTo(
            ByteString.fromHex("189286e3801dac9bba751e1e286606523e6b84d43ab2583971439dab75794fcf"));
    String text = PayloadsTest.text(decoded);
    // The eight others, one of them to its end.
    assertThat(text.lines().filter(line -> line.matches("input [0-9]: .*"))).hasSize(8);
    assertThat(text)
        .contains(
            "input 2: 294000000 from 1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH, at"
                + " 4218a419542757d960174457dc82e06b3613ac8ed2c528926833433883f5e1f8:0\n");
    assertThat(text.replaceAll("(?m)^input [0-9]: .*\n", ""))
        .isEqualTo(
            """
            input: 4 of 9
            spends: 6cbae03912ee525a3cfd5b5ea264921d46b7bbaf02020feed2ccd8f6bd0252aa:0
            amount: 630000000
            fee: 84000000
            lock time: 500000000
            sequence: 4294967294
            outputs: 2
            output 0: 1000000000 to 1cMh228HTCiwS8ZsaakH8A8wze1JR5ZsP
            output 1: 3410000000 to bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr
            """);
  }

  /** The published witnesses come out. */
  @Test
  void the_signature_is_put_where_finalisers_look_for_it() throws Exception {
    ByteString signature =
        ByteString.fromHex(
            "b4010dd48a617db09926f729e79c33ae0b4e94b79f04a1ae93ede6315eb3669de185a17d2b0ac9ee09fd4c64b678a0b61a0a86fa888a273c8511be83bfd6810f");
    assertThat(
            BitcoinPsbt.decode(published(INPUT, own(INTERNAL_KEY, ROOT)))
                .signedTaproot(INPUT, OUTPUT_KEY, signature)
                .encoded())
        .isEqualTo(published(INPUT, entry("13", hex(signature)) + own(INTERNAL_KEY, ROOT)));
    String all =
        "ff45f742a876139946a149ab4d9185574b98dc919d2eb6754f8abaa59d18b025637a3aa043b91817739554f4ed2026cf8022dbd83e351ce1fabc272841d2510a";
    String sighash = entry(SIGHASH_ENTRY, "01000000");
    assertThat(
            BitcoinPsbt.decode(published(3, sighash + own(INTERNAL_KEY_3, ROOT_3)))
                .signedTaproot(
                    3, TaprootKey.output(INTERNAL_KEY_3, ROOT_3), ByteString.fromHex(all))
                .encoded())
        .isEqualTo(published(3, sighash + entry("13", all + "01") + own(INTERNAL_KEY_3, ROOT_3)));
    assertThatThrownBy(
            () ->
                BitcoinPsbt.decode(psbt(INPUT, own(INTERNAL_KEY, ROOT)))
                    .signedTaproot(3, OUTPUT_KEY, signature))
        .isInstanceOf(IntentException.class);
  }

  @Test
  void refuses_inputs_that_are_not_this_keys_to_sign() throws Exception {
    ByteString good = psbt(INPUT, own(INTERNAL_KEY, ROOT));
    // The internal key itself, the key of another input
    for (ByteString key : List.of(INTERNAL_KEY, TaprootKey.output(INTERNAL_KEY_3, ROOT_3))) {
      PayloadsTest.assertRefused(
          IntentProblem.PSBT_UTXO_NOT_OF_KEY, intent(good, INPUT, ROOT), key);
    }
    for (int input : new int[] {0, 2, 3, 5}) {
      PayloadsTest.assertRefused(
          IntentProblem.PSBT_UTXO_NOT_OF_KEY, intent(good, input, ByteString.EMPTY), OUTPUT_KEY);
    }
    PayloadsTest.assertRefused(IntentProblem.PSBT_INPUT_UNKNOWN, intent(good, 9, ROOT), OUTPUT_KEY);
    PayloadsTest.assertRefused(
        IntentProblem.PSBT_INPUT_UNKNOWN, intent(good, -1, ROOT), OUTPUT_KEY);
    // An intent without taproot, one with another root, one without
    PayloadsTest.assertRefused(
        IntentProblem.PSBT_TAPROOT,
        intent(good, INPUT, ROOT).toBuilder().clearTaproot().build(),
        OUTPUT_KEY);
    PayloadsTest.assertRefused(IntentProblem.PSBT_TAPROOT, intent(good, INPUT, ROOT_3), OUTPUT_KEY);
    PayloadsTest.assertRefused(
        IntentProblem.PSBT_TAPROOT, intent(good, INPUT, ByteString.EMPTY), OUTPUT_KEY);
    // A PSBT with another root, none, or another internal key
    assertRefused(IntentProblem.PSBT_TAPROOT, psbt(INPUT, own(INTERNAL_KEY, ROOT_3)));
    assertRefused(IntentProblem.PSBT_TAPROOT, psbt(INPUT, entry(KEY_ENTRY, hex(INTERNAL_KEY))));
    assertRefused(IntentProblem.PSBT_TAPROOT, psbt(INPUT, own(INTERNAL_KEY_3, ROOT)));
    assertRefused(
        IntentProblem.PSBT_TAPROOT, psbt(INPUT, own(ByteString.fromHex("ff".repeat(32)), ROOT)));
    assertRefused(IntentProblem.PSBT_TAPROOT, psbt(INPUT, own(INTERNAL_KEY, ROOT.substring(1))));
    assertRefused(
        IntentProblem.PSBT_TAPROOT,
        psbt(INPUT, entry(KEY_ENTRY, hex(INTERNAL_KEY)) + entry("1800", hex(ROOT))));
    // The internal key need not be named.
    assertThat(
            Payloads.decode(
                    intent(psbt(INPUT, entry(ROOT_ENTRY, hex(ROOT))), INPUT, ROOT), OUTPUT_KEY)
                .toSign())
        .isEqualTo(Payloads.decode(intent(), OUTPUT_KEY).toSign());
    assertRefused(
        IntentProblem.PSBT_UTXO_NOT_OF_KEY,
        psbt(INPUT, entry("04", "51") + own(INTERNAL_KEY, ROOT)));
    assertRefused(IntentProblem.PSBT_INPUT_FINAL, psbt(INPUT, entry("08", "0101aa")));
  }

  @Test
  void refuses_other_sighashes() throws Exception {
    for (String sighash : List.of("02000000", "03000000", "81000000", "83000000", "00000001")) {
      assertRefused(
          IntentProblem.PSBT_SIGHASH,
          psbt(INPUT, entry(SIGHASH_ENTRY, sighash) + own(INTERNAL_KEY, ROOT)));
    }
    assertThat(
            Payloads.decode(
                    intent(
                        psbt(INPUT, entry(SIGHASH_ENTRY, "00000000") + own(INTERNAL_KEY, ROOT)),
                        INPUT,
                        ROOT),
                    OUTPUT_KEY)
                .toSign())
        .isEqualTo(Payloads.decode(intent(), OUTPUT_KEY).toSign());
  }

  @Test
  void every_amount_is_needed_and_must_be_possible() {
    for (int missing = 0; missing < SPENT.size(); missing++) {
      List<Spent> spent = new ArrayList<>(SPENT);
      spent.set(missing, new Spent(-1, ""));
      assertRefused(IntentProblem.PSBT_UTXO_MISSING, psbt(spent, INPUT, own(INTERNAL_KEY, ROOT)));
    }
    List<Spent> spent = new ArrayList<>(SPENT);
    spent.set(0, new Spent(2_100_000_000_000_001L, SPENT.get(0).script));
    assertRefused(IntentProblem.PSBT_AMOUNT, psbt(spent, INPUT, own(INTERNAL_KEY, ROOT)));
    spent.set(0, new Spent(0, SPENT.get(0).script));
    assertRefused(IntentProblem.PSBT_AMOUNT, psbt(spent, INPUT, own(INTERNAL_KEY, ROOT)));
  }

  @Test
  void an_ecdsa_key_does_not_sign_taproot_nor_the_other_way_round() {
    PayloadsTest.assertRefused(
        IntentProblem.PSBT_UTXO_NOT_OF_KEY,
        intent().toBuilder().setScheme(Scheme.SCHEME_ECDSA_SECP256K1).clearTaproot().build(),
        ByteString.fromHex("02").concat(OUTPUT_KEY));
    PayloadsTest.assertRefused(
        IntentProblem.PSBT_UTXO_NOT_OF_KEY,
        intent(BitcoinPsbtTest.bip143(), 1, ByteString.EMPTY),
        OUTPUT_KEY);
  }

  /** BIP-86's first receiving address, and the networks. */
  @Test
  void addresses() {
    ByteString key =
        ByteString.fromHex("a60869f0dbcf1dc659c9cecbaf8050135ea9e8cdc487053f1dc6880949dc684c");
    assertThat(BitcoinAddress.taproot(key, BitcoinAddress.Network.MAINNET))
        .isEqualTo("bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr");
    assertThat(BitcoinAddress.taproot(key, BitcoinAddress.Network.TESTNET)).startsWith("tb1p");
    assertThat(BitcoinAddress.taproot(key, BitcoinAddress.Network.REGTEST)).startsWith("bcrt1p");
    assertThatThrownBy(
            () ->
                BitcoinAddress.taproot(
                    ByteString.fromHex("02").concat(key), BitcoinAddress.Network.MAINNET))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
