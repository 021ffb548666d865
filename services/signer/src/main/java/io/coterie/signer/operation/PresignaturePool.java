package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.PresignatureLimits;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * The presignatures that are ready at this party, in memory only: they live and die with the
 * process, so that no restart, crash or restored store brings one back (docs/adr/0006). One that
 * was taken out never returns. Thread-safe.
 */
public final class PresignaturePool {
  /** No share is of this epoch. */
  public static final int NO_EPOCH = 0;

  private final PresignatureLimits limits;
  private final Consumer<ByteString> discard;
  private final PresignatureTelemetry telemetry;

  /** The presignatures that wait, by id, oldest first. */
  private final Map<ByteString, Presignature> ready = new LinkedHashMap<>();

  private final Map<String, Load> loads = new HashMap<>();
  private int running;
  private int making;

  /** Blocks of messages of those that are ready or being made. */
  private int blocks;

  /** Why room was not given. */
  enum Shortage {
    /** No reason to refuse: there is room, and it is taken now. */
    NONE,
    /** As many are ready or being made as may be, of this key or of all. */
    FULL,
    /** As many sessions make some as may run at once. */
    BUSY
  }

  /** Why a presignature was never used. */
  enum Drop {
    /** Older than allowed. */
    AGED,
    /** The key has new shares. */
    REFRESHED,
    /** One of its parties is excluded from the key. */
    EXCLUDED,
    /** The coordinator that ordered it does not want it any more. */
    CANCELLED,
    /**
     * The process of the coordinator that had ordered it is gone, and with it the knowledge of it.
     */
    ORPHANED,
    /** Another of the same id came. */
    DUPLICATE,
    /** It was taken for a signing that did not start. */
    NOT_STARTED;

    /** The label in metrics. */
    final String label = name().toLowerCase(Locale.ROOT);
  }

  private static final class Load {
    int ready;
    int making;
  }

  /**
   * @param discard told the ids of those that are dropped, so that nothing is kept for them
   */
  public PresignaturePool(
      PresignatureLimits limits, Consumer<ByteString> discard, PresignatureTelemetry telemetry) {
    this.limits = limits;
    this.discard = discard;
    this.telemetry = telemetry;
  }

  /**
   * Takes room for what a session is about to make; {@link #release} gives it back.
   *
   * @param messageBlocks that each of them is for
   */
  synchronized Shortage reserve(String key, int count, int messageBlocks) {
    if (running >= limits.maxRunning()) {
      return Shortage.BUSY;
    }
    Load load = loads.getOrDefault(key, new Load());
    if (load.ready + load.making + count > limits.maxPerKey()
        || ready.size() + making + count > limits.maxTotal()
        || messageBlocks > 0 && blocks + count * messageBlocks > limits.maxBlocks()) {
      return Shortage.FULL;
    }
    loads.put(key, load);
    load.making += count;
    making += count;
    blocks += count * messageBlocks;
    running++;
    return Shortage.NONE;
  }

  /** The session that {@link #reserve} was for has ended. */
  synchronized void release(String key, int count, int messageBlocks) {
    Load load = load(key);
    load.making -= count;
    making -= count;
    blocks -= count * messageBlocks;
    running--;
    forgetIfEmpty(key, load);
  }

  /**
   * Keeps the presignatures that one session has made. They take the room that the session has
   * reserved, which is to be released after.
   *
   * @return false if none of them was kept, because one has a name that is known already
   */
  boolean put(List<Presignature> made) {
    Set<ByteString> ids = made.stream().map(Presignature::id).collect(Collectors.toSet());
    synchronized (this) {
      if (ids.size() == made.size() && Collections.disjoint(ids, ready.keySet())) {
        for (Presignature each : made) {
          ready.put(each.id(), each);
          blocks += each.messageBlocks();
          Load load = load(each.key());
          load.ready++;
          telemetry.presignatureMade();
          telemetry.presignaturesReady(each.key(), load.ready);
        }
        return true;
      }
    }
    // The vault may have either of them under that id now: neither is used.
    drop(Drop.DUPLICATE, p -> ids.contains(p.id()));
    ids.forEach(discard);
    return false;
  }

  /**
   * Takes one out, for ever, if it is what a signing needs. One that is for something else stays.
   *
   * @param messageBlocks of its message; 0 if its protocol does not ask
   * @param share the session that made the share of the key which this party holds
   * @throws RefusedException if there is none
   */
  synchronized Presignature take(
      ByteString id, SessionPlan plan, int messageBlocks, SessionId share, String coordinator)
      throws RefusedException {
    Presignature found = ready.get(id);
    if (found == null || !found.fits(plan, messageBlocks, share, coordinator)) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN,
          "this party has no such presignature for this key and signing set");
    }
    ready.remove(found.id());
    countTaken(found);
    return found;
  }

  /** One that was taken was used. */
  void used() {
    telemetry.presignatureUsed();
  }

  /** One that was taken was not used, and never will be. */
  void burn(Presignature taken) {
    discard.accept(taken.id());
    telemetry.presignatureDropped(Drop.NOT_STARTED.label);
  }

  /**
   * The key has new shares, or none any more; presignatures from older ones are worthless.
   *
   * @param epoch of the shares; {@link #NO_EPOCH} if the older ones were of the same, or it has
   *     none
   */
  public void refreshed(String key, int epoch) {
    drop(Drop.REFRESHED, p -> p.key().equals(key) && p.epoch() != epoch);
  }

  /** No presignature of the key with one of these parties will ever be used. */
  public void excluded(String key, Predicate<Integer> party) {
    drop(Drop.EXCLUDED, p -> p.key().equals(key) && p.parties().stream().anyMatch(party));
  }

  /** The coordinator does not want what is left of what a session of its own has made. */
  public void cancelled(SessionId session, String coordinator) {
    drop(Drop.CANCELLED, p -> p.session().equals(session) && p.coordinator().equals(coordinator));
  }

  /**
   * A process of a coordinator is at work: nobody knows any more what an earlier one had made.
   *
   * @param incarnation of the process
   */
  void working(String coordinator, ByteString incarnation) {
    drop(
        Drop.ORPHANED,
        p ->
            p.coordinator().equals(coordinator) && !p.coordinatorIncarnation().equals(incarnation));
  }

  /** Drops what is older than allowed. */
  public void expire(long nowNanos) {
    long age = limits.maxAge().toNanos();
    drop(Drop.AGED, p -> nowNanos - p.madeNanos() >= age);
  }

  private void drop(Drop reason, Predicate<Presignature> which) {
    List<Presignature> dropped = new ArrayList<>();
    synchronized (this) {
      Iterator<Presignature> all = ready.values().iterator();
      while (all.hasNext()) {
        Presignature next = all.next();
        if (which.test(next)) {
          all.remove();
          countTaken(next);
          dropped.add(next);
        }
      }
    }
    for (Presignature each : dropped) {
      discard.accept(each.id());
      telemetry.presignatureDropped(reason.label);
    }
  }

  private void countTaken(Presignature out) {
    Load load = load(out.key());
    load.ready--;
    blocks -= out.messageBlocks();
    telemetry.presignaturesReady(out.key(), load.ready);
    forgetIfEmpty(out.key(), load);
  }

  private Load load(String key) {
    Load load = loads.get(key);
    if (load == null) {
      throw new IllegalStateException("nothing is counted for " + key);
    }
    return load;
  }

  private void forgetIfEmpty(String key, Load load) {
    if (load.ready == 0 && load.making == 0) {
      loads.remove(key);
    }
  }
}
