package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.List;
import java.util.stream.Collectors;

/** From a key to the descendant that signs. */
final class Derivation {
  private Derivation() {}

  /** As people write it: {@code m/44/60/0}. */
  static String text(List<Integer> path) {
    return path.stream().map(number -> "/" + number).collect(Collectors.joining("", "m", ""));
  }

  /**
   * The public key that signatures will verify under.
   *
   * @param path at most 10 non-hardened numbers
   */
  static ByteString signingKey(KeyPublic key, List<Integer> path) throws RefusedException {
    if (path.isEmpty()) {
      return key.getPublicKey();
    }
    try {
      return ExtendedPublicKey.of(key.getPublicKey(), key.getChainCode()).derive(path).publicKey();
    } catch (IllegalArgumentException e) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
          "the key has no descendant at " + text(path));
    }
  }
}
