package io.coterie.messaging.redis;

import static io.coterie.messaging.redis.RedisLink.ascii;

import io.coterie.messaging.account.Device;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.queue.Delivery;
import io.coterie.messaging.queue.OnlineMessages;
import io.coterie.messaging.queue.OnlineQueue;
import io.coterie.messaging.queue.Presence;
import io.coterie.messaging.queue.QueuedMessage;
import io.coterie.messaging.redis.DeviceSignal.Claimed;
import io.coterie.messaging.redis.DeviceSignal.Online;
import io.coterie.messaging.redis.DeviceSignal.Stored;
import io.coterie.messaging.redis.RedisLink.Script;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Devices whose connections are spread over several replicas.
 *
 * <p>Each device has a channel, to which the replica that holds its connection is subscribed. An
 * online message is published there, and kept in a short list only while nobody is subscribed. A
 * new connection claims the device with a number higher than all before; a replica that holds a
 * lower one closes its connection. After each (re)subscription the claim is confirmed, and what
 * came meanwhile is fetched, so that nothing depends on Redis having been there all the time.
 */
public final class RedisDevices implements Presence, OnlineQueue {
  private static final Logger LOG = LoggerFactory.getLogger(RedisDevices.class);

  /** A claim may be forgotten after this: later ones have higher numbers all the same. */
  private static final Duration CLAIM_LIFE = Duration.ofDays(1);

  private final RedisLink link;
  private final RedisAccountChanges changes;
  private final OnlineMessages here;
  private final Clock clock;
  private final OnlineMessages.Limits limits;
  private final Map<DeviceAddress, DeviceClaim> holders = new ConcurrentHashMap<>();

  public RedisDevices(
      RedisLink link, RedisAccountChanges changes, Clock clock, OnlineMessages.Limits limits) {
    this.link = link;
    this.changes = changes;
    this.clock = clock;
    this.limits = limits;
    this.here = new OnlineMessages(clock, limits);
    changes.onRevoked(this::revokedElsewhere);
    link.subscriptionConnection().addListener(new Signals());
  }

  // ---- who is connected ----

  @Override
  public void connect(DeviceAddress device, Subscriber subscriber) {
    DeviceClaim holder = new DeviceClaim(subscriber);
    AtomicReference<@Nullable DeviceClaim> older = new AtomicReference<>();
    holders.compute(
        device,
        (key, before) -> {
          older.set(before);
          // Inside, so that subscribing and unsubscribing reach Redis in the order of the map.
          CompletionStage<?> subscribing =
              link.subscriptions().ssubscribe(DeviceKeys.channel(device));
          subscribing.whenComplete(
              (x, failure) -> {
                if (failure != null) {
                  holder.claimed.completeExceptionally(failure);
                }
              });
          return holder;
        });
    DeviceClaim displaced = older.get();
    if (displaced != null) {
      displace(device, displaced);
    }
    try {
      link.await(holder.claimed);
    } catch (RuntimeException e) {
      disconnect(device, subscriber);
      throw e;
    }
  }

  private void displace(DeviceAddress device, DeviceClaim holder) {
    holder.stopGathering().forEach(online -> keep(device, online));
    holder.claimed.complete(null);
    holder.subscriber.displaced();
  }

  @Override
  public void disconnect(DeviceAddress device, Subscriber subscriber) {
    holders.computeIfPresent(
        device,
        (key, holder) -> {
          if (holder.subscriber != subscriber) {
            return holder;
          }
          holder.claimed.complete(null);
          link.subscriptions().sunsubscribe(DeviceKeys.channel(device));
          return null;
        });
  }

  @Override
  public void storedAvailable(DeviceAddress device) {
    link.commands()
        .spublish(DeviceKeys.channel(device), DeviceSignal.STORED)
        .whenComplete(
            (x, failure) -> {
              DeviceClaim holder = failure == null ? null : holders.get(device);
              if (holder != null) {
                holder.subscriber.storedAvailable();
              }
            });
  }

  @Override
  public Set<DeviceAddress> connectedHere() {
    return Set.copyOf(holders.keySet());
  }

  @Override
  public boolean available() {
    return link.available();
  }

  @Override
  public void revoke(DeviceAddress device) {
    DeviceClaim holder = holders.get(device);
    if (holder != null) {
      holder.subscriber.revoked();
    }
    changes.revoke(device.aci());
  }

  @Override
  public void revoke(UUID aci) {
    forEachHolder(aci, Subscriber::revoked);
    changes.revoke(aci);
  }

  /** The word may be old and the connection new: the connection looks for itself. */
  private void revokedElsewhere(UUID aci) {
    forEachHolder(aci, Subscriber::credentialsChanged);
  }

  private void forEachHolder(UUID aci, Consumer<Subscriber> action) {
    holders.forEach(
        (device, holder) -> {
          if (device.aci().equals(aci)) {
            action.accept(holder.subscriber);
          }
        });
  }

  // ---- online messages ----

  @Override
  public void add(Delivery delivery) {
    Instant deadline = clock.instant().plus(limits.timeToLive());
    List<CompletionStage<?>> answers = new ArrayList<>(delivery.recipients().size());
    for (Delivery.Recipient recipient : delivery.recipients()) {
      DeviceAddress device = recipient.device();
      answers.add(
          link.run(
              Script.DELIVER,
              new byte[][] {
                DeviceKeys.channel(device),
                DeviceKeys.waiting(device),
                DeviceKeys.waitingBytes(device)
              },
              DeviceSignal.encode(new Online(delivery.online(recipient), deadline)),
              ascii(Long.toString(limits.timeToLive().toMillis())),
              ascii(Integer.toString(limits.messages())),
              ascii(Long.toString(limits.bytes()))));
    }
    link.await(answers);
  }

  @Override
  public Optional<QueuedMessage> take(DeviceAddress device) {
    return here.take(device);
  }

  @Override
  public void drop(DeviceAddress device) {
    here.drop(device);
    link.commands().unlink(DeviceKeys.waiting(device), DeviceKeys.waitingBytes(device));
  }

  @Override
  public void drop(UUID aci) {
    here.drop(aci);
    List<byte[]> keys = new ArrayList<>();
    for (int id = Device.PRIMARY_ID; id <= Device.MAX_ID; id++) {
      DeviceAddress device = new DeviceAddress(aci, id);
      keys.add(DeviceKeys.waiting(device));
      keys.add(DeviceKeys.waitingBytes(device));
    }
    link.commands().unlink(keys.toArray(byte[][]::new));
  }

  @Override
  public void sweep() {
    here.sweep();
  }

  @Override
  public long depth() {
    return here.depth();
  }

  // ---- what Redis says; its thread must not be held up ----

  private final class Signals extends RedisPubSubAdapter<byte[], byte[]> {
    @Override
    public void ssubscribed(byte[] shardChannel, long count) {
      DeviceKeys.device(shardChannel).ifPresent(RedisDevices.this::claim);
    }

    @Override
    public void smessage(byte[] shardChannel, byte[] message) {
      DeviceKeys.device(shardChannel).ifPresent(device -> received(device, message));
    }
  }

  private void claim(DeviceAddress device) {
    // Computed and not just read: the answer may come before the subscriber is in the map.
    DeviceClaim holder =
        holders.compute(
            device,
            (key, present) -> {
              if (present == null) {
                // Disconnected while Redis was away, and subscribed again with all others.
                link.subscriptions().sunsubscribe(DeviceKeys.channel(device));
              }
              return present;
            });
    if (holder == null || !holder.beginClaim()) {
      return;
    }
    CompletionStage<List<byte[]>> answer =
        link.run(
            Script.CLAIM,
            new byte[][] {
              DeviceKeys.channel(device),
              DeviceKeys.holder(device),
              DeviceKeys.waiting(device),
              DeviceKeys.waitingBytes(device)
            },
            ascii(Long.toString(holder.number())),
            ascii(holder.nonce),
            ascii(Long.toString(CLAIM_LIFE.toMillis())));
    answer.whenComplete(
        (result, failure) -> {
          if (failure == null) {
            claimed(device, holder, result);
          } else {
            LOG.warn("this replica could not claim a connection in Redis", failure);
            holder.stopGathering().forEach(online -> keep(device, online));
            holder.claimed.completeExceptionally(
                failure instanceof CompletionException e && e.getCause() != null
                    ? e.getCause()
                    : failure);
          }
        });
  }

  private void claimed(DeviceAddress device, DeviceClaim holder, List<byte[]> result) {
    long newest = Long.parseLong(new String(result.getFirst(), StandardCharsets.US_ASCII));
    if (!holder.claimed(newest)) {
      displace(device, holder);
      return;
    }
    for (byte[] waiting : result.subList(1, result.size())) {
      if (signal(waiting) instanceof Online online) {
        keep(device, online);
      }
    }
    holder.stopGathering().forEach(online -> keep(device, online));
    if (!holder.claimed.complete(null)) {
      // Confirmed after Redis was out of reach. A device that has just connected looks for messages
      // itself.
      holder.subscriber.onlineAvailable();
      holder.subscriber.storedAvailable();
    }
  }

  private void received(DeviceAddress device, byte[] message) {
    DeviceClaim holder = holders.get(device);
    switch (signal(message)) {
      case Online online -> {
        if (holder == null || !holder.putAside(online, limits)) {
          keep(device, online);
          if (holder != null) {
            holder.subscriber.onlineAvailable();
          }
        }
      }
      case Stored stored -> {
        if (holder != null) {
          holder.subscriber.storedAvailable();
        }
      }
      case Claimed other -> {
        if (holder != null && !other.nonce().equals(holder.nonce) && holder.heard(other.number())) {
          displace(device, holder);
        }
      }
      case null -> {}
    }
  }

  private void keep(DeviceAddress device, Online online) {
    here.add(device, online.message(), online.deadline());
  }

  private static @Nullable DeviceSignal signal(byte[] bytes) {
    try {
      return DeviceSignal.decode(bytes);
    } catch (IllegalArgumentException e) {
      LOG.warn("Redis sent something that this service did not write", e);
      return null;
    }
  }
}
