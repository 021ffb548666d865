package io.coterie.messaging.socket;

import java.util.concurrent.atomic.AtomicReference;

/**
 * The turns in which one WebSocket is read. At most one waits or goes on, so that two threads never
 * wait for each other to read one connection.
 */
final class ReadingTurns {
  private enum State {
    NONE,
    /** A turn waits. */
    WAITING,
    /** A turn goes on. */
    READING,
    /** A turn goes on, and more has come meanwhile. */
    READING_AND_MORE
  }

  private final AtomicReference<State> state = new AtomicReference<>(State.NONE);

  /** More has come: whether the connection has to wait for a turn. Otherwise it has one. */
  boolean await() {
    State before =
        state.getAndUpdate(
            now ->
                switch (now) {
                  case NONE, WAITING -> State.WAITING;
                  case READING, READING_AND_MORE -> State.READING_AND_MORE;
                });
    return before == State.NONE;
  }

  void begin() {
    state.set(State.READING);
  }

  /**
   * @param more whether the turn has left something unread
   * @return whether there is another turn
   */
  boolean end(boolean more) {
    State next =
        state.updateAndGet(
            now -> more || now == State.READING_AND_MORE ? State.WAITING : State.NONE);
    return next == State.WAITING;
  }
}
