package io.coterie.channel.wire;

import io.coterie.channel.ChannelConfig;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Puts the chunked bodies of one sender together again, in bounded memory: only what has come is
 * kept, for a bounded time, up to a bound for each sender and one for all of them. Used by one
 * thread at a time.
 */
public final class Reassembly {
  private final ChannelConfig config;

  /** Bytes kept for all senders together. */
  private final AtomicLong total;

  private final Map<Key, Partial> partials = new LinkedHashMap<>();
  private long kept;

  /** Chunks under a sender key and pairwise ones never mix. */
  private record Key(long message, boolean senderKey) {}

  private static final class Partial {
    final byte[] @Nullable [] chunks;
    final int length;
    final boolean broadcast;
    final long sinceNanos;
    int missing;
    int kept;

    /** Length of every chunk but the last, once one of them has come. */
    int chunkLength;

    Partial(Frame.Chunk first, long now) {
      chunks = new byte[first.count()][];
      length = first.total();
      broadcast = first.broadcast();
      missing = first.count();
      sinceNanos = now;
    }
  }

  /** The chunk contradicts the others or the limits; its body is dropped. */
  public static final class RefusedException extends Exception {
    private static final long serialVersionUID = 1L;

    RefusedException(String message) {
      super(message);
    }
  }

  public Reassembly(ChannelConfig config, AtomicLong total) {
    this.config = config;
    this.total = total;
  }

  /**
   * Takes one chunk.
   *
   * @param senderKey whether it came under a sender key
   * @return the body, when this was the last part missing
   */
  public byte @Nullable [] add(Frame.Chunk chunk, boolean senderKey, long now)
      throws RefusedException {
    expire(now);
    Key key = new Key(chunk.message(), senderKey);
    Partial partial = partials.get(key);
    try {
      if (partial == null) {
        if (chunk.total() > config.limits().maxBody()) {
          throw new RefusedException("a body of " + chunk.total() + " bytes is above the limit");
        }
        if (partials.size() >= config.limits().maxReassemblies()) {
          drop(partials.keySet().iterator().next());
        }
        partial = new Partial(chunk, now);
        partials.put(key, partial);
      }
      place(partial, chunk);
    } catch (RefusedException e) {
      drop(key);
      throw e;
    }
    if (partial.missing > 0) {
      return null;
    }
    byte[] body = new byte[partial.length];
    int at = 0;
    for (byte[] part : partial.chunks) {
      if (part != null) {
        System.arraycopy(part, 0, body, at, part.length);
        at += part.length;
      }
    }
    drop(key);
    return body;
  }

  private void place(Partial partial, Frame.Chunk chunk) throws RefusedException {
    int count = partial.chunks.length;
    if (chunk.count() != count
        || chunk.total() != partial.length
        || chunk.broadcast() != partial.broadcast) {
      throw new RefusedException("chunks disagree about their body");
    }
    if (partial.chunks[chunk.index()] != null) {
      throw new RefusedException("a chunk came twice");
    }
    int length = chunk.data().length;
    // All but the last have the same length, and with it the last fills up the body.
    int each = length;
    if (chunk.index() == count - 1) {
      int rest = partial.length - length;
      if (rest % (count - 1) != 0) {
        throw new RefusedException("chunks do not add up to the body");
      }
      each = rest / (count - 1);
    }
    if ((partial.chunkLength != 0 && each != partial.chunkLength)
        || each == 0
        || Frame.chunks(partial.length, each) != count) {
      throw new RefusedException("chunks do not add up to the body");
    }
    partial.chunkLength = each;
    if (kept + length > 2L * config.limits().maxBody()
        || total.addAndGet(length) > config.limits().maxReassemblyBytes()) {
      if (kept + length <= 2L * config.limits().maxBody()) {
        total.addAndGet(-length);
      }
      throw new RefusedException("too many bytes of unfinished bodies");
    }
    kept += length;
    partial.kept += length;
    partial.chunks[chunk.index()] = chunk.data().clone();
    partial.missing--;
  }

  /**
   * Forgets what is too old.
   *
   * @return how many bodies that were
   */
  public int expire(long now) {
    int dropped = 0;
    for (Iterator<Partial> it = partials.values().iterator(); it.hasNext(); ) {
      Partial partial = it.next();
      if (now - partial.sinceNanos > config.timing().reassembly().toNanos()) {
        it.remove();
        wipe(partial);
        dropped++;
      }
    }
    return dropped;
  }

  /** Forgets everything: the sender's process is gone. */
  public void clear() {
    List.copyOf(partials.keySet()).forEach(this::drop);
  }

  /** Bytes kept. */
  long kept() {
    return kept;
  }

  private void drop(Key key) {
    Partial partial = partials.remove(key);
    if (partial != null) {
      wipe(partial);
    }
  }

  private void wipe(Partial partial) {
    for (byte[] part : partial.chunks) {
      if (part != null) {
        Arrays.fill(part, (byte) 0);
      }
    }
    kept -= partial.kept;
    total.addAndGet(-partial.kept);
  }
}
