package io.coterie.signer.claim;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Whether everybody who can be reached has been asked since the store was opened, or since it began
 * another log. Everything but {@link #wasMet} happens in the lane of {@link ClaimWitnesses}.
 */
final class Start {
  /** A start waits for answers so long at most, whoever is asked by then. */
  private static final long MOST_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final PartyNetwork network;

  /** Called when the first start of the process is over. */
  private final List<Runnable> after = new ArrayList<>();

  /** The start that is over. */
  private ByteString metAt = ByteString.EMPTY;

  /** The start that is being asked about, and since when. */
  private ByteString asking = ByteString.EMPTY;

  private long askingNanos;

  /** Since when anybody can be reached; null if nobody could so far. */
  private @Nullable Long reachedNanos;

  private volatile boolean met;

  Start(PartyNetwork network) {
    this.network = network;
  }

  /** Whether a start of this process is over. Any thread. */
  boolean wasMet() {
    return met;
  }

  /** Whether the start with that mark is over. */
  boolean isOver(ByteString mark) {
    return metAt.equals(mark);
  }

  /** Calls once a start of this process is over; at once if one is. */
  void whenMet(Runnable then) {
    if (met) {
      then.run();
    } else {
      after.add(then);
    }
  }

  /** An order came, or somebody can be reached: from now on those who are away count as that. */
  void reached(long nowNanos) {
    if (reachedNanos == null) {
      reachedNanos = nowNanos;
    }
  }

  /**
   * Ends the start if it is time.
   *
   * @param position of the ledger
   * @param unlearned whether something that was forgotten is not on disk yet: that is what the
   *     start is about, however long it takes
   * @param reachable other parties that can be reached
   * @param coordinators that can be reached
   */
  void look(
      LedgerPosition position,
      boolean unlearned,
      long now,
      Set<Integer> reachable,
      Map<Integer, Witness> witnesses,
      Collection<Witness> coordinators) {
    if (!network.reachable().isEmpty()) {
      reached(now);
    }
    ByteString mark = position.mark();
    if (isOver(mark) || reachedNanos == null) {
      return;
    }
    if (!asking.equals(mark)) {
      asking = mark;
      askingNanos = now;
    }
    Set<Integer> asked = new HashSet<>(reachable);
    asked.addAll(expected(now));
    if (!unlearned
        && (now - askingNanos >= MOST_NANOS
            || haveAnswered(position, asked, witnesses, coordinators))) {
      metAt = mark;
      met = true;
      List<Runnable> waiting = List.copyOf(after);
      after.clear();
      waiting.forEach(Runnable::run);
    }
  }

  /**
   * Every party of the roster, for a while after the first one could be reached, whether it can be
   * reached already or not, and whether this one has ever heard of it. Else a peer and a
   * coordinator that are quicker than everybody else would decide alone what this party is told at
   * a start.
   */
  private Set<Integer> expected(long nowNanos) {
    Set<Integer> expected = new HashSet<>();
    if (reachedNanos != null && nowNanos - reachedNanos < Witness.PATIENCE_NANOS) {
      for (Member member : network.roster().members()) {
        if (member.role() == Member.Role.PARTY) {
          expected.add(member.partyId());
        }
      }
      expected.remove(network.self().partyId());
    }
    return expected;
  }

  private static boolean haveAnswered(
      LedgerPosition now,
      Set<Integer> parties,
      Map<Integer, Witness> witnesses,
      Collection<Witness> coordinators) {
    List<Witness> asked = new ArrayList<>(coordinators);
    for (int party : parties) {
      Witness witness = witnesses.get(party);
      if (witness == null) {
        return false;
      }
      asked.add(witness);
    }
    return asked.stream().allMatch(w -> w.covers(now.mark(), now.base()) || !w.waitedFor(true));
  }
}
