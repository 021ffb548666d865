package io.coterie.messaging.limit;

import com.github.benmanes.caffeine.cache.Ticker;
import io.coterie.messaging.account.DeviceAddress;
import java.util.UUID;

/** Every rate limit of the service. */
public final class RateLimits {
  /** Registrations of a number, by who asks for them. */
  public final RateLimit<NumberOf> registration;

  /** Fetches of a target's prekeys, by requester. */
  public final RateLimit<PreKeyFetch> preKeys;

  /** Messages of an identified sender to a recipient. */
  public final RateLimit<Pair> messages;

  /** Messages of unidentified senders, by recipient. */
  public final RateLimit<UUID> sealedMessages;

  /** Stories, which need no authorization, by recipient. */
  public final RateLimit<UUID> stories;

  /** Changes to a device's own keys and attributes. */
  public final RateLimit<DeviceAddress> changes;

  public record NumberOf(Source source, String number) {}

  public record PreKeyFetch(Source requester, UUID target) {}

  public record Pair(UUID sender, UUID recipient) {}

  public RateLimits(Rates rates, Ticker ticker) {
    this.registration = new RateLimit<>(rates.registration(), ticker);
    this.preKeys = new RateLimit<>(rates.preKeys(), ticker);
    this.messages = new RateLimit<>(rates.messages(), ticker);
    this.sealedMessages = new RateLimit<>(rates.sealedMessages(), ticker);
    this.stories = new RateLimit<>(rates.stories(), ticker);
    this.changes = new RateLimit<>(rates.changes(), ticker);
  }
}
