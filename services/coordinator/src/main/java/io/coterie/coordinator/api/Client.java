package io.coterie.coordinator.api;

import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Someone with a client certificate, and what the configuration lets it do.
 *
 * @param submitFor names of the requesters whose intents it may submit
 * @param readKeys which keys, and signings of them, it may read: resource names in which {@code *}
 *     stands for any text
 */
public record Client(String name, Set<String> submitFor, Set<String> readKeys) {

  public Client {
    submitFor = Set.copyOf(submitFor);
    readKeys = Set.copyOf(readKeys);
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
    if (readKeys.stream().noneMatch(glob -> matches(glob, key))) {
      throw new CustodyException(
          ErrorReason.CLIENT_NOT_ALLOWED,
          Map.of(StatusErrors.CAUSE, "read_keys", StatusErrors.RESOURCE, key));
    }
  }

  private static boolean matches(String glob, String key) {
    String regex =
        java.util.Arrays.stream(glob.split("\\*", -1))
            .map(Pattern::quote)
            .collect(Collectors.joining(".*"));
    return Pattern.matches(regex, key);
  }
}
