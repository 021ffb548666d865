package io.coterie.simulation;

import com.google.protobuf.ByteString;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The multiplications of one party that were open when a process of it ended, as the world saw
 * them. A session counts from the claim on disk to the close of its run in the core, with the key
 * and the peers of its order. The signer's own count is no part of it.
 */
final class Multiplications {
  /** A peer of a party in one epoch of a key. */
  private record Pair(String key, int epoch, int peer) {}

  /** Ends of processes in a multiplication with a peer. */
  record Ends(int certain, int possible) {
    static final Ends NONE = new Ends(0, 0);

    Ends plus(Ends other) {
      return new Ends(certain + other.certain, possible + other.possible);
    }
  }

  /** A session that multiplies. */
  private static final class Open {
    final Ordered order;
    final int failuresBefore;
    boolean begun;
    boolean over;

    /** Commits of the process when it was over. */
    int commitsBefore;

    Open(Ordered order, int failuresBefore) {
      this.order = order;
      this.failuresBefore = failuresBefore;
    }

    /** Whether it is on disk that it is over: each commit takes along all that waits. */
    boolean isClosed(SimulatedDisk disk) {
      return over && disk.commits() > commitsBefore && disk.failures() == failuresBefore;
    }
  }

  private final int self;
  private final Map<ByteString, Open> open = new LinkedHashMap<>();
  private final Map<Pair, Ends> ends = new LinkedHashMap<>();

  /** Multiplications that the next process will find open. */
  private Set<Pair> left = Set.of();

  /** Those that were on when each copy of the store was made. */
  private final List<Set<Pair>> copies = new ArrayList<>();

  /**
   * @param self id of the party
   */
  Multiplications(int self) {
    this.self = self;
  }

  /** A session is claimed, and that is on disk. */
  void claimed(Ordered order, SimulatedDisk disk) {
    if (order.protocol().multiplies()) {
      open.put(order.session(), new Open(order, disk.failures()));
    }
  }

  /** The core begins a session. One that has ended while it was claimed never begins. */
  void begun(ByteString session) {
    Open now = open.get(session);
    if (now != null) {
      now.begun = true;
    }
  }

  /** The run of a session is closed. */
  void over(ByteString session, SimulatedDisk disk) {
    Open now = open.get(session);
    if (now != null && !now.over) {
      now.over = true;
      now.commitsBefore = disk.commits();
    }
  }

  /** The process ends, with what is on its disk now. */
  void processEnds(SimulatedDisk disk) {
    Set<Pair> certain = new HashSet<>();
    open.values().stream()
        .filter(each -> each.begun && !each.over)
        .map(this::pairs)
        .forEach(certain::addAll);
    left = possible(disk);
    for (Pair pair : left) {
      add(pair, new Ends(certain.contains(pair) ? 1 : 0, 1));
    }
    open.clear();
  }

  private Set<Pair> possible(SimulatedDisk disk) {
    Set<Pair> possible = new HashSet<>();
    open.values().stream()
        .filter(each -> !each.isClosed(disk))
        .map(this::pairs)
        .forEach(possible::addAll);
    return possible;
  }

  private Set<Pair> pairs(Open each) {
    Set<Pair> pairs = new HashSet<>();
    for (int peer : each.order.parties()) {
      if (peer != self) {
        pairs.add(new Pair(each.order.order().getKey(), each.order.order().getEpoch(), peer));
      }
    }
    return pairs;
  }

  private void add(Pair pair, Ends more) {
    ends.merge(pair, more, Ends::plus);
  }

  /**
   * The store is copied.
   *
   * @param disk of the process that runs; null if none does
   */
  void copied(@Nullable SimulatedDisk disk) {
    copies.add(disk == null ? left : possible(disk));
  }

  /** A copy takes the place of the store. Multiplications open in it count at the next start. */
  void putBack(int copy) {
    left = copies.get(copy);
    left.forEach(pair -> add(pair, new Ends(0, 1)));
  }

  /** Whether a process has ended in one, or may have. */
  boolean hasEnds() {
    return !ends.isEmpty() || !left.isEmpty();
  }

  /** How often processes have ended in a multiplication with a peer. */
  Ends ends(String key, int epoch, int peer) {
    return ends.getOrDefault(new Pair(key, epoch, peer), Ends.NONE);
  }
}
