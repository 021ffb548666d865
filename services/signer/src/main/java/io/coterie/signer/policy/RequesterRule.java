package io.coterie.signer.policy;

import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.order.NeededApprovals;
import io.coterie.trust.Glob;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The permissions of one requester at this party. Everything else is forbidden.
 *
 * @param keys names of keys, {@code keys/{key}}, and of groups, {@code groups/{group}}
 * @param mayCreateKeys whether it may create keys of those names, too
 * @param mayImportKeys whether it may have keys of those names taken over that exist already
 * @param mayRefreshKeys whether it may have their shares replaced
 * @param mayReshareKeys whether it may have others hold their shares, or fewer sign
 * @param mayCreateGroups whether it may have groups of those names made, and their later epochs,
 *     and say who their members are
 * @param mayOpenApprovals whether it may learn who made an approval of groups of those names
 * @param floor how widely the shares of those keys must be spread when one is made or reshared,
 *     also by another requester
 * @param payloads kinds that it may have signed
 * @param derivationPrefixes where below a key; a scheme without derivation has only the empty path
 * @param purposes patterns of the purposes that an intent may have
 * @param maxMessageBytes of a payload to sign
 * @param lapse when a session of its requests no longer keeps others from signing
 * @param approvals without which no key of this rule signs for it; null if it needs none
 */
public record RequesterRule(
    List<Glob> keys,
    Set<Scheme> schemes,
    boolean mayCreateKeys,
    boolean mayImportKeys,
    boolean mayRefreshKeys,
    boolean mayReshareKeys,
    boolean mayCreateGroups,
    boolean mayOpenApprovals,
    ShareFloor floor,
    Set<PayloadKind> payloads,
    List<PathPrefix> derivationPrefixes,
    List<Glob> purposes,
    int maxMessageBytes,
    Lapse lapse,
    @Nullable NeededApprovals approvals) {

  /** When a request may be signed in another session than one that this party contributed to. */
  public enum Lapse {
    /** After the session's deadline, without the parties that it waited for; or on their word. */
    AFTER_DEADLINE,
    /** Never: a request waits for its first session, and may stay without a signature. */
    NEVER
  }

  /**
   * @throws IllegalArgumentException if the requester could approve its requests itself
   */
  public RequesterRule {
    keys = List.copyOf(keys);
    schemes = Set.copyOf(schemes);
    payloads = Set.copyOf(payloads);
    derivationPrefixes = List.copyOf(derivationPrefixes);
    purposes = List.copyOf(purposes);
    if (approvals != null
        && mayCreateGroups
        && keys.stream().anyMatch(k -> k.matches(approvals.group()))) {
      throw new IllegalArgumentException(
          ("its requests need approvals of %s, and it may say who the members are: leave out"
                  + " may-create-groups, or the group's name from keys")
              .formatted(approvals.group()));
    }
  }

  /** Why the intent is forbidden, for people; empty if it is allowed. */
  public Optional<String> denial(VerifiedIntent intent) {
    if (!names(intent.key())) {
      return Optional.of("the requester may not use this key");
    }
    if (intent instanceof VerifiedIntent.OfGroup group) {
      return denial(group);
    }
    if (!schemes.contains(intent.scheme())) {
      return Optional.of("the requester may not use this scheme");
    }
    if (intent instanceof VerifiedIntent.Cancellation) {
      // Its purpose says why, and not what for; nothing is used of the key.
      return Optional.empty();
    }
    if (purposes.stream().noneMatch(p -> p.matches(intent.purpose()))) {
      return Optional.of("the purpose is not one of this requester's");
    }
    return switch (intent) {
      case VerifiedIntent.Signing signing -> denial(signing);
      case VerifiedIntent.KeyCreation creation ->
          mayCreateKeys ? floorDenial(creation) : Optional.of("the requester may not create keys");
      case VerifiedIntent.KeyImport taken ->
          mayImportKeys ? floorDenial(taken) : Optional.of("the requester may not import keys");
      case VerifiedIntent.KeyRefresh _ ->
          mayRefreshKeys ? Optional.empty() : Optional.of("the requester may not refresh keys");
      // It takes nothing but the requester's own request.
      case VerifiedIntent.Cancellation _ -> Optional.empty();
      case VerifiedIntent.OfGroup group -> denial(group);
      case VerifiedIntent.KeyReshare reshare ->
          mayReshareKeys ? floorDenial(reshare) : Optional.of("the requester may not reshare keys");
    };
  }

  /**
   * Why the shares of a key of this rule's may not be spread as the intent wants, whichever
   * requester asks; empty if they may, or if this rule lets its requester neither create, import
   * nor reshare keys of that name and scheme.
   */
  Optional<String> floorDenial(VerifiedIntent intent) {
    if (intent instanceof VerifiedIntent.GroupCreation group) {
      return mayCreateGroups && names(group.key())
          ? floor.denial(group.issuerThreshold(), group.issuers())
          : Optional.empty();
    }
    boolean concerned = names(intent.key()) && schemes.contains(intent.scheme());
    if (!(mayCreateKeys || mayImportKeys || mayReshareKeys) || !concerned) {
      return Optional.empty();
    }
    return switch (intent) {
      case VerifiedIntent.NewKey made -> floor.denial(made.threshold(), made.parties());
      case VerifiedIntent.KeyReshare reshare ->
          floor.denial(reshare.threshold(), reshare.parties());
      case VerifiedIntent.Signing _,
          VerifiedIntent.Cancellation _,
          VerifiedIntent.KeyRefresh _,
          VerifiedIntent.OfGroup _ ->
          Optional.empty();
    };
  }

  /**
   * A group has no scheme. A holder of its issuing key invents approvers: the floor is that of
   * keys.
   */
  private Optional<String> denial(VerifiedIntent.OfGroup group) {
    boolean opens = group instanceof VerifiedIntent.Opening;
    if (opens ? !mayOpenApprovals : !mayCreateGroups) {
      return Optional.of(
          opens ? "the requester may not open approvals" : "the requester may not create groups");
    }
    return purposes.stream().noneMatch(p -> p.matches(group.purpose()))
        ? Optional.of("the purpose is not one of this requester's")
        : floorDenial(group);
  }

  private boolean names(String key) {
    return keys.stream().anyMatch(k -> k.matches(key));
  }

  private Optional<String> denial(VerifiedIntent.Signing signing) {
    if (!payloads.contains(signing.payloadKind())) {
      return Optional.of(
          "the requester may not have a payload of kind "
              + signing.payloadKind().label()
              + " signed");
    }
    if (derivationPrefixes.stream().noneMatch(p -> p.matches(signing.derivationPath()))) {
      return Optional.of("the derivation path is not one of this requester's");
    }
    if (signing.payload().size() > maxMessageBytes) {
      return Optional.of("the payload is larger than this requester may have signed");
    }
    return Optional.empty();
  }
}
