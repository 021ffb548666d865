package io.coterie.platform.payload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.payload.DecodedPayload.Field;
import io.coterie.proto.custody.v1.BitcoinInput;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The rules that all kinds of payload share, and the kinds without structure. */
class PayloadsTest {
  private static final ByteString KEY =
      ByteString.fromHex("025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357");

  /** Fields of a payload, as one text that is easy to compare. */
  static String text(DecodedPayload payload) {
    StringBuilder text = new StringBuilder();
    for (Field field : payload.fields()) {
      text.append(field.name()).append(": ").append(field.value()).append('\n');
    }
    return text.toString();
  }

  static String hex(ByteString bytes) {
    return HexFormat.of().formatHex(bytes.toByteArray());
  }

  /** Nobody could read that part. */
  static void assertNotRead(String part, SigningIntent intent, ByteString key) {
    assertThatThrownBy(() -> Payloads.decode(intent, key))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> {
              assertThat(e.problem()).isEqualTo(IntentProblem.PAYLOAD_NOT_READ);
              assertThat(e.text())
                  .isEqualTo(IntentProblem.PAYLOAD_NOT_READ.text() + " (" + part + ")");
              assertThat("payload: " + e.text())
                  .as("what a caller is shown to its end")
                  .hasSizeLessThanOrEqualTo(StatusErrors.MAX_DETAIL);
              assertThat(e.toCustodyException().metadata())
                  .isEqualTo(
                      Map.of(StatusErrors.PROBLEM, "PAYLOAD_NOT_READ", StatusErrors.PART, part));
            });
  }

  static void assertRefused(IntentProblem problem, SigningIntent intent, ByteString key) {
    assertThatThrownBy(() -> Payloads.decode(intent, key))
        .isInstanceOfSatisfying(
            IntentException.class, e -> assertThat(e.problem()).isEqualTo(problem));
  }

  private static DecodedPayload ethereumMessage(ByteString message) throws IntentException {
    return Payloads.decode(SigningIntent.newBuilder().setEthereumMessage(message).build(), KEY);
  }

  @Test
  void a_message_is_signed_as_it_is() throws Exception {
    ByteString message = ByteString.copyFromUtf8("withdraw 5");
    DecodedPayload decoded =
        Payloads.decode(SigningIntent.newBuilder().setMessage(message).build(), ByteString.EMPTY);
    assertThat(decoded.kind()).isEqualTo(PayloadKind.MESSAGE);
    assertThat(decoded.toSign()).isEqualTo(message);
    assertThat(text(decoded)).isEqualTo("length: 10\ntext: withdraw 5\n");
    assertThat(decoded.toString()).doesNotContain("withdraw");
  }

  @Test
  void a_digest_is_signed_as_it_is() throws Exception {
    ByteString digest = ByteString.fromHex("ab".repeat(32));
    DecodedPayload decoded =
        Payloads.decode(SigningIntent.newBuilder().setDigest(digest).build(), KEY);
    assertThat(decoded.toSign()).isEqualTo(digest);
    assertThat(text(decoded)).isEqualTo("digest: 0x" + "ab".repeat(32) + "\n");
    assertThat(decoded.toProto().getKind()).isEqualTo("digest");
    assertThat(decoded.toProto().getFields(0).getName()).isEqualTo("digest");
  }

  /** Digests by ethers 6.17.0, hashMessage. */
  @Test
  void an_ethereum_message_is_hashed_with_its_prefix() throws Exception {
    DecodedPayload hello = ethereumMessage(ByteString.copyFromUtf8("hello"));
    assertThat(hello.toSign())
        .isEqualTo(
            ByteString.fromHex("50b2c43fd39106bafbba0da34fc430e1f91e3c96ea2acee2bc34119f92b37750"));
    assertThat(text(hello)).isEqualTo("length: 5\ntext: hello\n");

    DecodedPayload twoLines = ethereumMessage(ByteString.copyFromUtf8("ü\n"));
    assertThat(twoLines.toSign())
        .isEqualTo(
            ByteString.fromHex("595f026dbaeeee1cb3fc6d3486f12d6e924993ed2523103d90c2925160f41b19"));
    assertThat(text(twoLines)).isEqualTo("length: 3\ntext: ü\\u{a}\n");
  }

  /** Contract accounts take the hash of an operation, signed as a message, for the operation. */
  @Test
  void an_ethereum_message_is_text_and_no_hash() throws Exception {
    for (String bytes : List.of("00ff01", "680065", "c3", "61e280ae62", "0a61")) {
      assertRefused(
          IntentProblem.MESSAGE_NOT_TEXT,
          SigningIntent.newBuilder().setEthereumMessage(ByteString.fromHex(bytes)).build(),
          KEY);
    }
    for (ByteString hash :
        List.of(ByteString.copyFromUtf8("x".repeat(32)), ByteString.fromHex("ff".repeat(32)))) {
      assertRefused(
          IntentProblem.MESSAGE_IS_DIGEST,
          SigningIntent.newBuilder().setEthereumMessage(hash).build(),
          KEY);
    }
    assertThat(text(ethereumMessage(ByteString.copyFromUtf8("x".repeat(33)))))
        .isEqualTo("length: 33\ntext: " + "x".repeat(33) + "\n");
  }

  private static DecodedPayload blsMessage(ByteString message) throws IntentException {
    return Payloads.decode(intent(Scheme.SCHEME_BLS12381, message), KEY);
  }

  @Test
  void what_is_shown_cannot_be_taken_for_something_else_and_is_bounded() throws Exception {
    assertThat(text(blsMessage(ByteString.copyFromUtf8("a\u202eb\\u{a}"))))
        .endsWith("text: a\\u{202e}b\\\\u{a}\n");
    for (String unit : new String[] {"x", "\n", "\uD83D\uDE00", "\\"}) {
      for (int count : new int[] {127, 128, 255, 256, 257, 5000}) {
        List<DecodedPayload.Field> fields =
            blsMessage(ByteString.copyFromUtf8(unit.repeat(count))).fields();
        List<String> shown = fields.stream().skip(1).map(DecodedPayload.Field::value).toList();
        assertThat(shown)
            .allMatch(line -> line.codePointCount(0, line.length()) <= DecodedPayload.MAX_VALUE);
        String escaped = unit.equals("\n") ? "\\u{a}" : unit.equals("\\") ? "\\\\" : unit;
        assertThat(String.join("", shown)).isEqualTo(escaped.repeat(count));
      }
    }
    List<DecodedPayload.Field> bytes = blsMessage(ByteString.fromHex("ff".repeat(4000))).fields();
    assertThat(bytes.stream().skip(1).map(DecodedPayload.Field::name).limit(2))
        .containsExactly("bytes", "bytes (2)");
    assertThat(
            bytes.stream().skip(1).map(DecodedPayload.Field::value).collect(Collectors.joining()))
        .isEqualTo("0x" + "ff".repeat(4000));
  }

  @Test
  void what_cannot_be_shown_to_its_end_is_refused() {
    assertRefused(
        IntentProblem.PAYLOAD_TOO_LONG_TO_SHOW,
        SigningIntent.newBuilder()
            .setEthereumMessage(ByteString.copyFromUtf8("a" + "\n".repeat(50_000)))
            .build(),
        KEY);
  }

  /** A person who confirms it has read its end. */
  @Test
  void a_message_is_shown_whole_or_it_is_refused() throws Exception {
    String text = "x".repeat(256) + "y".repeat(256) + "pay";
    String lines = "x".repeat(256) + "\ntext (2): " + "y".repeat(256) + "\ntext (3): pay\n";
    for (Scheme scheme : List.of(Scheme.SCHEME_BLS12381, Scheme.SCHEME_ED25519)) {
      assertThat(message(scheme, "hello")).isEqualTo("length: 5\ntext: hello\n");
      assertThat(message(scheme, text)).isEqualTo("length: 515\ntext: " + lines);
      assertRefused(
          IntentProblem.PAYLOAD_TOO_LONG_TO_SHOW,
          intent(scheme, ByteString.copyFromUtf8("a" + "\n".repeat(50_000))),
          KEY);
    }
    ByteString root = ByteString.fromHex("ff".repeat(200));
    DecodedPayload bytes = Payloads.decode(intent(Scheme.SCHEME_BLS12381, root), KEY);
    assertThat(bytes.fields().stream().skip(1).map(Field::value).collect(Collectors.joining()))
        .isEqualTo("0x" + "ff".repeat(200));
  }

  /** Bytes that only a program can read may be a transaction of some chain. */
  @Test
  void text_that_a_chain_takes_for_a_transaction_is_refused() throws Exception {
    ByteString hash = ByteString.copyFromUtf8("a hash that was drawn to be text");
    for (ByteString message :
        List.of(
            // Algorand: Program, version 10, intcblock of nine times 33, intc_0. It approves all.
            ByteString.fromHex("50726f6772616d0a200921212121212121212122"),
            ByteString.copyFromUtf8("MsigProgram").concat(hash),
            ByteString.copyFromUtf8("\nic-request").concat(hash),
            ByteString.copyFromUtf8("ae_mainnet").concat(hash))) {
      assertRefused(IntentProblem.MESSAGE_OF_CHAIN, intent(Scheme.SCHEME_ED25519, message), KEY);
      // BLS has no such chain, and no other payload.
      assertThat(Payloads.decode(intent(Scheme.SCHEME_BLS12381, message), KEY).toSign())
          .isEqualTo(message);
    }
    // Only where a chain looks for it.
    ByteString within = ByteString.copyFromUtf8("A Program");
    assertThat(Payloads.decode(intent(Scheme.SCHEME_ED25519, within), KEY).toSign())
        .isEqualTo(within);
  }

  /** Terminals would show the numbers beside them in another order. */
  @Test
  void letters_from_right_to_left_are_shown_by_their_numbers() throws Exception {
    ByteString message = ByteString.copyFromUtf8("rate \u05d0 10 = 1 \u0627 \u0661");
    assertThat(Payloads.decode(intent(Scheme.SCHEME_ED25519, message), KEY).fields().toString())
        .contains("rate \\u{5d0} 10 = 1 \\u{627} \\u{661}");
  }

  @Test
  void an_ed25519_message_is_text() throws Exception {
    for (String text :
        List.of(
            "a", "tab\tand\nlines\r\n", "w\u00e4hrung \u20ac 5 \ud83d\ude00", "{\"to\":\"me\"}")) {
      ByteString message = ByteString.copyFromUtf8(text);
      assertThat(Payloads.decode(intent(Scheme.SCHEME_ED25519, message), KEY).toSign())
          .isEqualTo(message);
    }
    List<ByteString> others = new ArrayList<>();
    // Not UTF-8: half a character, an overlong one, half a surrogate pair.
    for (String hex : List.of("61c3", "61c080", "61eda080", "61ff", "61f8888080")) {
      others.add(ByteString.fromHex(hex));
    }
    for (int control = 0; control < 0xa0; control++) {
      if (Character.isISOControl(control)
          && control != '\t'
          && control != '\n'
          && control != '\r') {
        others.add(ByteString.copyFromUtf8("a" + (char) control));
      }
    }
    // Directions, widths of nothing, separators of lines, letters that show nothing, tags.
    for (int hidden :
        new int[] {
          0xad, 0x61c, 0x200b, 0x200d, 0x200e, 0x2028, 0x2029, 0x202a, 0x202e, 0x2060, 0x2066,
          0x2069, 0xfeff, 0x34f, 0x115f, 0x2800, 0x3164, 0xfe0f, 0xffa0, 0xe0041, 0xe0100, 0x378,
          0xe000, 0xf0000
        }) {
      others.add(ByteString.copyFromUtf8("a" + Character.toString(hidden) + "b"));
    }
    others.add(ByteString.copyFromUtf8("\nfirst"));
    others.add(ByteString.copyFromUtf8("\rfirst"));
    for (ByteString other : others) {
      assertRefused(IntentProblem.MESSAGE_NOT_TEXT, intent(Scheme.SCHEME_ED25519, other), KEY);
      // BLS has no other payload for them.
      assertThat(Payloads.decode(intent(Scheme.SCHEME_BLS12381, other), KEY).toSign())
          .isEqualTo(other);
    }
  }

  @Test
  void a_letter_that_shows_nothing_is_shown_by_its_number() throws Exception {
    assertThat(message(Scheme.SCHEME_BLS12381, "a\u3164b")).endsWith("text: a\\u{3164}b\n");
  }

  private static SigningIntent intent(Scheme scheme, ByteString message) {
    return SigningIntent.newBuilder().setScheme(scheme).setMessage(message).build();
  }

  private static String message(Scheme scheme, String text) throws Exception {
    return text(Payloads.decode(intent(scheme, ByteString.copyFromUtf8(text)), KEY));
  }

  /** Many chains sign the hash of a transaction with Ed25519. */
  @Test
  void an_ed25519_message_of_32_bytes_is_a_digest() throws Exception {
    ByteString hash = ByteString.copyFromUtf8("x".repeat(32));
    SigningIntent.Builder intent =
        SigningIntent.newBuilder().setScheme(Scheme.SCHEME_ED25519).setMessage(hash);
    assertRefused(IntentProblem.MESSAGE_IS_DIGEST, intent.build(), KEY);
    assertThat(Payloads.decode(intent.setDigest(hash).build(), KEY).toSign()).isEqualTo(hash);
    // A validator's signing root is the only payload that BLS has.
    intent.setScheme(Scheme.SCHEME_BLS12381).setMessage(hash);
    assertThat(Payloads.decode(intent.build(), KEY).toSign()).isEqualTo(hash);
  }

  @Test
  void nothing_is_not_a_payload() {
    assertRefused(IntentProblem.MESSAGE_MISSING, SigningIntent.getDefaultInstance(), KEY);
  }

  @Test
  void kinds_fit_schemes() {
    for (PayloadKind kind : PayloadKind.values()) {
      assertThat(kind.fits(Scheme.SCHEME_BLS12381)).isEqualTo(kind == PayloadKind.MESSAGE);
      assertThat(kind.fits(Scheme.SCHEME_ECDSA_SECP256K1))
          .isEqualTo(kind != PayloadKind.MESSAGE && kind != PayloadKind.SOLANA_TRANSACTION);
      assertThat(kind.fits(Scheme.SCHEME_ED25519))
          .isEqualTo(
              kind == PayloadKind.MESSAGE
                  || kind == PayloadKind.DIGEST
                  || kind == PayloadKind.SOLANA_TRANSACTION);
      assertThat(kind.fits(Scheme.SCHEME_BIP340_SECP256K1))
          .isEqualTo(kind == PayloadKind.DIGEST || kind == PayloadKind.BITCOIN_INPUT);
      assertThat(kind.fits(Scheme.SCHEME_UNSPECIFIED)).isFalse();
      assertThat(PayloadKind.ofLabel(kind.label())).contains(kind);
    }
    assertThat(PayloadKind.ofLabel("anything")).isEmpty();
  }

  /** The decoder of every kind takes every kind of bytes. */
  @Test
  void random_and_mutated_bytes_are_decoded_or_refused_and_nothing_else_happens() {
    Random random = new Random(20260102);
    SigningIntent[] seeds = {
      SigningIntent.newBuilder().setEthereumTransaction(EthereumTransactionTest.EIP_2930).build(),
      SigningIntent.newBuilder().setEthereumTransaction(EthereumTransactionTest.EIP_1559).build(),
      SigningIntent.newBuilder().setEthereumTransaction(EthereumTransactionTest.EIP_155).build(),
      SigningIntent.newBuilder().setEthereumTypedData(TypedDataTest.MAIL).build(),
      SigningIntent.newBuilder()
          .setBitcoinInput(BitcoinInput.newBuilder().setPsbt(BitcoinPsbtTest.proven()).setInput(1))
          .build(),
      SigningIntent.newBuilder().setEthereumMessage(ByteString.copyFromUtf8("hello")).build(),
      BitcoinTaprootTest.intent(),
      SolanaTransactionTest.intent(SolanaTransactionTest.TRANSFER),
      SolanaTransactionTest.intent(SolanaTransactionTest.VERSION_0),
    };
    int decoded = 0;
    for (int i = 0; i < 45_000; i++) {
      SigningIntent seed = seeds[i % seeds.length];
      SigningIntent changed = change(seed, random);
      try {
        DecodedPayload payload = Payloads.decode(changed, key(seed));
        if (payload.kind() == PayloadKind.SOLANA_TRANSACTION) {
          assertThat(payload.toSign()).isEqualTo(changed.getSolanaTransaction());
        } else {
          assertThat(payload.toSign().size()).isEqualTo(32);
        }
        assertThat(payload.fields()).hasSizeLessThanOrEqualTo(DecodedPayload.MAX_FIELDS);
        decoded++;
      } catch (IntentException e) {
        assertThat(e.problem()).isNotNull();
      }
    }
    assertThat(decoded).isPositive();
  }

  private static ByteString key(SigningIntent seed) {
    return switch (seed.getScheme()) {
      case SCHEME_ED25519, SCHEME_ED25519_EXACT -> SolanaTransactionTest.KEY;
      case SCHEME_BIP340_SECP256K1 -> BitcoinTaprootTest.OUTPUT_KEY;
      default -> KEY;
    };
  }

  private static SigningIntent change(SigningIntent seed, Random random) {
    return switch (seed.getPayloadCase()) {
      case ETHEREUM_TRANSACTION ->
          seed.toBuilder()
              .setEthereumTransaction(change(seed.getEthereumTransaction(), random))
              .build();
      case ETHEREUM_TYPED_DATA ->
          seed.toBuilder()
              .setEthereumTypedData(
                  new String(
                      change(seed.getEthereumTypedDataBytes(), random).toByteArray(),
                      java.nio.charset.StandardCharsets.ISO_8859_1))
              .build();
      case BITCOIN_INPUT ->
          seed.toBuilder()
              .setBitcoinInput(
                  BitcoinInput.newBuilder()
                      .setPsbt(change(seed.getBitcoinInput().getPsbt(), random))
                      .setInput(
                          random.nextInt(20) == 0
                              ? random.nextInt()
                              : seed.getBitcoinInput().getInput()))
              .build();
      case SOLANA_TRANSACTION ->
          seed.toBuilder()
              .setSolanaTransaction(change(seed.getSolanaTransaction(), random))
              .build();
      default ->
          seed.toBuilder().setEthereumMessage(change(seed.getEthereumMessage(), random)).build();
    };
  }

  /** Random bytes, or a few bytes altered, inserted, doubled or cut off. */
  private static ByteString change(ByteString bytes, Random random) {
    int at = random.nextInt(bytes.size());
    byte[] some = new byte[random.nextInt(9)];
    random.nextBytes(some);
    ByteString inserted = ByteString.copyFrom(some);
    return switch (random.nextInt(6)) {
      case 0 -> inserted;
      case 1 -> bytes.substring(0, at);
      case 2 -> bytes.concat(inserted);
      case 3 -> bytes.substring(0, at).concat(inserted).concat(bytes.substring(at));
      case 4 -> bytes.substring(0, at).concat(bytes);
      default -> {
        byte[] altered = bytes.toByteArray();
        for (int i = random.nextInt(3); i >= 0; i--) {
          altered[random.nextInt(altered.length)] = (byte) random.nextInt();
        }
        yield ByteString.copyFrom(altered);
      }
    };
  }
}
