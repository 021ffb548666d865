package io.coterie.channel;

import java.time.Duration;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Puts the chunked bodies of one sender together again, in bounded memory. Used by one thread at a
 * time.
 */
final class Reassembly {
  private final ChannelConfig.Limits limits;
  private final long maxAgeNanos;
  private final Map<Key, Partial> partials = new LinkedHashMap<>();
  private long reserved;

  /** Broadcast and pairwise chunks never mix. */
  private record Key(long message, boolean senderKey) {}

  private static final class Partial {
    final byte[] body;
    final boolean[] seen;
    final boolean broadcast;
    final long sinceNanos;
    int missing;

    /** Length of every chunk but the last, once one of them has come. */
    int chunkLength;

    Partial(Frame.Chunk first, long now) {
      body = new byte[first.total()];
      seen = new boolean[first.count()];
      broadcast = first.broadcast();
      missing = first.count();
      sinceNanos = now;
    }
  }

  /** The chunk contradicts the others or the limits; its body is dropped. */
  static final class RefusedException extends Exception {
    private static final long serialVersionUID = 1L;

    RefusedException(String message) {
      super(message);
    }
  }

  Reassembly(ChannelConfig.Limits limits, Duration maxAge) {
    this.limits = limits;
    this.maxAgeNanos = maxAge.toNanos();
  }

  /**
   * Takes one chunk.
   *
   * @param senderKey whether it came under a sender key
   * @return the body, when this was the last part missing
   */
  byte @Nullable [] add(Frame.Chunk chunk, boolean senderKey, long now) throws RefusedException {
    expire(now);
    Key key = new Key(chunk.message(), senderKey);
    Partial partial = partials.get(key);
    if (partial == null) {
      if (chunk.total() > limits.maxBody()) {
        throw new RefusedException("a body of " + chunk.total() + " bytes is above the limit");
      }
      while (partials.size() >= limits.maxReassemblies()
          || (!partials.isEmpty() && reserved + chunk.total() > 2L * limits.maxBody())) {
        drop(partials.keySet().iterator().next());
      }
      partial = new Partial(chunk, now);
      reserved += chunk.total();
      partials.put(key, partial);
    }
    try {
      place(partial, chunk);
    } catch (RefusedException e) {
      drop(key);
      throw e;
    }
    if (partial.missing > 0) {
      return null;
    }
    partials.remove(key);
    reserved -= partial.body.length;
    return partial.body;
  }

  private static void place(Partial partial, Frame.Chunk chunk) throws RefusedException {
    int count = partial.seen.length;
    int total = partial.body.length;
    if (chunk.count() != count
        || chunk.total() != total
        || chunk.broadcast() != partial.broadcast) {
      throw new RefusedException("chunks disagree about their body");
    }
    if (partial.seen[chunk.index()]) {
      throw new RefusedException("a chunk came twice");
    }
    boolean last = chunk.index() == count - 1;
    int length = chunk.data().length;
    if (!last) {
      if (partial.chunkLength == 0) {
        partial.chunkLength = length;
      }
      if (length != partial.chunkLength || Frame.chunks(total, length) != count) {
        throw new RefusedException("chunks of unequal length");
      }
    }
    long from = last ? total - length : (long) chunk.index() * length;
    if (last && partial.chunkLength != 0 && from != (long) partial.chunkLength * (count - 1)) {
      throw new RefusedException("chunks do not add up to the body");
    }
    if (last && partial.chunkLength == 0) {
      // The others, when they come, must fill exactly what is left.
      if (from <= 0 || from % (count - 1) != 0) {
        throw new RefusedException("chunks do not add up to the body");
      }
      partial.chunkLength = (int) (from / (count - 1));
    }
    System.arraycopy(chunk.data(), 0, partial.body, (int) from, length);
    partial.seen[chunk.index()] = true;
    partial.missing--;
  }

  /** Forgets what is too old. */
  int expire(long now) {
    int dropped = 0;
    for (Iterator<Partial> it = partials.values().iterator(); it.hasNext(); ) {
      Partial partial = it.next();
      if (now - partial.sinceNanos > maxAgeNanos) {
        it.remove();
        reserved -= partial.body.length;
        Arrays.fill(partial.body, (byte) 0);
        dropped++;
      }
    }
    return dropped;
  }

  private void drop(Key key) {
    Partial partial = partials.remove(key);
    if (partial != null) {
      reserved -= partial.body.length;
      Arrays.fill(partial.body, (byte) 0);
    }
  }

  /** Forgets everything: the sender's process is gone. */
  void clear() {
    List.copyOf(partials.keySet()).forEach(this::drop);
  }

  int unfinished() {
    return partials.size();
  }
}
