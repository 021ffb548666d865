package io.coterie.coordinator.custody.request;

import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Pauses between the steps of one request. Each is longer than the one before; a pause ends early
 * when the awaited event happens or this replica stops.
 */
public final class Pace {
  private final Stopping stopping;
  private final ReplicaTime time;
  private final Duration longest;
  private Duration next;

  private Pace(Stopping stopping, ReplicaTime time, Duration first, Duration longest) {
    this.stopping = stopping;
    this.time = time;
    this.next = first;
    this.longest = longest;
  }

  /** Pauses between sessions, and between attempts to store their end: 50 ms to 2 s. */
  public Pace(Stopping stopping, ReplicaTime time) {
    this(stopping, time, Duration.ofMillis(50), Duration.ofSeconds(2));
  }

  /** Pauses between looks at the work of another replica: 20 ms to 250 ms. */
  public static Pace ofLooks(Stopping stopping, ReplicaTime time) {
    return new Pace(stopping, time, Duration.ofMillis(20), Duration.ofMillis(250));
  }

  /** Pauses until a database that has not answered may answer again: 1 s to 8 s. */
  static Pace ofReturns(Stopping stopping, ReplicaTime time) {
    return new Pace(stopping, time, Duration.ofSeconds(1), Duration.ofSeconds(8));
  }

  /** Pauses for the next interval. */
  public void pause() throws InterruptedException {
    await(new CompletableFuture<>());
  }

  /** Pauses until one of the members can be reached. */
  public void pauseUntilReachable(SecureChannel channel, Collection<Member> members)
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
    if (!time.await(CompletableFuture.anyOf(event, stopping.event()), pause.toNanos())) {
      // The pause is over. Completing the event takes this pause off the list of what stops.
      event.complete(null);
    }
  }
}
