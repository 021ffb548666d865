package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Group;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupParties;
import io.coterie.proto.core.v1.GroupRefused;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.GroupCore;
import java.util.function.Function;

/**
 * The core's calls about groups, whose refusals end a step.
 *
 * @param refusals makes an end of what the core says of bytes of others
 */
record GroupCalls(GroupCore core, Function<GroupRefused, NotDoneException> refusals) {

  GroupReply call(GroupCall.Builder call) throws NotDoneException {
    GroupReply reply;
    try {
      reply = core.call(call.build());
    } catch (RefusedException e) {
      throw NotDoneException.of(e);
    }
    if (reply.hasGroupRefused()) {
      throw refusals.apply(reply.getGroupRefused());
    }
    return reply;
  }

  /** A group as the core takes it. */
  static Group group(GroupParties parties, ByteString attested) {
    return Group.newBuilder().setParties(parties).setAttested(attested).build();
  }
}
