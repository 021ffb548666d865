package io.coterie.coordinator.api;

import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.Requester;
import io.coterie.trust.Glob;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Someone with a client certificate, and what the configuration lets it do.
 *
 * @param submitFor names of the requesters whose intents it may submit
 * @param readKeys which keys it may read, and signings of which keys: resource names in which
 *     {@code *} stands for any text
 * @param readSignings names of the requesters whose signings it may read, those that it submits for
 *     included; null: those of all
 */
public record Client(
    String name, Set<String> submitFor, Set<String> readKeys, @Nullable Set<String> readSignings) {
  /** Stands in a configuration for the signings of all requesters. */
  private static final String ALL = "*";

  public Client {
    submitFor = Set.copyOf(submitFor);
    readKeys = Set.copyOf(readKeys);
    readSignings = readSignings == null ? null : Set.copyOf(readSignings);
  }

  /**
   * A client of the configuration.
   *
   * @param readSignings requesters whose signings it may read besides those that it submits for;
   *     {@code *} for all
   * @throws IllegalArgumentException if a pattern stands where a name is meant, or fits no key
   */
  public static Client of(
      String name, Set<String> submitFor, Set<String> readKeys, Set<String> readSignings) {
    submitFor.forEach(each -> requireName(name, "submit-for", each));
    readSignings.stream()
        .filter(each -> !each.equals(ALL))
        .forEach(each -> requireName(name, "read-signings", each));
    try {
      readKeys.forEach(Glob::ofKeys);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("client " + name + ": " + e.getMessage(), e);
    }
    Set<String> all = new HashSet<>(readSignings);
    all.addAll(submitFor);
    return new Client(name, submitFor, readKeys, readSignings.contains(ALL) ? null : all);
  }

  private static void requireName(String client, String setting, String name) {
    if (!Requester.isName(name)) {
      throw new IllegalArgumentException(
          "client %s: %s has '%s', which is no name of a requester"
              .formatted(client, setting, name));
    }
  }

  /** Refuses intents of requesters this client does not speak for. */
  void requireMaySubmitFor(String requester) {
    if (!submitFor.contains(requester)) {
      throw new CustodyException(
          ErrorReason.CLIENT_NOT_ALLOWED, Map.of(StatusErrors.CAUSE, "submit_for"));
    }
  }

  /** Refuses before looking whether there is such a key. */
  void requireMayRead(String key) {
    if (readKeys.stream().noneMatch(glob -> new Glob(glob).matches(key))) {
      throw new CustodyException(
          ErrorReason.CLIENT_NOT_ALLOWED,
          Map.of(StatusErrors.CAUSE, "read_keys", StatusErrors.RESOURCE, key));
    }
  }

  /** Whether it may read the signings of that requester, of keys that it may read. */
  boolean mayReadSigningsOf(String requester) {
    return readSignings == null || readSignings.contains(requester);
  }
}
