package io.coterie.platform.payload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Messages of an Ed25519 key whose first byte has its top bit set. */
class SolanaOffchainMessageTest {
  private static final ByteString KEY = SolanaTransactionTest.KEY;
  private static final String DOMAIN = "ff736f6c616e61206f6666636861696e";
  private static final String APPLICATION = "11".repeat(32);

  /** From the application domain's end: format, signers, length, text. */
  private static ByteString message(
      int version, int format, String signers, int length, byte[] text) throws Exception {
    return ByteString.fromHex(
            DOMAIN
                + "%02x".formatted(version)
                + APPLICATION
                + "%02x%02x".formatted(format, signers.length() / 64)
                + signers
                + "%02x%02x".formatted(length & 0xff, length >> 8))
        .concat(ByteString.copyFrom(text));
  }

  private static ByteString message(int format, String text) throws Exception {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    return message(0, format, hex(KEY), bytes.length, bytes);
  }

  private static String hex(ByteString bytes) {
    return java.util.HexFormat.of().formatHex(bytes.toByteArray());
  }

  private static SigningIntent intent(ByteString message) {
    return SigningIntent.newBuilder().setScheme(Scheme.SCHEME_ED25519).setMessage(message).build();
  }

  private static void assertRefused(ByteString message) {
    PayloadsTest.assertRefused(
        message.size() == 32 ? IntentProblem.MESSAGE_IS_DIGEST : IntentProblem.MESSAGE_VERSIONED,
        intent(message),
        KEY);
  }

  @Test
  void a_version_1_transaction_is_not_signed_as_a_message() {
    // SIMD-0385: the first byte of a version 1 transaction; nothing reads the bytes after it.
    assertRefused(ByteString.fromHex("81" + "010001" + "00000000" + "22".repeat(64)));
    assertRefused(ByteString.fromHex("81"));
  }

  @Test
  void no_version_byte_known_today_or_not_is_signed_as_a_message() {
    for (int first = 0x80; first <= 0xff; first++) {
      byte[] bytes = new byte[40];
      bytes[0] = (byte) first;
      assertRefused(ByteString.copyFrom(bytes));
    }
  }

  @Test
  void other_messages_and_other_schemes_are_signed_as_they_are() throws Exception {
    ByteString plain = ByteString.copyFromUtf8("~hello");
    assertThat(Payloads.decode(intent(plain), KEY).toSign()).isEqualTo(plain);
    ByteString version1 = ByteString.fromHex("81010001");
    SigningIntent bls = intent(version1).toBuilder().setScheme(Scheme.SCHEME_BLS12381).build();
    assertThat(Payloads.decode(bls, ByteString.EMPTY).toSign()).isEqualTo(version1);
  }

  @Test
  void a_well_formed_off_chain_message_is_signed_and_shown() throws Exception {
    for (int format = 0; format <= 2; format++) {
      ByteString message = message(format, "log in");
      DecodedPayload decoded = Payloads.decode(intent(message), KEY);
      assertThat(decoded.toSign()).isEqualTo(message);
      assertThat(decoded.fields().toString()).contains("log in");
    }
    ByteString lines = message(1, "log in\n\tto \u00fc\r\n");
    assertThat(Payloads.decode(intent(lines), KEY).toSign()).isEqualTo(lines);
    for (String hidden : List.of("log\u0000in", "log \u202eni", "log\u200bin", "log\u2028in")) {
      PayloadsTest.assertRefused(IntentProblem.MESSAGE_NOT_TEXT, intent(message(1, hidden)), KEY);
    }
    ByteString umlaut = message(1, "gr\u00fc\u00df dich");
    assertThat(Payloads.decode(intent(umlaut), KEY).toSign()).isEqualTo(umlaut);
    ByteString shared = message(0, 0, "33".repeat(32) + hex(KEY), 2, new byte[] {'h', 'i'});
    assertThat(Payloads.decode(intent(shared), KEY).toSign()).isEqualTo(shared);
    ByteString largest = message(0, "a".repeat(1232 - 85));
    assertThat(Payloads.decode(intent(largest), KEY).toSign()).isEqualTo(largest);
  }

  /** Its requester has the message before it has the key at hand. */
  @Test
  void a_preview_shows_it_for_whichever_of_its_signers_it_is() throws Exception {
    ByteString message = message(1, "log in");
    assertThat(Payloads.preview(intent(message))).isEqualTo(Payloads.decode(intent(message), KEY));
    assertThatThrownBy(() -> Payloads.preview(intent(message.substring(1, 40))))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.problem()).isEqualTo(IntentProblem.MESSAGE_NOT_TEXT));
  }

  @Test
  void a_preamble_is_checked_to_its_end() throws Exception {
    byte[] text = {'h', 'i'};
    ByteString good = message(0, 0, hex(KEY), 2, text);
    for (int end = 1; end < good.size(); end++) {
      assertRefused(good.substring(0, end));
    }
    assertRefused(good.concat(ByteString.copyFrom(text))); // something follows the text
    assertRefused(message(1, 0, hex(KEY), 2, text)); // another version
    assertRefused(message(0, 3, hex(KEY), 2, text)); // another format
    assertRefused(message(0, 0, "", 2, text)); // nobody signs
    assertRefused(message(0, 0, "33".repeat(32), 2, text)); // others sign
    assertRefused(message(0, 0, hex(KEY), 0, new byte[0])); // nothing is said
    assertRefused(message(0, 0, hex(KEY), 3, text)); // another length
    assertRefused(message(0, 0, hex(KEY), 0x0200, text)); // the length of the other byte order
    assertRefused(message(0, "gr\u00fc\u00df")); // not what its format allows
    assertRefused(message(0, "line\nbreak"));
    assertRefused(message(0, 1, hex(KEY), 1, new byte[] {(byte) 0xc3})); // half a character
    assertRefused(message(1, "a".repeat(1232 - 84))); // longer than its format allows
  }
}
