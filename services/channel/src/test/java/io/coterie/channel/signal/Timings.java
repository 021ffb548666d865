package io.coterie.channel.signal;

import io.coterie.channel.ChannelConfig;
import java.time.Duration;

/** Timing for tests that wait for a period to pass. */
public final class Timings {
  private Timings() {}

  static ChannelConfig.Timing heartbeat(Duration heartbeat) {
    return heartbeat(heartbeat, ChannelConfig.Timing.DEFAULT.establishWait());
  }

  static ChannelConfig.Timing heartbeat(Duration heartbeat, Duration establishWait) {
    ChannelConfig.Timing d = ChannelConfig.Timing.DEFAULT;
    return new ChannelConfig.Timing(
        d.connect(),
        d.request(),
        d.write(),
        establishWait,
        d.reconnectMin(),
        d.reconnectMax(),
        d.displaced(),
        d.keepAlive(),
        d.helloMin(),
        d.helloMax(),
        d.reassembly(),
        d.held(),
        d.senderKeyAge(),
        d.rotation(),
        d.maxRetryAfter(),
        d.preKeyCheck(),
        heartbeat);
  }

  /** Short waits for requests and keys, for a displaced connection and for one that is refused. */
  static ChannelConfig.Timing impatient() {
    ChannelConfig.Timing d = ChannelConfig.Timing.DEFAULT;
    return new ChannelConfig.Timing(
        d.connect(),
        Duration.ofSeconds(2),
        d.write(),
        Duration.ofMillis(300),
        d.reconnectMin(),
        Duration.ofMillis(500),
        Duration.ofMillis(500),
        d.keepAlive(),
        d.helloMin(),
        d.helloMax(),
        d.reassembly(),
        d.held(),
        d.senderKeyAge(),
        d.rotation(),
        d.maxRetryAfter(),
        d.preKeyCheck(),
        d.heartbeat());
  }

  /** Short pauses between what the timer sends by itself. */
  static ChannelConfig.Timing busy() {
    ChannelConfig.Timing d = ChannelConfig.Timing.DEFAULT;
    Duration period = Duration.ofMillis(100);
    return new ChannelConfig.Timing(
        d.connect(),
        d.request(),
        d.write(),
        d.establishWait(),
        d.reconnectMin(),
        d.reconnectMax(),
        d.displaced(),
        period,
        period,
        period,
        d.reassembly(),
        d.held(),
        d.senderKeyAge(),
        d.rotation(),
        d.maxRetryAfter(),
        period,
        period);
  }
}
