package io.coterie.signer.policy;

import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Scheme;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * What one requester may have this party do. What is not allowed is forbidden.
 *
 * @param keys names of keys, {@code keys/{key}}
 * @param mayCreateKeys whether it may create keys of those names, too
 * @param purposes what an intent may say it is for
 * @param maxMessageBytes of a message to sign
 */
public record RequesterRule(
    List<Glob> keys,
    Set<Scheme> schemes,
    boolean mayCreateKeys,
    List<Glob> purposes,
    int maxMessageBytes) {

  public RequesterRule {
    keys = List.copyOf(keys);
    schemes = Set.copyOf(schemes);
    purposes = List.copyOf(purposes);
  }

  /** Why the intent is forbidden, for people; empty if it is allowed. */
  public Optional<String> denial(VerifiedIntent intent) {
    if (keys.stream().noneMatch(k -> k.matches(intent.key()))) {
      return Optional.of("the requester may not use this key");
    }
    if (!schemes.contains(intent.scheme())) {
      return Optional.of("the requester may not use this scheme");
    }
    if (purposes.stream().noneMatch(p -> p.matches(intent.purpose()))) {
      return Optional.of("the purpose is not one of this requester's");
    }
    return switch (intent) {
      case VerifiedIntent.Signing signing when signing.payload().size() > maxMessageBytes ->
          Optional.of("the message is larger than this requester may have signed");
      case VerifiedIntent.Signing _ -> Optional.empty();
      case VerifiedIntent.KeyCreation _ ->
          mayCreateKeys ? Optional.empty() : Optional.of("the requester may not create keys");
      case VerifiedIntent.KeyRefresh _ ->
          mayCreateKeys ? Optional.empty() : Optional.of("the requester may not refresh keys");
    };
  }
}
