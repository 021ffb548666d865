package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A Solana off-chain message, version 0: the preamble of Solana's proposal "Off-chain message
 * signing", checked to its last byte, and the text it announces. The chain never takes one for a
 * transaction.
 */
final class SolanaOffchainMessage {
  private static final ByteString SIGNING_DOMAIN =
      ByteString.copyFrom("\u00ffsolana offchain", StandardCharsets.ISO_8859_1);

  private static final int VERSION_AT = SIGNING_DOMAIN.size();
  private static final int APPLICATION_AT = VERSION_AT + 1;
  private static final int APPLICATION_BYTES = 32;
  private static final int FORMAT_AT = APPLICATION_AT + APPLICATION_BYTES;
  private static final int SIGNERS_AT = FORMAT_AT + 2;
  private static final int LENGTH_BYTES = 2;

  /** Formats: {@code 0x20..0x7e} alone; UTF-8 as short as a hardware wallet takes; UTF-8. */
  private static final int ASCII = 0;

  private static final int LONG_UTF8 = 2;

  /** Bytes of preamble and text of the formats below {@link #LONG_UTF8}, and of that one. */
  private static final int MAX_SHORT = 1232;

  private static final int MAX_LONG = 65535;

  private final ByteString application;
  private final List<ByteString> signers;
  private final String text;

  private SolanaOffchainMessage(ByteString bytes) throws IntentException {
    require(bytes.size() > SIGNERS_AT && bytes.startsWith(SIGNING_DOMAIN));
    require(bytes.byteAt(VERSION_AT) == 0);
    this.application = bytes.substring(APPLICATION_AT, FORMAT_AT);
    int format = bytes.byteAt(FORMAT_AT) & 0xff;
    int count = bytes.byteAt(FORMAT_AT + 1) & 0xff;
    int lengthAt = SIGNERS_AT + count * SolanaAddress.BYTES;
    int textAt = lengthAt + LENGTH_BYTES;
    require(format <= LONG_UTF8 && count > 0 && textAt < bytes.size());
    require(bytes.size() <= (format == LONG_UTF8 ? MAX_LONG : MAX_SHORT));
    List<ByteString> keys = new ArrayList<>();
    for (int at = SIGNERS_AT; at < lengthAt; at += SolanaAddress.BYTES) {
      keys.add(bytes.substring(at, at + SolanaAddress.BYTES));
    }
    this.signers = List.copyOf(keys);
    int length = bytes.byteAt(lengthAt) & 0xff | (bytes.byteAt(lengthAt + 1) & 0xff) << 8;
    ByteString body = bytes.substring(textAt);
    Optional<String> decoded = Lines.utf8(body);
    require(length == body.size() && decoded.isPresent());
    this.text = decoded.orElseThrow();
    require(format != ASCII || text.chars().allMatch(c -> c >= 0x20 && c <= 0x7e));
  }

  /**
   * Decodes a message that is to be signed as it is.
   *
   * @param publicKey the key that signs, 32 bytes; empty if it is not at hand
   * @throws IntentException if it is not one, has another length than it says, characters that its
   *     format forbids, or does not have the key among its signers
   */
  static SolanaOffchainMessage decode(ByteString bytes, Optional<ByteString> publicKey)
      throws IntentException {
    SolanaOffchainMessage message = new SolanaOffchainMessage(bytes);
    require(publicKey.isEmpty() || message.signers.contains(publicKey.get()));
    return message;
  }

  /** The text that it announces. */
  String text() {
    return text;
  }

  /** The fields that people are shown. */
  void describe(Lines lines) throws IntentException {
    lines.add("off-chain message for", SolanaAddress.of(application));
    lines.add("text", text);
  }

  private static void require(boolean condition) throws IntentException {
    if (!condition) {
      throw new IntentException(IntentProblem.MESSAGE_VERSIONED);
    }
  }
}
