package io.coterie.channel;

import io.coterie.trust.Member;
import org.jspecify.annotations.Nullable;

/**
 * A message whose sender the channel has proved to be a pinned member.
 *
 * @param sender the member that sent it
 * @param body as given to {@code broadcast} or {@code send}; the receiver owns the array
 * @param broadcast whether it came under the sender's sender key (or was marked as a broadcast in a
 *     pairwise mode)
 * @param receivedNanos {@link System#nanoTime()} when it came off the socket
 * @param traceparent W3C trace context of the sending, if any
 */
public record InboundMessage(
    Member sender,
    byte[] body,
    boolean broadcast,
    long receivedNanos,
    @Nullable String traceparent) {}
