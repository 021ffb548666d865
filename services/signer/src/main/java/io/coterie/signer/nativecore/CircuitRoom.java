package io.coterie.signer.nativecore;

import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import java.util.HashMap;
import java.util.Map;

/**
 * Room for runs that hold a circuit: one that is being prepared, with some 60 MB a block of
 * message, or one whose nonce is not open yet. The peer of a run may stop at any message. So they
 * are bounded for each peer, that one which stops leaves room to others, and for all. Thread-safe.
 */
final class CircuitRoom {
  /** Blocks of all runs: half of what a vault has room for, whose other half is the stock's. */
  static final int MAX_BLOCKS = 24;

  /** The same of those that nobody waits for. */
  static final int MAX_BLOCKS_IN_BACKGROUND = MAX_BLOCKS / 2;

  /** The same of one peer: the longest message, and one block. */
  static final int MAX_BLOCKS_OF_PEER = 12;

  /** Runs of one peer that prepare. Each has a frame on the way: as many wait for their lanes. */
  static final int MAX_PREPARING_WITH_PEER = 8;

  /** Guarded by itself. */
  private final Map<Integer, Load> byPeer = new HashMap<>();

  private int blocks;

  /** The purpose of a run. */
  enum Use {
    /** It prepares, and nobody waits for it. */
    BACKGROUND,
    /** It sets up or prepares, and somebody waits for it. */
    PREPARES,
    /** It signs with what was prepared before. */
    PREPARED
  }

  private static final class Load {
    int preparing;
    int blocks;
  }

  /** Room of one run. */
  final class Place implements AutoCloseable {
    private final int peer;
    private final Use use;
    private int held;

    private Place(int peer, Use use, int held) {
      this.peer = peer;
      this.use = use;
      this.held = held;
    }

    /** Gives it back. Idempotent. */
    @Override
    public void close() {
      synchronized (byPeer) {
        Load load = byPeer.get(peer);
        if (held == 0 || load == null) {
          return;
        }
        blocks -= held;
        load.blocks -= held;
        load.preparing -= use == Use.PREPARED ? 0 : 1;
        held = 0;
        if (load.blocks == 0) {
          byPeer.remove(peer);
        }
      }
    }
  }

  /**
   * Takes room for a run with a peer.
   *
   * @param count blocks of the message; 1 for a set-up alone
   * @throws RefusedException if there is none
   */
  Place take(int peer, int count, Use use) throws RefusedException {
    synchronized (byPeer) {
      Load load = byPeer.getOrDefault(peer, new Load());
      int most = use == Use.BACKGROUND ? MAX_BLOCKS_IN_BACKGROUND : MAX_BLOCKS;
      RefusedException.unless(
          blocks + count <= most
              && load.blocks + count <= MAX_BLOCKS_OF_PEER
              && (use == Use.PREPARED || load.preparing < MAX_PREPARING_WITH_PEER),
          RefusalReason.REFUSAL_REASON_OVERLOADED,
          "as many exact signatures are on their way here as may be, of all or with party " + peer);
      byPeer.put(peer, load);
      blocks += count;
      load.blocks += count;
      load.preparing += use == Use.PREPARED ? 0 : 1;
      return new Place(peer, use, count);
    }
  }
}
