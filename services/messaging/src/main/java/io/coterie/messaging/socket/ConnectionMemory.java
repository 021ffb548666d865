package io.coterie.messaging.socket;

import io.coterie.messaging.limit.Source;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Bytes that connections hold: incomplete messages, calls in progress, frames to be written. When
 * there is no room for all, the connection that holds most at the source that holds most is closed;
 * so nobody is closed because of others.
 */
final class ConnectionMemory {
  private static final Logger LOG = LoggerFactory.getLogger(ConnectionMemory.class);

  private final long maxBytes;
  private final Executor executor;

  // Guarded by this.
  private final Map<Source, Set<Account>> bySource = new HashMap<>();
  private long bytes;

  /**
   * @param maxBytes most bytes that all connections hold
   * @param executor where connections are closed
   */
  ConnectionMemory(long maxBytes, Executor executor) {
    this.maxBytes = maxBytes;
    this.executor = executor;
  }

  /**
   * The account of a new connection.
   *
   * @param close closes the connection
   */
  Account open(Source source, Runnable close) {
    return new Account(source, close);
  }

  /** Bytes that one connection holds. */
  final class Account {
    private final Source source;
    private final Runnable close;
    private long held;
    private boolean closed;

    private Account(Source source, Runnable close) {
      this.source = source;
      this.close = close;
    }

    /** The connection holds so many bytes more. Some connection is closed if there is no room. */
    void take(long more) {
      synchronized (ConnectionMemory.this) {
        if (closed || more == 0) {
          return;
        }
        if (held == 0) {
          bySource.computeIfAbsent(source, key -> new HashSet<>()).add(this);
        }
        held += more;
        bytes += more;
        while (bytes > maxBytes) {
          largest().evict();
        }
      }
    }

    /** The connection holds so many bytes less. */
    void release(long less) {
      synchronized (ConnectionMemory.this) {
        if (!closed && less > 0) {
          held -= less;
          bytes -= less;
          forgetIfEmpty();
        }
      }
    }

    /** The connection holds nothing any more. */
    void close() {
      synchronized (ConnectionMemory.this) {
        release(held);
        closed = true;
      }
    }

    private void evict() {
      LOG.atDebug().addKeyValue("bytes", held).log("no room: closing the largest connection");
      close();
      try {
        executor.execute(close);
      } catch (RejectedExecutionException e) {
        LOG.debug("the service has stopped and closed all connections");
      }
    }

    private void forgetIfEmpty() {
      if (held == 0) {
        bySource.computeIfPresent(
            source,
            (key, accounts) -> {
              accounts.remove(this);
              return accounts.isEmpty() ? null : accounts;
            });
      }
    }
  }

  private Account largest() {
    Set<Account> accounts = Set.of();
    long most = 0;
    for (Set<Account> ofSource : bySource.values()) {
      long sum = sum(ofSource);
      if (sum > most) {
        most = sum;
        accounts = ofSource;
      }
    }
    return accounts.stream()
        .max((a, b) -> Long.compare(a.held, b.held))
        .orElseThrow(() -> new IllegalStateException("bytes without a connection"));
  }

  private static long sum(Collection<Account> accounts) {
    return accounts.stream().mapToLong(account -> account.held).sum();
  }
}
