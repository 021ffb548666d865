package io.coterie.coordinator.custody;

import io.coterie.channel.Member;
import io.coterie.channel.SecureChannel;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Pauses between the steps of one request that grow from one to the next, and end early when what
 * is waited for happens or the service stops.
 */
final class Pace {
  private final CompletableFuture<Void> stopping;
  private final Duration longest;
  private Duration next;

  private Pace(CompletableFuture<Void> stopping, Duration first, Duration longest) {
    this.stopping = stopping;
    this.next = first;
    this.longest = longest;
  }

  /** Between sessions, and attempts to store their end. */
  Pace(CompletableFuture<Void> stopping) {
    this(stopping, Duration.ofMillis(50), Duration.ofSeconds(2));
  }

  /** Between looks at what another replica does. */
  static Pace ofLooks(CompletableFuture<Void> stopping) {
    return new Pace(stopping, Duration.ofMillis(20), Duration.ofMillis(250));
  }

  void pause() throws InterruptedException {
    await(new CompletableFuture<>());
  }

  /** Pauses until one of the members can be reached. */
  void pauseUntilReachable(SecureChannel channel, Collection<Member> members)
      throws InterruptedException {
    CompletableFuture<Void> reached = new CompletableFuture<>();
    for (Member member : members) {
      channel.established(List.of(member)).thenRun(() -> reached.complete(null));
    }
    await(reached);
  }

  private void await(CompletableFuture<Void> event) throws InterruptedException {
    Duration pause = next;
    next = next.multipliedBy(2).compareTo(longest) > 0 ? longest : next.multipliedBy(2);
    try {
      CompletableFuture.anyOf(event, stopping).get(pause.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      // The pause is over. Completing the event takes this pause off the list of what stops.
      event.complete(null);
    } catch (ExecutionException e) {
      throw new IllegalStateException("neither event fails", e);
    }
  }
}
