package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import java.util.List;

/**
 * What a signature is to be of, and under which key it will verify.
 *
 * @param payload what the scheme signs: the message, or a digest of 32 bytes
 * @param publicKey the key's own, or its child's at {@code derivationPath}
 * @param derivationPath below the key; empty for the key itself
 */
public record ToSign(ByteString payload, ByteString publicKey, List<Integer> derivationPath) {
  public ToSign {
    derivationPath = List.copyOf(derivationPath);
  }

  /** Without the payload: it belongs to the requester and not into logs. */
  @Override
  public String toString() {
    return "ToSign[" + derivationPath + "]";
  }
}
