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

/** Cuts long bodies into frames, and sends them once the keys of their recipients are there. */
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
      case GROUP -> group(mode, to, body, options);
      case PAIRWISE_SEQUENTIAL -> oneAfterAnother(mode, to, body, options);
      case NAMED_STORED -> oneAfterAnother(mode, to, body, options.asStored());
      case PAIRWISE_PARALLEL ->
          SendQueue.all(
              to.stream().map(peer -> pairwise(mode, peer, true, body, options)).toList());
    };
  }

  private CompletableFuture<Void> group(
      Mode mode, List<Peer> to, byte[] body, SendOptions options) {
    CompletableFuture<Void> ready =
        exchange.when(to, Peer::offered, config.timing().establishWait());
    if (fitsOneFrame(body)) {
      byte[] copy = body.clone();
      return wiping(
          List.of(copy), ready.thenCompose(done -> broadcasts.send(mode, to, copy, options)));
    }
    List<byte[]> frames = chunks(true, body);
    return wiping(frames, ready.thenCompose(done -> broadcasts.send(mode, to, frames, options)));
  }

  private CompletableFuture<Void> oneAfterAnother(
      Mode mode, List<Peer> to, byte[] body, SendOptions options) {
    byte[] copy = body.clone(); // Its owner has it back before all have been sent to.
    CompletableFuture<Void> chain = CompletableFuture.completedFuture(null);
    for (Peer peer : to) {
      chain = chain.thenCompose(before -> pairwise(mode, peer, true, copy, options));
    }
    return wiping(List.of(copy), chain);
  }

  /** Sends one body to one peer. */
  CompletableFuture<Void> send(Peer peer, byte[] body, SendOptions options) {
    return pairwise(Mode.PAIRWISE, peer, false, body, options);
  }

  private CompletableFuture<Void> pairwise(
      Mode mode, Peer peer, boolean broadcast, byte[] body, SendOptions options) {
    CompletableFuture<Void> ready =
        exchange.when(List.of(peer), Peer::established, config.timing().establishWait());
    if (fitsOneFrame(body)) {
      byte[] copy = body.clone();
      return wiping(
          List.of(copy),
          ready.thenCompose(done -> outbox.pairwise(mode, peer, broadcast, copy, options)));
    }
    List<byte[]> frames = chunks(broadcast, body);
    return wiping(frames, ready.thenCompose(done -> outbox.pairwise(mode, peer, frames, options)));
  }

  /** Wipes content once it has been sent, or will not be. */
  private static CompletableFuture<Void> wiping(List<byte[]> frames, CompletableFuture<Void> sent) {
    return sent.whenComplete(
        (done, failure) -> frames.forEach(frame -> Arrays.fill(frame, (byte) 0)));
  }

  private boolean fitsOneFrame(byte[] body) {
    return body.length <= config.limits().chunk();
  }

  private List<byte[]> chunks(boolean broadcast, byte[] body) {
    int size = config.limits().chunk();
    int count = Frame.chunks(body.length, size);
    long number = numbers.getAndIncrement();
    List<byte[]> frames = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      frames.add(Frame.chunk(broadcast, number, i, size, body));
    }
    return frames;
  }
}
