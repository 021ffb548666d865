package io.coterie.signer.storage;

import io.coterie.signer.claim.OutsideCounter;
import java.io.IOException;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The counter outside the store, and whether it follows. Thread-safe. */
final class NotedCounter {
  private static final Logger log = LoggerFactory.getLogger(NotedCounter.class);

  private final OutsideCounter counter;
  private long noted;
  private volatile String problem = "";

  NotedCounter(OutsideCounter counter) {
    this.counter = counter;
  }

  /**
   * The number at the start.
   *
   * @throws StoreException if it cannot be read: the party cannot know then that its store is whole
   */
  synchronized long read() {
    try {
      noted = counter.read();
      return noted;
    } catch (IOException e) {
      throw new StoreException("the counter outside the store cannot be read", e);
    }
  }

  /** Raises it to claims that are on disk. The next call tries again if that fails. */
  synchronized void follow(long claims) {
    if (claims <= noted) {
      return;
    }
    try {
      counter.raise(claims);
      noted = claims;
      problem = "";
    } catch (IOException e) {
      if (problem.isEmpty()) {
        log.error("the counter outside the store does not follow", e);
      }
      problem = "the counter outside the store does not follow: " + e.getMessage();
    }
  }

  /** One line that says why it does not follow; empty if it does. */
  Optional<String> problem() {
    return Optional.of(problem).filter(text -> !text.isEmpty());
  }
}
