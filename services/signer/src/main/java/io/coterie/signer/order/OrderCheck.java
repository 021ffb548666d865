package io.coterie.signer.order;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Timestamp;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.ExactProtocol;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Checks an order before this party believes it. The coordinator is trusted with nothing:
 * everything that matters must agree with what the requester signed and with what this party knows
 * itself. Pure functions.
 */
public final class OrderCheck {
  /** Bytes of {@code Order.coordinator_nonce}. */
  static final int NONCE_BYTES = 32;

  /** Bytes of {@code Order.presignature_id}. */
  public static final int PRESIGNATURE_ID_BYTES = 32;

  /** Bytes of {@code Order.coordinator_incarnation}. */
  private static final int INCARNATION_BYTES = 16;

  /** Parties of a protocol of pairs. */
  private static final int PAIR = 2;

  private static final String OTHER_PARTIES = "the order and the intent name different parties";

  /** 9999-12-31T23:59:59Z, the last second of a protobuf timestamp. */
  private static final long MAX_SECONDS = 253_402_300_799L;

  private final Roster roster;
  private final Member self;
  private final SessionLimits limits;

  public OrderCheck(Roster roster, Member self, SessionLimits limits) {
    this.roster = roster;
    this.self = self;
    this.limits = limits;
  }

  /** Decodes an order and checks its form. */
  public static Order parse(ByteString bytes) throws RefusedException {
    RefusedException.unless(
        bytes.size() <= SessionLimits.MAX_ORDER_BYTES,
        RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
        "the order is too large");
    Order order;
    try {
      order = Order.parseFrom(bytes);
    } catch (InvalidProtocolBufferException e) {
      throw malformed("the order does not decode");
    }
    require(order.getUnknownFields().asMap().isEmpty(), "the order has unknown fields");
    require(order.getCoordinatorNonce().size() == NONCE_BYTES, "the nonce does not have 32 bytes");
    Protocol protocol =
        Protocol.of(order.getProtocol())
            .orElseThrow(() -> malformed("the protocol is not known here"));
    Protocol.Operation operation = protocol.operation();
    require(IntentVerifier.isKeyName(order.getKey()), "the key's name is malformed");
    require(order.getEpoch() >= 1, "the epoch is not a positive number");
    boolean presigning = operation == Protocol.Operation.PRESIGN;
    require(presigning || order.hasSignedIntent(), "the order has no intent");
    require(!presigning || !order.hasSignedIntent(), "presigning is not for an intent");
    require(
        order.getPresignatureId().size()
            == (operation == Protocol.Operation.SIGN_PRESIGNED ? PRESIGNATURE_ID_BYTES : 0),
        "the presignature id does not have the bytes that the protocol needs");
    int presignatures = order.getPresignatureCount();
    require(
        presigning
            ? presignatures >= 1 && presignatures <= protocol.maxBatch()
            : presignatures == 0,
        "the number of presignatures is not one that the protocol makes in a session");
    int blocks = order.getMessageBlocks();
    require(
        presigning && protocol.isOfPairs()
            ? blocks >= 1 && blocks <= ExactProtocol.MAX_BLOCKS
            : blocks == 0,
        "the number of blocks is not that of a message to be signed, or not for this protocol");
    require(
        presigning || order.getDerivationPathCount() == 0,
        "the order has a derivation path, which belongs into the intent");
    require(
        presigning || !order.hasTaproot(),
        "the order has a Taproot tweak, which belongs into the intent");
    require(
        order.getCoordinatorIncarnation().size() == (presigning ? INCARNATION_BYTES : 0),
        "the coordinator's incarnation does not have 16 bytes, or is not for this protocol");
    require(
        KeyTarget.of(order).isWellFormed(), "the root of the Taproot tweak does not have 32 bytes");
    require(
        order.getDerivationPathCount() <= ExtendedPublicKey.MAX_DEPTH
            && order.getDerivationPathList().stream().allMatch(number -> number >= 0),
        "the derivation path is too long or hardened");
    require(
        operation.signs() || order.getApprovalsCount() == 0, "approvals are for a signature alone");
    require(
        IntentVerifier.areApprovals(order.getApprovalsList()),
        "the order has more than 32 approvals, or one that does not have 416 bytes");
    require(order.hasDeadline() && isValid(order.getDeadline()), "the order has no valid deadline");
    List<Integer> set = order.getSigningSetList();
    require(
        !set.isEmpty() && set.size() <= SessionLimits.MAX_PARTIES,
        "the signing set does not have 1 to 20 parties");
    require(isAscending(set), "the signing set is not in ascending order of party ids");
    boolean resharing = operation == Protocol.Operation.RESHARE;
    require(
        resharing == order.hasKeyPublic() && resharing == (order.getDealersCount() > 0),
        "dealers and public data are for a reshare, which needs them");
    require(
        isAscending(order.getDealersList()), "the dealers are not in ascending order of party ids");
    require(
        operation == Protocol.Operation.IMPORT || !order.hasImported(),
        "shares of an imported key are for its import");
    require(
        !(presigning || operation.signs()) || !protocol.isOfPairs() || set.size() == PAIR,
        "with a key of this scheme two parties sign");
    require(
        order.getThreshold() >= 1 && order.getThreshold() <= set.size(),
        "the threshold is not 1 to the size of the signing set");
    return order;
  }

  private static boolean isAscending(List<Integer> parties) {
    int before = 0;
    for (int party : parties) {
      if (party <= before) {
        return false;
      }
      before = party;
    }
    return true;
  }

  /**
   * Compares an order with what the requester signed and with the roster.
   *
   * @param intent null for presigning, which nobody asks for
   * @param now this party's clock
   */
  public SessionPlan plan(SessionId id, Order order, @Nullable VerifiedIntent intent, Instant now)
      throws RefusedException {
    Protocol protocol = Protocol.of(order.getProtocol()).orElseThrow(() -> malformed("protocol"));
    List<Member> parties = members(order);
    KeyTarget target = KeyTarget.of(order);
    if (intent != null) {
      agree(
          intent.installation().equals(roster.installation()),
          IntentProblem.INSTALLATION_OTHER.text());
      agree(order.getKey().equals(intent.key()), "the order and the intent name different keys");
      agree(
          protocol.scheme() == intent.scheme(), "the order and the intent name different schemes");
      switch (intent) {
        case VerifiedIntent.Signing signing -> {
          agree(
              protocol.operation().signs(),
              "the intent asks for a signature, the protocol makes none");
          agree(
              signing.intent().hasApprovers() || order.getApprovalsCount() == 0,
              "the order has approvals, and the intent names no approvers");
          target = signing.target();
        }
        case VerifiedIntent.NewKey creation -> {
          agree(
              protocol.operation()
                  == (creation instanceof VerifiedIntent.KeyImport
                      ? Protocol.Operation.IMPORT
                      : Protocol.Operation.KEYGEN),
              "the intent asks for a key that the protocol does not make");
          agree(order.getThreshold() == creation.threshold(), "the thresholds differ");
          agree(order.getSigningSetList().equals(ids(creation.parties())), OTHER_PARTIES);
          RefusedException.unless(
              order.getEpoch() == 1,
              RefusalReason.REFUSAL_REASON_WRONG_EPOCH,
              "a new key has epoch 1");
        }
        case VerifiedIntent.KeyRefresh refresh -> {
          agree(
              protocol.operation() == Protocol.Operation.REFRESH,
              "the intent asks for new shares, the protocol makes none");
          agree(order.getEpoch() == refresh.epoch(), "the epochs differ");
        }
        case VerifiedIntent.Cancellation _ ->
            throw malformed("the intent cancels a request: no session serves it");
        case VerifiedIntent.OfGroup _ ->
            throw malformed("the intent is about a group: no order about a key serves it");
        case VerifiedIntent.KeyReshare reshare -> {
          agree(
              protocol.operation() == Protocol.Operation.RESHARE,
              "the intent asks for shares for other parties, the protocol makes none");
          agree(order.getEpoch() == reshare.epoch(), "the epochs differ");
          agree(order.getThreshold() == reshare.threshold(), "the thresholds differ");
        }
      }
    }
    // A clock that runs ahead of the coordinator's must not leave a session without any time. But
    // when a random signature cannot come about any more, all its parties must know.
    Instant least = now.plus(protocol.signsAtRandom() ? Duration.ZERO : limits.clockSkew());
    Instant deadline = instant(order.getDeadline());
    Instant end = deadline.isBefore(least) ? least : deadline;
    return new SessionPlan(
        id,
        protocol,
        order.getKey(),
        order.getEpoch(),
        order.getThreshold(),
        parties,
        intent == null ? null : SessionPlan.Request.of(intent, order.getApprovalsList()),
        target,
        work(protocol, order, intent),
        end);
  }

  private SessionPlan.Work work(Protocol protocol, Order order, @Nullable VerifiedIntent intent)
      throws RefusedException {
    return switch (protocol.operation()) {
      case KEYGEN -> new SessionPlan.Work.Keygen();
      case IMPORT -> {
        if (!(intent instanceof VerifiedIntent.KeyImport imported)) {
          throw malformed("an import needs the intent of one");
        }
        yield new SessionPlan.Work.Import(share(order, imported), imported.publicKey());
      }
      case SIGN -> new SessionPlan.Work.Sign();
      case SIGN_PRESIGNED -> new SessionPlan.Work.SignPresigned(order.getPresignatureId());
      case PRESIGN ->
          new SessionPlan.Work.Presign(
              order.getPresignatureCount(),
              order.getCoordinatorIncarnation(),
              order.getMessageBlocks());
      case REFRESH -> new SessionPlan.Work.Refresh();
      case RESHARE -> {
        if (!(intent instanceof VerifiedIntent.KeyReshare reshare)) {
          throw malformed("a reshare needs the intent of one");
        }
        yield reshare(order, reshare);
      }
    };
  }

  /**
   * Refuses what may not be started any more. Apart from the rest, because what was done already
   * may be told for ever.
   *
   * @param intent null for presigning
   */
  public void inTime(Order order, @Nullable VerifiedIntent intent, Instant now)
      throws RefusedException {
    RefusedException.unless(
        intent == null || !now.isAfter(intent.notAfter().plus(limits.clockSkew())),
        RefusalReason.REFUSAL_REASON_INTENT_EXPIRED,
        "the intent has expired");
    RefusedException.unless(
        intent == null || !intent.isAhead(now, limits.clockSkew()),
        RefusalReason.REFUSAL_REASON_FORBIDDEN,
        IntentProblem.REQUEST_ID_AHEAD.text());
    agree(
        intent == null || !instant(order.getDeadline()).isAfter(intent.notAfter()),
        "the deadline is later than the intent allows");
    // Not cut: as long as its deadline has not passed an order can be given again, also to a store
    // that has forgotten it.
    RefusedException.unless(
        !instant(order.getDeadline())
            .isAfter(now.plus(limits.maxSessionTime()).plus(limits.clockSkew())),
        RefusalReason.REFUSAL_REASON_DEADLINE_TOO_FAR,
        "the order's deadline is more than " + limits.maxSessionTime() + " away");
    boolean exact = Protocol.of(order.getProtocol()).filter(Protocol::signsAtRandom).isPresent();
    RefusedException.unless(
        now.isBefore(instant(order.getDeadline()).plus(exact ? Duration.ZERO : limits.clockSkew())),
        RefusalReason.REFUSAL_REASON_INTENT_EXPIRED,
        "the order's deadline has passed");
  }

  /** The parties of an order, of which this one is one. */
  private List<Member> members(Order order) throws RefusedException {
    List<Member> parties = new ArrayList<>();
    for (int party : order.getSigningSetList()) {
      parties.add(
          roster
              .byPartyId(party)
              .orElseThrow(
                  () ->
                      new RefusedException(
                          RefusalReason.REFUSAL_REASON_UNKNOWN_PARTY,
                          "party " + party + " is not in the roster")));
    }
    agree(
        parties.stream().anyMatch(m -> m.partyId() == self.partyId()),
        "this party is not in the signing set");
    return parties;
  }

  /**
   * The parties of a reshare. A party that joins knows the key by the public key in the intent;
   * that the rest of the public data belongs to it the core checks, and every dealer.
   */
  private SessionPlan.Work.Reshare reshare(Order order, VerifiedIntent.KeyReshare reshare)
      throws RefusedException {
    KeyPublic current = order.getKeyPublic();
    agree(
        current.getPublicKey().equals(reshare.publicKey()),
        "the public key is not the one that the requester has signed");
    agree(
        current.getKeyId().equals(order.getKey()) && current.getEpoch() == order.getEpoch(),
        "the public data are of another key or epoch");
    List<Integer> dealers = order.getDealersList();
    List<Integer> receivers = ids(reshare.parties());
    Set<Integer> everybody = new TreeSet<>(dealers);
    everybody.addAll(receivers);
    agree(order.getSigningSetList().equals(List.copyOf(everybody)), OTHER_PARTIES);
    return new SessionPlan.Work.Reshare(dealers, receivers, current);
  }

  /** This party's share, which the requester has signed; empty if the order has none at all. */
  private ByteString share(Order order, VerifiedIntent.KeyImport imported) throws RefusedException {
    if (!order.hasImported()) {
      return ByteString.EMPTY;
    }
    ByteString share =
        order.getImported().getSharesList().stream()
            .filter(each -> each.getParty() == self.partyId())
            .map(PartyBytes::getValue)
            .findFirst()
            .orElse(ByteString.EMPTY);
    agree(
        imported.isShareOf(self.name(), share),
        "the share is not the one that the requester has made for this party");
    return share;
  }

  /** The ids of parties that an intent names, ascending. */
  private List<Integer> ids(List<String> names) throws RefusedException {
    List<Integer> ids = new ArrayList<>();
    for (String name : names) {
      ids.add(
          roster
              .byName(name)
              .filter(m -> m.role() == Member.Role.PARTY)
              .orElseThrow(
                  () ->
                      new RefusedException(
                          RefusalReason.REFUSAL_REASON_UNKNOWN_PARTY,
                          "the intent names a party that is not in the roster"))
              .partyId());
    }
    Collections.sort(ids);
    return ids;
  }

  /** Whether a time is one that protobuf allows, after 1970. */
  public static boolean isValid(Timestamp timestamp) {
    return timestamp.getSeconds() > 0
        && timestamp.getSeconds() <= MAX_SECONDS
        && timestamp.getNanos() >= 0
        && timestamp.getNanos() < 1_000_000_000;
  }

  public static Instant instant(Timestamp timestamp) {
    return Instant.ofEpochSecond(timestamp.getSeconds(), timestamp.getNanos());
  }

  private static RefusedException malformed(String detail) {
    return new RefusedException(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, detail);
  }

  private static void require(boolean condition, String detail) throws RefusedException {
    RefusedException.unless(condition, RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, detail);
  }

  private static void agree(boolean condition, String detail) throws RefusedException {
    RefusedException.unless(condition, RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, detail);
  }
}
