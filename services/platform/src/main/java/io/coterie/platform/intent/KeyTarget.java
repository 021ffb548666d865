package io.coterie.platform.intent;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TaprootOutput;
import io.coterie.proto.party.v1.Order;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Which key signs, seen from the one that the parties share.
 *
 * @param path from the key to its descendant, non-hardened numbers (BIP-32); empty: the key itself
 * @param taproot if set, the Taproot output key of that descendant signs (BIP-341): root of the
 *     script tree, 32 bytes, or empty if there is none
 */
public record KeyTarget(List<Integer> path, Optional<ByteString> taproot) {
  /** Bytes of the root of a script tree. */
  public static final int MERKLE_ROOT_BYTES = 32;

  /** The key itself. */
  public static final KeyTarget SELF = new KeyTarget(List.of(), Optional.empty());

  public KeyTarget {
    path = List.copyOf(path);
  }

  /** A descendant, or for an empty path the key itself. */
  public static KeyTarget at(List<Integer> path) {
    return new KeyTarget(path, Optional.empty());
  }

  /** The one that an intent names. */
  public static KeyTarget of(SigningIntent intent) {
    return new KeyTarget(
        intent.getDerivationPathList(),
        intent.hasTaproot() ? Optional.of(intent.getTaproot().getMerkleRoot()) : Optional.empty());
  }

  /** The one that an order for presigning names. */
  public static KeyTarget of(Order order) {
    return new KeyTarget(
        order.getDerivationPathList(),
        order.hasTaproot() ? Optional.of(order.getTaproot().getMerkleRoot()) : Optional.empty());
  }

  /** Whether the root, if there is one, has a length that roots have. */
  public boolean isWellFormed() {
    return taproot.map(root -> root.isEmpty() || root.size() == MERKLE_ROOT_BYTES).orElse(true);
  }

  /** Names it in an order for presigning. */
  public void into(Order.Builder order) {
    order.addAllDerivationPath(path);
    taproot.ifPresent(root -> order.setTaproot(TaprootOutput.newBuilder().setMerkleRoot(root)));
  }

  /** Names it to the core. */
  public void into(SessionConfig.Builder config) {
    config.addAllDerivationPath(path);
    taproot.ifPresent(config::setTaprootMerkleRoot);
  }

  /** As people write the path: {@code m/86/0/0}. */
  public String pathText() {
    return path.stream().map(number -> "/" + number).collect(Collectors.joining("", "m", ""));
  }
}
