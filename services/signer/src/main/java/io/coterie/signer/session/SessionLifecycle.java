package io.coterie.signer.session;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * The life of a session at this party, as a table of state, event, next state. Whatever is not in
 * the table is illegal and says so.
 */
public final class SessionLifecycle {

  /** Where a session is. */
  public enum State {
    /** The order has come; nothing of it is believed yet. */
    RECEIVED,
    /** The order is good, but the key is still provisional here. */
    WAITING_FOR_KEY,
    /** The claim is on its way to the disk. Nothing has been sent. */
    CLAIMING,
    /** The core runs. */
    RUNNING,
    /** This party has sent its last message and stays only to see the result. */
    COMBINING,
    /** A new share is on its way to the disk. */
    STORING,
    COMPLETED,
    /** The request already has a share: its report was sent again, nothing was run. */
    REPEATED,
    /** Did not start, or its result may not be kept. */
    REFUSED,
    ABORTED,
    TIMED_OUT,
    /** By the coordinator that ordered it, or by a newer order for the same new key. */
    CANCELLED,
    /** This party has sent its last message; too many wait for their result already. */
    CONTRIBUTED,
    /** The process ended first. */
    STOPPED;

    /** Nothing happens after it. */
    public boolean isFinal() {
      return TRANSITIONS.stream().noneMatch(t -> t.from() == this);
    }

    /** As in metrics and the audit trail: {@code timed_out}. */
    public String label() {
      return name().toLowerCase(java.util.Locale.ROOT);
    }
  }

  /** What happens to a session. */
  public enum Event {
    /** Order, intent and policy agree, and the key can be used. */
    CHECKED,
    /** The same, but the key is not active yet. */
    KEY_PROVISIONAL,
    /** The awaited key became active. */
    KEY_ACTIVE,
    /** A share made by this very request exists. */
    SHARE_EXISTS,
    /** The claim is on disk. */
    CLAIMED,
    /** Only peers' messages are missing now. */
    LAST_SENT,
    /** The same, but too many sessions wait for that already. */
    LAST_SENT_UNOBSERVED,
    /** Key generation made a share. */
    SHARE_MADE,
    /** The share is on disk. */
    SHARE_STORED,
    /** The signature is complete. */
    SIGNED,
    REFUSE,
    ABORT,
    DEADLINE,
    CANCEL,
    STOP
  }

  /** One line of the table. */
  public record Transition(State from, Event event, State to) {}

  /** The table. */
  public static final List<Transition> TRANSITIONS =
      List.of(
          new Transition(State.RECEIVED, Event.CHECKED, State.CLAIMING),
          new Transition(State.RECEIVED, Event.KEY_PROVISIONAL, State.WAITING_FOR_KEY),
          new Transition(State.RECEIVED, Event.SHARE_EXISTS, State.REPEATED),
          new Transition(State.RECEIVED, Event.REFUSE, State.REFUSED),
          new Transition(State.RECEIVED, Event.STOP, State.STOPPED),
          new Transition(State.WAITING_FOR_KEY, Event.KEY_ACTIVE, State.RECEIVED),
          new Transition(State.WAITING_FOR_KEY, Event.REFUSE, State.REFUSED),
          new Transition(State.WAITING_FOR_KEY, Event.CANCEL, State.CANCELLED),
          new Transition(State.WAITING_FOR_KEY, Event.STOP, State.STOPPED),
          new Transition(State.CLAIMING, Event.CLAIMED, State.RUNNING),
          new Transition(State.CLAIMING, Event.REFUSE, State.REFUSED),
          new Transition(State.CLAIMING, Event.DEADLINE, State.TIMED_OUT),
          new Transition(State.CLAIMING, Event.CANCEL, State.CANCELLED),
          new Transition(State.CLAIMING, Event.STOP, State.STOPPED),
          new Transition(State.RUNNING, Event.LAST_SENT, State.COMBINING),
          new Transition(State.RUNNING, Event.LAST_SENT_UNOBSERVED, State.CONTRIBUTED),
          new Transition(State.RUNNING, Event.SHARE_MADE, State.STORING),
          new Transition(State.RUNNING, Event.SIGNED, State.COMPLETED),
          new Transition(State.RUNNING, Event.REFUSE, State.REFUSED),
          new Transition(State.RUNNING, Event.ABORT, State.ABORTED),
          new Transition(State.RUNNING, Event.DEADLINE, State.TIMED_OUT),
          new Transition(State.RUNNING, Event.CANCEL, State.CANCELLED),
          new Transition(State.RUNNING, Event.STOP, State.STOPPED),
          new Transition(State.COMBINING, Event.SIGNED, State.COMPLETED),
          new Transition(State.COMBINING, Event.ABORT, State.ABORTED),
          new Transition(State.COMBINING, Event.DEADLINE, State.TIMED_OUT),
          new Transition(State.COMBINING, Event.CANCEL, State.CANCELLED),
          new Transition(State.COMBINING, Event.STOP, State.STOPPED),
          new Transition(State.STORING, Event.SHARE_STORED, State.COMPLETED),
          new Transition(State.STORING, Event.REFUSE, State.REFUSED),
          new Transition(State.STORING, Event.STOP, State.STOPPED));

  private static final Map<State, Map<Event, State>> INDEX =
      TRANSITIONS.stream()
          .collect(
              Collectors.groupingBy(
                  Transition::from,
                  () -> new EnumMap<>(State.class),
                  Collectors.toMap(Transition::event, Transition::to)));

  private SessionLifecycle() {}

  /**
   * The state after an event.
   *
   * @throws IllegalStateException if the table has no such transition
   */
  public static State next(State state, Event event) {
    return find(state, event)
        .orElseThrow(
            () -> new IllegalStateException("a session that is " + state + " cannot " + event));
  }

  /** Whether the table has that transition. */
  public static boolean allows(State state, Event event) {
    return find(state, event).isPresent();
  }

  private static Optional<State> find(State state, Event event) {
    return Optional.ofNullable(INDEX.getOrDefault(state, Map.of()).get(event));
  }
}
