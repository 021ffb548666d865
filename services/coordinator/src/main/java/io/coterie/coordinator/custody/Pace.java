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
 * Pauses between sessions of one request that grow from one to the next, and end early when what is
 * waited for happens or the service stops.
 */
final class Pace {
  private static final Duration FIRST = Duration.ofMillis(50);
  private static final Duration LONGEST = Duration.ofSeconds(2);

  private final CompletableFuture<Void> stopping;
  private Duration next = FIRST;

  Pace(CompletableFuture<Void> stopping) {
    this.stopping = stopping;
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
    next = next.multipliedBy(2).compareTo(LONGEST) > 0 ? LONGEST : next.multipliedBy(2);
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
