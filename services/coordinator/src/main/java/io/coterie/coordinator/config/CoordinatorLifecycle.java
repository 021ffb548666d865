package io.coterie.coordinator.config;

import io.coterie.coordinator.channel.ChannelConnector;
import io.coterie.coordinator.custody.Keys;
import io.coterie.coordinator.custody.PresignatureMaker;
import io.coterie.coordinator.custody.Renewals;
import io.coterie.coordinator.custody.Signings;
import io.coterie.coordinator.session.Sessions;
import org.springframework.context.ApplicationListener;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.event.ContextClosedEvent;

/**
 * Starts with the channel and what was left unfinished; stops in the order that loses nothing: no
 * new work, then the gRPC server lets its calls end, then the sessions, then the channel.
 */
final class CoordinatorLifecycle
    implements SmartLifecycle, ApplicationListener<ContextClosedEvent> {
  /** Started before the gRPC server and stopped after it. */
  private static final int BEFORE_SERVERS = 0;

  private final ChannelConnector connector;
  private final Sessions sessions;
  private final Keys keys;
  private final Renewals renewals;
  private final Signings signings;
  private final PresignatureMaker maker;
  private volatile boolean running;

  CoordinatorLifecycle(
      ChannelConnector connector,
      Sessions sessions,
      Keys keys,
      Renewals renewals,
      Signings signings,
      PresignatureMaker maker) {
    this.connector = connector;
    this.sessions = sessions;
    this.keys = keys;
    this.renewals = renewals;
    this.signings = signings;
    this.maker = maker;
  }

  @Override
  public void start() {
    running = true;
    connector.open(
        sessions::receive,
        () -> {
          keys.resume();
          renewals.resume();
          signings.resume();
          maker.start();
        });
  }

  @Override
  public void onApplicationEvent(ContextClosedEvent event) {
    maker.stop();
    keys.stop();
    signings.stop();
  }

  @Override
  public void stop() {
    sessions.stop();
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
