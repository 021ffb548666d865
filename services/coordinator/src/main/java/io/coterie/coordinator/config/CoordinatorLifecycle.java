package io.coterie.coordinator.config;

import io.coterie.coordinator.channel.ChannelConnector;
import io.coterie.coordinator.custody.presignature.PresignatureMaker;
import io.coterie.coordinator.custody.request.Handover;
import io.coterie.coordinator.custody.request.Stopping;
import io.coterie.coordinator.custody.signing.Signings;
import io.coterie.coordinator.session.Sessions;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.springframework.context.ApplicationListener;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.event.ContextClosedEvent;

/**
 * Starts with the channel and what was left unfinished. Stops in the order that loses nothing: the
 * gRPC server takes no more calls and lets those it has end; after the drain time the rest is left
 * to the other replicas, and its callers are told to ask again; then the channel.
 */
final class CoordinatorLifecycle
    implements SmartLifecycle, ApplicationListener<ContextClosedEvent> {
  /** Started before the gRPC server and stopped after it. */
  private static final int BEFORE_SERVERS = 0;

  private final AtomicBoolean leaving = new AtomicBoolean();
  private final CountDownLatch left = new CountDownLatch(1);
  private final CountDownLatch served = new CountDownLatch(1);
  private final KeptKeys keptKeys;
  private final ChannelConnector connector;
  private final Sessions sessions;
  private final Stopping stopping;
  private final Signings signings;
  private final PresignatureMaker maker;
  private final Handover handover;
  private final Duration drain;
  private volatile boolean running;

  CoordinatorLifecycle(
      KeptKeys keptKeys,
      ChannelConnector connector,
      Sessions sessions,
      Stopping stopping,
      Signings signings,
      PresignatureMaker maker,
      Handover handover,
      Duration drain) {
    this.keptKeys = keptKeys;
    this.connector = connector;
    this.sessions = sessions;
    this.stopping = stopping;
    this.signings = signings;
    this.maker = maker;
    this.handover = handover;
    this.drain = drain;
  }

  @Override
  public void start() {
    running = true;
    keptKeys.restore();
    handover.start();
    connector.open(
        sessions::receive,
        () -> {
          handover.ready();
          maker.start();
        });
  }

  @Override
  public void onApplicationEvent(ContextClosedEvent event) {
    maker.stop();
    signings.endWatching();
    Thread.ofVirtual().name("drain").start(this::leaveAfterDrain);
  }

  private void leaveAfterDrain() {
    try {
      if (!served.await(drain.toNanos(), TimeUnit.NANOSECONDS)) {
        leave();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Ends what runs, and leaves it to the others. Once. */
  private void leave() {
    if (leaving.compareAndSet(false, true)) {
      try {
        stopping.begin();
        signings.endWatching();
        sessions.stop();
        handover.stop();
      } finally {
        left.countDown();
      }
    }
  }

  @Override
  public void stop() {
    served.countDown();
    leave();
    try {
      left.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    connector.close();
    running = false;
  }

  @Override
  public boolean isRunning() {
    return running;
  }

  @Override
  public int getPhase() {
    return BEFORE_SERVERS;
  }
}
