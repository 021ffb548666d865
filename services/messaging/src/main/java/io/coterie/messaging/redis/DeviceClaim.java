package io.coterie.messaging.redis;

import io.coterie.messaging.queue.OnlineMessages;
import io.coterie.messaging.queue.Presence.Subscriber;
import io.coterie.messaging.redis.DeviceSignal.Online;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** The claim of one connection of a device to this replica: whether the device is its own. */
final class DeviceClaim {
  final Subscriber subscriber;
  final String nonce = UUID.randomUUID().toString();

  /** Completed when the connection is the one of its device, and at the latest when it ends. */
  final CompletableFuture<@Nullable Void> claimed = new CompletableFuture<>();

  // Guarded by this.
  /** Number of the claim; 0 until it has been made. */
  private long number;

  /** Whether the first claim is under way. */
  private boolean claiming;

  /** The highest claim heard of another connection. */
  private long newestOther;

  /** Messages that came while the claim was under way, to be delivered after the waiting ones. */
  private @Nullable List<Online> early = new ArrayList<>();

  private long earlyBytes;

  DeviceClaim(Subscriber subscriber) {
    this.subscriber = subscriber;
  }

  synchronized long number() {
    return number;
  }

  /**
   * Whether to claim now, or to confirm the claim. Two connections of a device to this replica
   * subscribe twice, and both answers find the newer one: claiming twice, it would get two numbers,
   * and take the device away from another replica with the second while it keeps the first, so that
   * nobody had it.
   */
  synchronized boolean beginClaim() {
    if (claiming) {
      return false;
    }
    claiming = number == 0;
    if (early == null) {
      early = new ArrayList<>();
    }
    return true;
  }

  /** Whether the message was put aside, or dropped because too much has been. */
  synchronized boolean putAside(Online message, OnlineMessages.Limits limits) {
    if (early == null) {
      return false;
    }
    int size = message.message().envelope().getSerializedSize();
    if (early.size() < limits.messages() && earlyBytes + size <= limits.bytes()) {
      early.add(message);
      earlyBytes += size;
    }
    return true;
  }

  /** Whether the connection has been displaced. */
  synchronized boolean heard(long other) {
    newestOther = Math.max(newestOther, other);
    return number > 0 && newestOther > number;
  }

  /** Whether the connection is still the one of its device. */
  synchronized boolean claimed(long newest) {
    claiming = false;
    if (number == 0) {
      number = newest;
    }
    return number >= newest && number > newestOther;
  }

  synchronized List<Online> stopGathering() {
    List<Online> gathered = early == null ? List.of() : early;
    early = null;
    earlyBytes = 0;
    return gathered;
  }
}
