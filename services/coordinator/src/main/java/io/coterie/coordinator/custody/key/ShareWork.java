package io.coterie.coordinator.custody.key;

import io.coterie.coordinator.custody.key.KeyRecord.Holder;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Member;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;

/**
 * Shares of a key that all of its parties are to hold.
 *
 * @param key resource name
 * @param threshold with the new shares
 * @param parties that will hold a share, in ascending order of party id
 */
record ShareWork(
    Change change,
    String key,
    Scheme scheme,
    int threshold,
    List<Holder> parties,
    SignedIntent intent,
    Instant notAfter) {

  /** Generation of the shares that key generation makes. */
  private static final int FIRST_EPOCH = 1;

  private static final Duration IMPORT_TIME = Duration.ofSeconds(40);
  private static final Duration IMPORT_TIME_OF_PARTY = Duration.ofSeconds(8);

  ShareWork {
    parties = List.copyOf(parties);
  }

  /** The kind of work, with the key that it starts from. */
  sealed interface Change {}

  /** The shares of a new key. */
  record NewKey() implements Change {}

  /**
   * The shares of a key that existed already.
   *
   * @param shares as its owner has encrypted them, ascending; empty if they are not here any more
   */
  record Import(List<PartyBytes> shares) implements Change {
    Import {
      shares = List.copyOf(shares);
    }
  }

  /**
   * New shares for the same parties.
   *
   * @param from the key's public data of the epoch that is replaced
   */
  record Refresh(KeyPublic from) implements Change {}

  /**
   * New shares for other parties, or of another threshold.
   *
   * @param from the key's public data of the epoch that is replaced
   * @param dealers the parties of that epoch, in ascending order of party id
   */
  record Reshare(KeyPublic from, List<Holder> dealers) implements Change {
    Reshare {
      dealers = List.copyOf(dealers);
    }
  }

  /** The epoch that an order names: the first one, or the one that is replaced. */
  int epoch() {
    return switch (change) {
      case NewKey(), Import _ -> FIRST_EPOCH;
      case Refresh(KeyPublic from) -> from.getEpoch();
      case Reshare(KeyPublic from, List<Holder> _) -> from.getEpoch();
    };
  }

  /**
   * The least time of a session: each pair of an imported key computes for a second and more.
   *
   * @param attempt 0 for the first session of the request
   */
  Duration leastTime(int attempt) {
    return change instanceof Import
        ? AdaptiveTimeout.grown(
            IMPORT_TIME.plus(IMPORT_TIME_OF_PARTY.multipliedBy(parties.size())), attempt)
        : Duration.ZERO;
  }

  /** The reason to give when no session can succeed. */
  ErrorReason failure() {
    return switch (change) {
      case NewKey _, Import _ -> ErrorReason.KEY_CREATION_FAILED;
      case Refresh _ -> ErrorReason.REFRESH_FAILED;
      case Reshare _ -> ErrorReason.RESHARE_FAILED;
    };
  }

  /** The parties that deal in a reshare; else none. */
  List<Holder> dealers() {
    return change instanceof Reshare reshare ? reshare.dealers() : List.of();
  }

  /**
   * Whether parties use the shares as soon as all have stored them, even if the coordinator never
   * learns of it. Such work fails only once a party has shown that it holds no share of it.
   */
  boolean replacesShares() {
    return change instanceof Refresh || change instanceof Reshare;
  }

  /**
   * The order for one session.
   *
   * @param able dealers that can deal
   */
  SessionPlan.Work ofSession(Collection<Member> able) {
    return switch (change) {
      case NewKey() -> new SessionPlan.Work.Keygen();
      case Import(List<PartyBytes> shares) -> new SessionPlan.Work.Import(shares);
      case Refresh(KeyPublic from) -> new SessionPlan.Work.Refresh(from);
      case Reshare(KeyPublic from, List<Holder> _) ->
          new SessionPlan.Work.Reshare(
              from,
              able.stream().map(Member::partyId).toList(),
              parties.stream().map(Holder::partyId).toList());
    };
  }
}
