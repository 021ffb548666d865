package io.coterie.channel.signal;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.channel.telemetry.ChannelMetrics.Mode;
import io.coterie.channel.wire.Frame;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;

/** Cuts bodies into frames, and sends them once the keys of their recipients are there. */
final class Bodies {
  private final ChannelConfig config;
  private final KeyExchange exchange;
  private final Outbox outbox;
  private final GroupOutbox broadcasts;

  /** Numbers of chunked bodies; they begin anywhere, so that two processes' do not meet. */
  private final AtomicLong numbers = new AtomicLong(new SecureRandom().nextLong());

  Bodies(ChannelConfig config, KeyExchange exchange, Outbox outbox, GroupOutbox broadcasts) {
    this.config = config;
    this.exchange = exchange;
    this.outbox = outbox;
    this.broadcasts = broadcasts;
  }

  /** Sends one body to several peers in the configured mode. */
  CompletableFuture<Void> broadcast(List<Peer> to, byte[] body, SendOptions options) {
    Mode mode = Mode.of(config.sendMode());
    return switch (config.sendMode()) {
      case GROUP -> {
        List<byte[]> frames = frames(true, body);
        yield wiping(
            frames,
            exchange
                .when(to, Peer::offered, config.timing().establishWait())
                .thenCompose(
                    ready -> broadcasts.send(mode, exchange.senderKey(), to, frames, options)));
      }
      case PAIRWISE_SEQUENTIAL -> oneAfterAnother(mode, to, body, options);
      case NAMED_STORED -> oneAfterAnother(mode, to, body, options.asStored());
      case PAIRWISE_PARALLEL ->
          Outbox.all(
              to.stream().map(peer -> pairwise(mode, peer, frames(true, body), options)).toList());
    };
  }

  private CompletableFuture<Void> oneAfterAnother(
      Mode mode, List<Peer> to, byte[] body, SendOptions options) {
    CompletableFuture<Void> chain = CompletableFuture.completedFuture(null);
    for (Peer peer : to) {
      List<byte[]> frames = frames(true, body);
      chain = wiping(frames, chain.thenCompose(before -> pairwise(mode, peer, frames, options)));
    }
    return chain;
  }

  /** Sends one body to one peer. */
  CompletableFuture<Void> send(Peer peer, byte[] body, SendOptions options) {
    return pairwise(Mode.PAIRWISE, peer, frames(false, body), options);
  }

  private CompletableFuture<Void> pairwise(
      Mode mode, Peer peer, List<byte[]> frames, SendOptions options) {
    return wiping(
        frames,
        exchange
            .when(List.of(peer), Peer::established, config.timing().establishWait())
            .thenCompose(ready -> outbox.pairwise(mode, peer, frames, options)));
  }

  /** Wipes the frames once they have been sent, or will not be. */
  private static CompletableFuture<Void> wiping(List<byte[]> frames, CompletableFuture<Void> sent) {
    return sent.whenComplete(
        (done, failure) -> frames.forEach(frame -> Arrays.fill(frame, (byte) 0)));
  }

  private List<byte[]> frames(boolean broadcast, byte[] body) {
    int size = config.limits().chunk();
    int count = Frame.chunks(body.length, size);
    if (count <= 1) {
      return List.of(Frame.body(broadcast, body));
    }
    long number = numbers.getAndIncrement();
    List<byte[]> frames = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      frames.add(Frame.chunk(broadcast, number, i, size, body));
    }
    return frames;
  }
}
