package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.party.v1.Order;
import java.util.List;

/**
 * An order that the coordinator has given.
 *
 * @param number of the session, for the trace
 * @param request id of the request that it serves; empty if it serves none
 * @param content digest of the intent; empty if there is none
 * @param allowed whether a requester has signed it, and may
 */
record Ordered(
    int number,
    ByteString session,
    Order order,
    String request,
    ByteString content,
    boolean allowed) {

  Protocol protocol() {
    return Protocol.of(order.getProtocol()).orElseThrow();
  }

  List<Integer> parties() {
    return order.getSigningSetList();
  }

  @Override
  public String toString() {
    return "s%d %s epoch %d at %s%s"
        .formatted(
            number,
            protocol().label(),
            order.getEpoch(),
            parties(),
            request.isEmpty() ? "" : " for " + request);
  }
}
