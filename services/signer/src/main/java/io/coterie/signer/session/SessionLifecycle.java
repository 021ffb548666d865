package io.coterie.signer.session;

import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * The life of a session at this party, as a table of state, event, next state. A step that is not
 * in the table is illegal and says so.
 */
public final class SessionLifecycle {

  /** Where a session is. */
  public enum State {
    RECEIVED("the order has come; nothing of it runs yet, and it may wait for this party's start"),
    WAITING_FOR_KEY("the order is good, but the key is still provisional here"),
    CLAIMING("the claim is on its way to the disk; nothing has been sent"),
    RUNNING("the core runs"),
    COMBINING("this party has sent its last message and stays only to see the result"),
    STORING("a new share is on its way to the disk"),
    EXCLUDING("the core ended the run, and that a party is excluded is on its way to the disk"),
    COMPLETED("the signature was seen, or the share or presignature is kept and reported"),
    REPEATED("the request has a share already: its report was sent again, nothing was run"),
    REFUSED("it was not started, or its result may not be kept; the reason was reported"),
    ABORTED("the core ended the run; cause and culprits were reported"),
    TIMED_OUT("the deadline passed; the missing parties were reported as suspects"),
    CANCELLED(
        "by the coordinator that ordered it, by a newer order for the same, or because another"
            + " party takes no part"),
    CONTRIBUTED(
        "this party has sent its last message, and needs nothing of the others or finds too many"
            + " waiting for their result already"),
    STOPPED("the process ended first");

    private final String text;

    State(String text) {
      this.text = text;
    }

    /** One line for people. */
    public String text() {
      return text;
    }

    /** Nothing happens after it. */
    public boolean isFinal() {
      return TRANSITIONS.stream().noneMatch(t -> t.from() == this);
    }

    /** As in metrics and the audit trail: {@code timed_out}. */
    public String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** An event of a session. */
  public enum Event {
    CHECKED("order, intent and policy agree, and the key can be used"),
    KEY_PROVISIONAL("the same, but the key is not active yet"),
    KEY_ACTIVE("the awaited key became active"),
    SHARE_EXISTS("a share made by this very request exists"),
    CLAIMED("the claim is on disk"),
    LAST_SENT("only peers' messages are missing now"),
    LAST_SENT_UNOBSERVED(
        "the same, but this party needs none of them, or too many sessions wait for theirs"),
    SHARE_MADE("key generation made a share"),
    SHARE_STORED("the share is on disk"),
    SIGNED("the signature is complete"),
    PRESIGNED("a presignature is in the pool"),
    REFUSE("something speaks against it"),
    EXCLUDE("the core ended the run, and a party must be left out from now on"),
    ABORT("the core ended the run without a result"),
    DEADLINE("the order's deadline passed"),
    CANCEL("nobody wants the result any more"),
    STOP("the process ends");

    private final String text;

    Event(String text) {
      this.text = text;
    }

    /** One line for people. */
    public String text() {
      return text;
    }
  }

  /** One line of the table. */
  public record Transition(State from, Event event, State to) {}

  /** Hears of every transition of a session, in the session's lane. */
  @FunctionalInterface
  public interface Observer {
    void moved(State from, Event event, State to);
  }

  /** The table. */
  public static final List<Transition> TRANSITIONS =
      List.of(
          new Transition(State.RECEIVED, Event.CHECKED, State.CLAIMING),
          new Transition(State.RECEIVED, Event.KEY_PROVISIONAL, State.WAITING_FOR_KEY),
          new Transition(State.RECEIVED, Event.SHARE_EXISTS, State.REPEATED),
          new Transition(State.RECEIVED, Event.REFUSE, State.REFUSED),
          new Transition(State.RECEIVED, Event.DEADLINE, State.TIMED_OUT),
          new Transition(State.RECEIVED, Event.CANCEL, State.CANCELLED),
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
          new Transition(State.RUNNING, Event.PRESIGNED, State.COMPLETED),
          new Transition(State.RUNNING, Event.REFUSE, State.REFUSED),
          new Transition(State.RUNNING, Event.EXCLUDE, State.EXCLUDING),
          new Transition(State.RUNNING, Event.ABORT, State.ABORTED),
          new Transition(State.RUNNING, Event.DEADLINE, State.TIMED_OUT),
          new Transition(State.RUNNING, Event.CANCEL, State.CANCELLED),
          new Transition(State.RUNNING, Event.STOP, State.STOPPED),
          new Transition(State.COMBINING, Event.SIGNED, State.COMPLETED),
          new Transition(State.COMBINING, Event.EXCLUDE, State.EXCLUDING),
          new Transition(State.COMBINING, Event.ABORT, State.ABORTED),
          new Transition(State.COMBINING, Event.DEADLINE, State.TIMED_OUT),
          new Transition(State.COMBINING, Event.CANCEL, State.CANCELLED),
          new Transition(State.COMBINING, Event.STOP, State.STOPPED),
          new Transition(State.STORING, Event.SHARE_STORED, State.COMPLETED),
          new Transition(State.STORING, Event.REFUSE, State.REFUSED),
          new Transition(State.STORING, Event.STOP, State.STOPPED),
          new Transition(State.EXCLUDING, Event.ABORT, State.ABORTED),
          new Transition(State.EXCLUDING, Event.STOP, State.STOPPED));

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
