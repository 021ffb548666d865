package io.coterie.platform.ledger;

import com.google.protobuf.ByteString;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The time at a party, said to one that has asked: the answer is of no use to another one, at
 * another time, or in another installation.
 *
 * @param installation name
 * @param party whose clock it is
 * @param asker id of the party that asks
 * @param challenge {@link #CHALLENGE_BYTES} random bytes of the asker
 * @param unixMs in ms since 1970
 */
public record ClockStatement(
    String installation, int party, int asker, ByteString challenge, long unixMs) {
  /** Length of a challenge, bytes. */
  public static final int CHALLENGE_BYTES = 16;

  private static final byte[] TAG = "coterie/clock/1".getBytes(StandardCharsets.US_ASCII);

  /** The bytes that the party signs. Only the name has no fixed length, so its own is before it. */
  public ByteString statement() {
    byte[] name = installation.getBytes(StandardCharsets.UTF_8);
    ByteBuffer bytes =
        ByteBuffer.allocate(
            TAG.length + 3 * Integer.BYTES + name.length + CHALLENGE_BYTES + Long.BYTES);
    bytes.put(TAG).putInt(name.length).put(name).putInt(party).putInt(asker);
    bytes.put(challenge.asReadOnlyByteBuffer()).putLong(unixMs);
    return ByteString.copyFrom(bytes.flip());
  }

  /** Whether the party has signed it. */
  public boolean isSigned(ByteString signature, byte[] evidenceKey) {
    return StatementSignature.verifies(evidenceKey, statement(), signature);
  }
}
