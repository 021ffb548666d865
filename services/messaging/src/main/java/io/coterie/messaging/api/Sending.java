package io.coterie.messaging.api;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import io.coterie.messaging.account.Account;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.account.ServiceIdentifier;
import io.coterie.messaging.limit.RateLimits;
import io.coterie.messaging.queue.Delivery;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.queue.MessageQueue.QueueFullException;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.signal.Envelope;
import java.nio.ByteBuffer;
import java.time.Clock;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Steps that sending to one account and sending to many have in common. */
public final class Sending {
  private static final Logger LOG = LoggerFactory.getLogger(Sending.class);

  /** The last moment that every client can represent. */
  static final long MAX_TIMESTAMP_MS = 8_640_000_000_000_000L;

  private final MessageQueue queue;
  private final RateLimits rates;
  private final MessagingMetrics metrics;
  private final long maxContentBytes;
  private final Clock clock;

  /**
   * @param maxContentBytes most bytes of one recipient's content
   */
  public Sending(
      MessageQueue queue,
      RateLimits rates,
      MessagingMetrics metrics,
      long maxContentBytes,
      Clock clock) {
    this.queue = queue;
    this.rates = rates;
    this.metrics = metrics;
    this.maxContentBytes = maxContentBytes;
    this.clock = clock;
  }

  /** Refuses content that is too large, with 413. */
  void requireContentSize(long bytes) {
    if (bytes > maxContentBytes) {
      throw ApiException.tooLarge();
    }
  }

  void takeRate(Optional<Authenticated> sender, Account recipient, boolean story) {
    if (story) {
      rates.stories.take(recipient.aci());
    } else if (sender.isPresent()) {
      rates.messages.take(new RateLimits.Pair(sender.get().account().aci(), recipient.aci()));
    } else {
      rates.sealedMessages.take(recipient.aci());
    }
  }

  Envelope.Builder envelope(
      ServiceIdentifier destination,
      long timestamp,
      boolean online,
      boolean urgent,
      boolean story) {
    return Envelope.newBuilder()
        .setClientTimestamp(timestamp)
        .setServerTimestamp(clock.millis())
        .setDestination(destination.toString())
        .setDestinationServiceId(UnsafeByteOperations.unsafeWrap(destination.toBytes()))
        .setEphemeral(online)
        .setUrgent(urgent)
        .setStory(story);
  }

  static Envelope.Builder withGuid(Envelope.Builder envelope) {
    UUID guid = UUID.randomUUID();
    return envelope
        .setGuid(guid.toString())
        .setServerGuid(
            ByteString.copyFrom(
                ByteBuffer.allocate(16)
                    .putLong(guid.getMostSignificantBits())
                    .putLong(guid.getLeastSignificantBits())
                    .flip()));
  }

  /**
   * Hands a message over to the queues of its recipients.
   *
   * @return completed when it is where it waits, with the recipients whose queues are full; fails
   *     if those of all are
   */
  CompletableFuture<Set<DeviceAddress>> enqueue(
      Route.Call call,
      boolean online,
      byte @Nullable [] sharedBody,
      List<Delivery.Recipient> recipients) {
    Delivery delivery =
        new Delivery(
            online,
            sharedBody,
            recipients,
            call.trace().map(TraceContext::traceparent).orElse(null));
    return queue
        .enqueue(delivery, call.source())
        .thenApply(
            full -> {
              if (!full.isEmpty() && full.size() == recipients.size()) {
                throw new QueueFullException();
              }
              metrics.fanout(recipients.size() - full.size());
              LOG.atDebug()
                  .addKeyValue("devices", recipients.size())
                  .addKeyValue("online", online)
                  .log("message accepted");
              return full;
            });
  }
}
