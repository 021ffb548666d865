package io.coterie.platform.protocol;

import io.coterie.proto.core.v1.ProtocolId;
import java.util.Arrays;
import java.util.Optional;

/**
 * The steps of pairs that sign with an imported Ed25519 key exactly as RFC 8032 says. Each is a
 * session of the core, whose run tells how many rounds it has. Orders name one of them for all that
 * the parties do in the session: see {@link Protocol#isOfPairs}.
 */
public enum ExactProtocol {
  /** Sets a pair up. */
  PAIR(ProtocolId.PROTOCOL_ID_ED25519_EXACT_PAIR),
  /** Prepares one signature. */
  PREPARE(ProtocolId.PROTOCOL_ID_ED25519_EXACT_PREPARE),
  /** Opens the nonce of a message. */
  NONCE(ProtocolId.PROTOCOL_ID_ED25519_EXACT_NONCE),
  /** Makes the signature. */
  ANSWER(ProtocolId.PROTOCOL_ID_ED25519_EXACT_ANSWER);

  /** Most blocks of SHA-512 that a message may take, as the core allows. */
  public static final int MAX_BLOCKS = 11;

  private static final int BLOCK_BYTES = 128;
  private static final int PREFIX_AND_PADDING_BYTES = 32 + 1 + 16;

  private final ProtocolId id;

  ExactProtocol(ProtocolId id) {
    this.id = id;
  }

  /** The protocol of that id; empty if it is none of these. */
  public static Optional<ExactProtocol> of(ProtocolId id) {
    return Arrays.stream(values()).filter(p -> p.id == id).findFirst();
  }

  /** Blocks of SHA-512 that the key's prefix, a message and the padding take. */
  public static int blocks(int messageBytes) {
    return Math.ceilDiv(messageBytes + PREFIX_AND_PADDING_BYTES, BLOCK_BYTES);
  }

  public ProtocolId id() {
    return id;
  }
}
