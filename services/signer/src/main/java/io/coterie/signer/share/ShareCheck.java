package io.coterie.signer.share;

import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Judges a plan against this party's share of the key, and against those it refuses to work with.
 */
public final class ShareCheck {
  private ShareCheck() {}

  /** Compares a plan with the share of the key it names. */
  public static void against(KeyShare share, SessionPlan plan) throws RefusedException {
    RefusedException.unless(
        plan.epoch() == share.epoch(),
        RefusalReason.REFUSAL_REASON_WRONG_EPOCH,
        "the key's epoch here is " + share.epoch() + ", not " + plan.epoch());
    RefusedException.unless(
        !share.left(),
        RefusalReason.REFUSAL_REASON_UNKNOWN_KEY,
        "this party has no share of the key since epoch " + share.epoch());
    agree(plan.protocol().scheme() == share.scheme(), "the key is for another scheme");
    SessionPlan.Request request = plan.request();
    agree(
        request == null
            || request.keyFingerprint().isEmpty()
            || request.keyFingerprint().equals(KeyFingerprint.of(share.keyPublic())),
        IntentProblem.KEY_FINGERPRINT_OTHER.text());
    SigningIntent toSign = request == null ? null : request.toSign();
    RefusedException.unless(
        toSign == null || toSign.getReshareEpoch() == share.reshareEpoch(),
        RefusalReason.REFUSAL_REASON_RESHARED,
        IntentProblem.RESHARE_EPOCH_OTHER.text());
    if (plan.work() instanceof SessionPlan.Work.Reshare reshare) {
      agree(reshare.current().equals(share.keyPublic()), "the key's public data are others");
      // Nobody destroys the shares of those who take no part: they must be too few to sign.
      List<Integer> leftBehind = new ArrayList<>(share.parties());
      leftBehind.removeAll(plan.partyIds());
      agree(
          leftBehind.size() < share.threshold(),
          "as many old shares would be left behind as can sign");
      return;
    }
    agree(plan.threshold() == share.threshold(), "the key's threshold is another one");
    for (Member party : plan.parties()) {
      agree(
          share.parties().contains(party.partyId()),
          "party " + party.partyId() + " holds no share of the key");
    }
    agree(
        plan.protocol().operation() != Protocol.Operation.REFRESH
            || plan.parties().size() == share.parties().size(),
        "new shares are for all parties of the key");
  }

  /**
   * Refuses to go on with a share that is not the one of its key any more. Another one of the epoch
   * may have taken its place, even of another key: the operator may have had this one forgotten.
   *
   * @param held the share of the key now
   * @param used the session that made the share which is used
   */
  public static void unchanged(KeyShare held, SessionId used) throws RefusedException {
    RefusedException.unless(
        held.session().equals(used),
        RefusalReason.REFUSAL_REASON_NOT_READY,
        "the share of the key is another one than at the start of the session");
  }

  /**
   * Compares a reshare in which this party only receives with all that it holds under the name: the
   * coordinator and the requester may mean another key, and what is received takes the place of
   * what is held. The rest is for the dealers to judge, of whom one is honest if the key is the
   * same. So a party that is at another session of the same epoch, or has left, is let in again.
   */
  public static void sameKey(List<KeyShare> held, SessionPlan.Work.Reshare reshare, Scheme scheme)
      throws RefusedException {
    for (KeyShare share : held) {
      RefusedException.unless(
          share.isOf(scheme, reshare.current()),
          RefusalReason.REFUSAL_REASON_KEY_EXISTS,
          "this party holds another key of the same name");
    }
  }

  /** Refuses what this party remembers never to do again. */
  public static void notExcluded(Set<Integer> excluded, SessionPlan plan) throws RefusedException {
    RefusedException.unless(
        !excluded.contains(KeyShareStore.EVERY_PARTY),
        RefusalReason.REFUSAL_REASON_KEY_FROZEN,
        "the key is frozen here");
    if (plan.protocol().operation().makesNextEpoch()) {
      // That sets up anew what the pair must not use any more.
      return;
    }
    RefusedException.unless(
        !excluded.contains(KeyShareStore.ITSELF),
        RefusalReason.REFUSAL_REASON_NEEDS_REFRESH,
        "this party's store went back to an earlier state: the key needs new shares");
    for (Member party : plan.parties()) {
      RefusedException.unless(
          !excluded.contains(party.partyId()),
          RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED,
          "party " + party.partyId() + " is excluded from this key here");
    }
  }

  /**
   * Refuses another session for the next epoch with parties that made too many of them fail: this
   * party keeps a share of each, so their number has a bound.
   */
  public static void notDecliners(Set<Integer> decliners, SessionPlan plan)
      throws RefusedException {
    RefusedException.unless(
        !decliners.contains(KeyShareStore.EVERY_PARTY),
        RefusalReason.REFUSAL_REASON_NOT_READY,
        "too many shares of the key are undecided here");
    for (Member party : plan.parties()) {
      RefusedException.unless(
          !decliners.contains(party.partyId()),
          RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED,
          "party " + party.partyId() + " has made too many refreshes of the key fail");
    }
  }

  private static void agree(boolean condition, String detail) throws RefusedException {
    RefusedException.unless(condition, RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, detail);
  }
}
