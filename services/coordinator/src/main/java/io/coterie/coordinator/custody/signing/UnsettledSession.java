package io.coterie.coordinator.custody.signing;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.session.Sessions;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.Protocol.Operation;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.party.v1.Order;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * A session that may still become the signature of its request. Its order is given again before
 * another session begins: docs/adr/0017.
 *
 * @param bytes of the order, as the parties had them
 * @param claimant id of the party that says that it contributed to the session; 0: this run ordered
 *     it
 */
record UnsettledSession(Order order, ByteString bytes, int claimant) {

  /**
   * A session that this run ordered; empty if a second signature would be the same, so that none
   * needs to be settled.
   */
  static Optional<UnsettledSession> ordered(ByteString bytes, Scheme scheme) {
    try {
      Order order = Order.parseFrom(bytes);
      return Protocol.of(scheme, Operation.SIGN)
          .filter(Protocol::signsAtRandom)
          .map(_ -> new UnsettledSession(order, bytes, 0));
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("an order of this coordinator is damaged", e);
    }
  }

  /**
   * The session that a party says it contributed to.
   *
   * @param bytes the order without its intent, as the party sent it
   * @param key ACTIVE
   * @return empty if they are not, to the last bit, an order that this request could have had
   */
  static Optional<UnsettledSession> claimed(
      int party, ByteString bytes, VerifiedIntent.Signing intent, KeyRecord key) {
    Order order;
    try {
      order = Order.parseFrom(bytes);
    } catch (InvalidProtocolBufferException e) {
      return Optional.empty();
    }
    ByteString presignature = order.getPresignatureId();
    Optional<Protocol> protocol =
        Protocol.of(
            intent.scheme(), presignature.isEmpty() ? Operation.SIGN : Operation.SIGN_PRESIGNED);
    if (protocol.isEmpty()
        || !protocol.get().signsAtRandom()
        || !(presignature.isEmpty() || presignature.size() == Sessions.PRESIGNATURE_ID_BYTES)
        || !IntentVerifier.areApprovals(order.getApprovalsList())
        || order.getCoordinatorNonce().size() != Sessions.NONCE_BYTES
        || !couldSign(order.getSigningSetList(), party, key)) {
      return Optional.empty();
    }
    Order expected =
        Order.newBuilder()
            .setCoordinatorNonce(order.getCoordinatorNonce())
            .setProtocol(protocol.get().id())
            .setKey(intent.key())
            .setEpoch(key.epoch())
            .setThreshold(key.threshold())
            .addAllSigningSet(order.getSigningSetList())
            .setDeadline(order.getDeadline())
            .setPresignatureId(presignature)
            // Those of that session: the request may have come with others meanwhile.
            .addAllApprovals(order.getApprovalsList())
            .build();
    if (!expected.equals(order)) {
      return Optional.empty();
    }
    Order whole = order.toBuilder().setSignedIntent(intent.envelope()).build();
    return Optional.of(new UnsettledSession(whole, whole.toByteString(), party));
  }

  /** Whether a signing set is one of the key, in order, and has that party. */
  private static boolean couldSign(List<Integer> signingSet, int party, KeyRecord key) {
    Set<Integer> holders =
        key.parties().stream().map(KeyRecord.Holder::partyId).collect(Collectors.toSet());
    return signingSet.size() >= key.threshold()
        && signingSet.contains(party)
        && holders.containsAll(signingSet)
        && signingSet.equals(signingSet.stream().distinct().sorted().toList());
  }
}
