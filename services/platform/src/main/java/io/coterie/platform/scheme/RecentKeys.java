package io.coterie.platform.scheme;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.KeyTarget;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;

/**
 * The derived keys that were asked for last. A wallet signs at one target again and again, three
 * services derive its key for each signature, and each step to it is a multiplication. Public data
 * only. Thread-safe.
 */
final class RecentKeys {
  /** Each has some 300 bytes. */
  static final int MAX = 1024;

  /** Everything that the derived key follows from. */
  record Name(SchemeKeys scheme, ByteString publicKey, ByteString chainCode, KeyTarget target) {
    /** A copy with bytes of its own: those of a message are overwritten once it was read. */
    Name kept() {
      return new Name(
          scheme,
          copy(publicKey),
          copy(chainCode),
          new KeyTarget(target.path(), target.taproot().map(RecentKeys::copy)));
    }
  }

  private final Map<Name, ByteString> keys =
      new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Name, ByteString> eldest) {
          return size() > MAX;
        }
      };

  /**
   * The key of a target.
   *
   * @param derive makes it, from bytes that nobody overwrites, if it is not remembered; its
   *     exceptions are not
   */
  ByteString get(
      SchemeKeys scheme,
      ByteString publicKey,
      ByteString chainCode,
      KeyTarget target,
      Function<Name, ByteString> derive) {
    Name name = new Name(scheme, publicKey, chainCode, target);
    synchronized (this) {
      ByteString known = keys.get(name);
      if (known != null) {
        return known;
      }
    }
    Name kept = name.kept();
    ByteString derived = copy(derive.apply(kept));
    synchronized (this) {
      keys.put(kept, derived);
    }
    return derived;
  }

  /** How many are remembered. */
  synchronized int size() {
    return keys.size();
  }

  private static ByteString copy(ByteString bytes) {
    return ByteString.copyFrom(bytes.toByteArray());
  }
}
