package io.coterie.messaging.redis;

import static io.coterie.messaging.redis.RedisLink.ascii;

import io.coterie.messaging.account.AccountChanges;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells all replicas of changes of accounts. A change that Redis does not take is told when it is
 * back; a replica that misses it forgets what it has in memory soon anyway.
 */
public final class RedisAccountChanges implements AccountChanges, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RedisAccountChanges.class);
  private static final byte[] CHANNEL = ascii("coterie:accounts");
  private static final char CHANGED = 'A';
  private static final char REVOKED = 'R';

  /** Announcements kept while Redis is out of reach; a change is worth telling only once. */
  private static final int MAX_PENDING = 10_000;

  private final RedisLink link;
  private final Queue<byte[]> pending = new ConcurrentLinkedQueue<>();

  /** Forgetting waits for a load of the same account, which Redis' thread must not. */
  private final ExecutorService listening =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().name("messaging-account-changes").factory());

  private volatile Consumer<UUID> onChanged = id -> {};
  private volatile Consumer<UUID> onRevoked = aci -> {};

  public RedisAccountChanges(RedisLink link) {
    this.link = link;
    link.subscriptionConnection()
        .addListener(
            new RedisPubSubAdapter<byte[], byte[]>() {
              @Override
              public void message(byte[] channel, byte[] message) {
                if (Arrays.equals(channel, CHANNEL)) {
                  try {
                    listening.execute(() -> received(message));
                  } catch (RejectedExecutionException e) {
                    LOG.debug("the service stops, so nothing is in its memory for long");
                  }
                }
              }

              @Override
              public void subscribed(byte[] channel, long count) {
                tellPending();
              }
            });
    link.await(link.subscriptions().subscribe(CHANNEL));
  }

  private void received(byte[] message) {
    try {
      String text = new String(message, StandardCharsets.US_ASCII);
      UUID id = UUID.fromString(text.substring(1));
      switch (text.charAt(0)) {
        case CHANGED -> onChanged.accept(id);
        case REVOKED -> onRevoked.accept(id);
        default -> LOG.warn("an unknown announcement came through Redis");
      }
    } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
      LOG.warn("Redis sent something that this service did not write", e);
    }
  }

  @Override
  public boolean shared() {
    return true;
  }

  @Override
  public void announce(UUID id) {
    tell(ascii(CHANGED + id.toString()));
  }

  /** Tells the other replicas that a device of the account may no longer be who it was. */
  void revoke(UUID aci) {
    tell(ascii(REVOKED + aci.toString()));
  }

  private void tell(byte[] message) {
    link.commands()
        .publish(CHANNEL, message)
        .whenComplete(
            (x, failure) -> {
              if (failure != null && pending.size() < MAX_PENDING) {
                pending.add(message);
              }
            });
  }

  private void tellPending() {
    for (int left = pending.size(); left > 0; left--) {
      byte[] message = pending.poll();
      if (message != null) {
        tell(message);
      }
    }
  }

  @Override
  public void onChanged(Consumer<UUID> listener) {
    onChanged = listener;
  }

  void onRevoked(Consumer<UUID> listener) {
    onRevoked = listener;
  }

  @Override
  public void close() {
    listening.shutdown();
  }
}
