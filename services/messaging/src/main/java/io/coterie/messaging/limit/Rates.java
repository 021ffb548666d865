package io.coterie.messaging.limit;

import io.coterie.messaging.limit.RateLimit.Rate;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Rates as {@code burst/perSecond}. The defaults let parties run many protocol rounds a second.
 *
 * @param connections new connections, for each address (of IPv6 its /64); of a client behind the
 *     trusted edge new WebSockets
 * @param registration attempts to register a number, for each requester
 * @param preKeys fetches of a target's prekeys, for each requester: an account, or the address of a
 *     client without credentials
 * @param messages messages, for each pair of sender and recipient
 * @param sealedMessages messages of unidentified senders, for each recipient
 * @param stories stories, for each recipient
 * @param anonymousBytes bytes of clients without credentials, for each address; more is not
 *     refused, but read later
 * @param changes uploads of keys and attributes, for each device
 */
public record Rates(
    @DefaultValue("400/100") Rate connections,
    @DefaultValue("10/0.1") Rate registration,
    @DefaultValue("200/10") Rate preKeys,
    @DefaultValue("5000/2000") Rate messages,
    @DefaultValue("50000/20000") Rate sealedMessages,
    @DefaultValue("60/1") Rate stories,
    @DefaultValue("67108864/33554432") Rate anonymousBytes,
    @DefaultValue("60/1") Rate changes) {
  /** With less, a single turn of a connection would make it wait for more than a second. */
  private static final int LEAST_BYTES = 64 << 10;

  public Rates {
    if (anonymousBytes.burst() < LEAST_BYTES || anonymousBytes.perSecond() < LEAST_BYTES) {
      throw new IllegalArgumentException(
          "coterie.messaging.rates.anonymous-bytes must be at least 65536/65536");
    }
  }
}
