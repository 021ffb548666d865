package io.coterie.coordinator.custody.signing;

import java.util.HashMap;
import java.util.Map;

/**
 * Places for signing sessions that requesters share: those with one party, or all of this replica.
 *
 * <p>A requester that holds less than an equal part takes any free place. One that holds more
 * leaves a few places free while other requesters are present, so that these find a place at once
 * and need not wait until one of its sessions ends. Guarded by {@link SessionTurns}.
 */
final class TurnPlaces {
  /** One of so many is for requests that nobody waits for. */
  private static final int UNATTENDED_SHARE = 4;

  /** One of so many stays free for requesters that hold less than an equal part. */
  private static final int KEPT_SHARE = 8;

  /** A requester counts as present until this many turns were given to others since its last. */
  private static final long REMEMBERED_TURNS = 1024;

  /** The places of a party at first. */
  private static final int FIRST = 16;

  /** Halving goes no lower. */
  private static final int FEWEST = 2;

  private final int most;
  private double size;

  /** Up to here the window doubles. */
  private double slowStartThreshold;

  /** Counts the halvings: a turn that was given before the last one says nothing new. */
  private int halvings;

  private int running;
  private int aside;
  private long turns;

  /** The requesters by name. The configuration names them all, so there are not many. */
  private final Map<String, Presence> requesters = new HashMap<>();

  private boolean counted;
  private int present;
  private int wanting;

  private static final class Presence {
    int running;
    int waiting;
    long lastTurn = -REMEMBERED_TURNS;
  }

  private TurnPlaces(int most, double size) {
    this.most = most;
    this.size = size;
    this.slowStartThreshold = most;
  }

  /** As many as one party can do at a time: {@link #grow} and {@link #shrink} find that out. */
  static TurnPlaces ofParty(int most) {
    return new TurnPlaces(most, Math.min(FIRST, most));
  }

  /** All of one replica. */
  static TurnPlaces ofReplica(int most) {
    return new TurnPlaces(most, most);
  }

  private Presence of(String requester) {
    counted = false;
    return requesters.computeIfAbsent(requester, _ -> new Presence());
  }

  /** A request of that requester waits for a place from now on. */
  void joined(String requester) {
    of(requester).waiting++;
  }

  /** A request of that requester waits no more: it has a place, or has ended without one. */
  void left(String requester) {
    of(requester).waiting--;
  }

  /** A session takes a place that {@link #hasRoom} has found. */
  void take(String requester, boolean toBeAside) {
    Presence own = of(requester);
    own.running++;
    own.lastTurn = turns++;
    running++;
    aside += toBeAside ? 1 : 0;
  }

  /** A session gives its place back. */
  void giveBack(String requester, boolean wasAside) {
    of(requester).running--;
    running--;
    aside -= wasAside ? 1 : 0;
  }

  /** Whether a session of that requester may take a place now. */
  boolean hasRoom(String requester, boolean toBeAside) {
    if (running >= size() || (toBeAside && aside >= Math.max(1, size() / UNATTENDED_SHARE))) {
      return false;
    }
    return !isBusy() || held(requester) < Math.max(1, size() / present());
  }

  /** Whether all places are taken, but for those that stay free for other requesters. */
  boolean isBusy() {
    return running >= size() - (present() > 1 ? kept() : 0);
  }

  /**
   * The part of the places that a requester holds, if several requesters wait and few places are
   * free. 0 otherwise: then the requester keeps no other one waiting.
   */
  double contestedShare(String requester) {
    count();
    return wanting > 1 && running >= size() - kept() ? (double) held(requester) / size() : 0;
  }

  private int held(String requester) {
    Presence own = requesters.get(requester);
    return own == null ? 0 : own.running;
  }

  private int kept() {
    return size() < 2 ? 0 : Math.max(1, size() / KEPT_SHARE);
  }

  /** Requesters that hold a place, wait for one, or had one lately; at least 1. */
  private int present() {
    count();
    return Math.max(1, present);
  }

  private void count() {
    if (counted) {
      return;
    }
    counted = true;
    present = 0;
    wanting = 0;
    for (Presence each : requesters.values()) {
      wanting += each.waiting > 0 ? 1 : 0;
      boolean lately = turns - each.lastTurn < REMEMBERED_TURNS;
      present += each.waiting > 0 || each.running > 0 || lately ? 1 : 0;
    }
  }

  /** Places that there are now. */
  int size() {
    return (int) size;
  }

  /** Places that are taken. */
  int running() {
    return running;
  }

  /** Whether there are fewer places than at first. */
  boolean isSlowed() {
    return size() < Math.min(FIRST, most);
  }

  int halvings() {
    return halvings;
  }

  /** A session of a party has ended well: the window grows if all of it was in use. */
  void grow() {
    // A window that was not full has shown nothing.
    if (isBusy()) {
      double more = size < slowStartThreshold ? 1 : 1 / size;
      size = Math.min(most, size + more);
    }
  }

  /** Sessions have waited for the party in vain. */
  void shrink() {
    halvings++;
    size = Math.min(most, Math.max(FEWEST, size / 2));
    slowStartThreshold = size;
  }
}
