package io.coterie.messaging.limit;

import java.time.Duration;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.unit.DataSize;

/**
 * The sizes and times that bound the service.
 *
 * @param content most bytes of one recipient's content
 * @param body most bytes of a request's body over HTTP
 * @param frame most bytes of a WebSocket message
 * @param buffers most bytes that clients hold: incomplete messages and bodies, calls in progress,
 *     answers to be written; WebSockets without credentials and calls over HTTP get at most half
 * @param inFlight most messages pushed to a device and not yet acknowledged
 * @param outbound most bytes of answers that wait to be written to a socket; a client that lets
 *     more pile up is disconnected
 * @param pushed most bytes of messages that wait to be written to all sockets; a socket gets a part
 *     of it, and further messages stay in their queues
 * @param loaded most memory of stored messages that are being read from the database
 * @param sendTimeout a client that takes longer to read a frame is disconnected
 * @param idle a WebSocket without traffic for so long is closed
 * @param onlineTimeToLive an online message not fetched in this time is dropped
 * @param onlineMessages most online messages that wait for a device
 * @param onlineBytes most bytes of online messages that wait for a device
 * @param onlineTotal most bytes of online messages that wait for all devices; the longest queues
 *     give way
 * @param storedMessages most stored messages that wait for a device; a sender that gives its name
 *     gets a part of them
 * @param storedBytes most bytes of stored messages that wait for a device, and of those the same
 *     part
 * @param storedTimeToLive a stored message not fetched in this time is dropped
 * @param storedWait how long messages may wait to be stored before senders that fill more than
 *     their share of the line are told to come back
 * @param storedPending most bytes of messages that wait to be stored
 * @param connections most WebSockets at once; anonymous ones get at most half. Each needs some 130
 *     kB
 * @param requests most connections at once that are not WebSockets: they are in their handshake, or
 *     make calls over HTTP; half of these places are the trusted edge's if there is one
 * @param cachedAccounts most accounts kept in memory, of some 1 kB each, and as many identifiers
 *     that are known to have none
 * @param drain how long requests in progress may take to end at shutdown
 */
public record Limits(
    @DefaultValue("96KB") DataSize content,
    @DefaultValue("762176B") DataSize body,
    @DefaultValue("512KB") DataSize frame,
    @DefaultValue("16MB") DataSize buffers,
    @DefaultValue("256") int inFlight,
    @DefaultValue("4MB") DataSize outbound,
    @DefaultValue("8MB") DataSize pushed,
    @DefaultValue("4MB") DataSize loaded,
    @DefaultValue("20s") Duration sendTimeout,
    @DefaultValue("90s") Duration idle,
    @DefaultValue("10s") Duration onlineTimeToLive,
    @DefaultValue("4096") int onlineMessages,
    @DefaultValue("16MB") DataSize onlineBytes,
    @DefaultValue("16MB") DataSize onlineTotal,
    @DefaultValue("10000") int storedMessages,
    @DefaultValue("32MB") DataSize storedBytes,
    @DefaultValue("30d") Duration storedTimeToLive,
    @DefaultValue("250ms") Duration storedWait,
    @DefaultValue("8MB") DataSize storedPending,
    @DefaultValue("384") int connections,
    @DefaultValue("192") int requests,
    @DefaultValue("10000") int cachedAccounts,
    @DefaultValue("10s") Duration drain) {
  public Limits {
    requirePositive(content, "limits.content");
    requirePositive(body, "limits.body");
    requirePositive(frame, "limits.frame");
    requirePositive(buffers, "limits.buffers");
    requirePositive(inFlight, "limits.in-flight");
    requirePositive(outbound, "limits.outbound");
    requirePositive(pushed, "limits.pushed");
    requirePositive(loaded, "limits.loaded");
    requirePositive(sendTimeout, "limits.send-timeout");
    requirePositive(idle, "limits.idle");
    requirePositive(onlineTimeToLive, "limits.online-time-to-live");
    requirePositive(onlineMessages, "limits.online-messages");
    requirePositive(onlineBytes, "limits.online-bytes");
    requirePositive(onlineTotal, "limits.online-total");
    requirePositive(storedMessages, "limits.stored-messages");
    requirePositive(storedBytes, "limits.stored-bytes");
    requirePositive(storedTimeToLive, "limits.stored-time-to-live");
    requirePositive(storedWait, "limits.stored-wait");
    requirePositive(storedPending, "limits.stored-pending");
    requirePositive(connections, "limits.connections");
    requirePositive(requests, "limits.requests");
    requirePositive(cachedAccounts, "limits.cached-accounts");
    requirePositive(drain, "limits.drain");
  }

  private static void requirePositive(Duration value, String key) {
    if (value.isZero() || value.isNegative()) {
      throw new IllegalArgumentException("coterie.messaging." + key + " must be positive");
    }
  }

  private static void requirePositive(DataSize value, String key) {
    requirePositive(value.toBytes(), key);
  }

  private static void requirePositive(long value, String key) {
    if (value <= 0) {
      throw new IllegalArgumentException("coterie.messaging." + key + " must be positive");
    }
  }
}
