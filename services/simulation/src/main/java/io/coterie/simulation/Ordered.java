package io.coterie.simulation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.Order;
import java.util.List;

/**
 * An order that the coordinator has given.
 *
 * @param number of the session, for the trace
 * @param bytes of the order, which the session is named by
 * @param cause why it was given
 */
record Ordered(int number, ByteString session, Order order, ByteString bytes, Cause cause) {
  /**
   * The reason of an order.
   *
   * @param request that it serves, by its id if that is a signing; empty if it serves none
   * @param content digest of the intent; empty if there is none
   * @param allowed whether a requester has signed it, and may
   */
  record Cause(String request, ByteString content, boolean allowed) {
    /** Nobody asks for presignatures. */
    static final Cause NONE = new Cause("", ByteString.EMPTY, true);
  }

  static Ordered of(int number, ByteString bytes, Cause cause) {
    try {
      ByteString session = SessionId.ofOrder(bytes).bytes();
      return new Ordered(number, session, Order.parseFrom(bytes), bytes, cause);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  String request() {
    return cause.request();
  }

  ByteString content() {
    return cause.content();
  }

  boolean allowed() {
    return cause.allowed();
  }

  /** Stands before the id of a request. */
  static final String REQUEST = "request ";

  Protocol protocol() {
    return Protocol.of(order.getProtocol()).orElseThrow();
  }

  List<Integer> parties() {
    return order.getSigningSetList();
  }

  /** The epoch of the shares that it makes; 0 if it makes none. */
  int makesEpoch() {
    return switch (protocol().operation()) {
      case KEYGEN, IMPORT -> order.getEpoch();
      case REFRESH, RESHARE -> order.getEpoch() + 1;
      case SIGN, PRESIGN, SIGN_PRESIGNED -> 0;
    };
  }

  /**
   * Whether the id of its request is of before another one.
   *
   * @param first id
   */
  boolean isDrawnBefore(String first) {
    return request().startsWith(REQUEST)
        && request().substring(REQUEST.length()).compareTo(first) < 0;
  }

  @Override
  public String toString() {
    return "s%d %s epoch %d at %s%s"
        .formatted(
            number,
            protocol().label(),
            order.getEpoch(),
            parties(),
            request().isEmpty() ? "" : " for " + request());
  }
}
