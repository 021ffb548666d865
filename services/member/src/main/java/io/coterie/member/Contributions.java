package io.coterie.member;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.PartyBytes;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * The shares of several parties, of which fewer are enough: one whose bytes do not hold must not
 * keep those of the others from being used.
 */
final class Contributions {
  private final List<PartyBytes> left = new ArrayList<>();

  void add(int party, ByteString value) {
    left.add(PartyBytes.newBuilder().setParty(party).setValue(value).build());
  }

  /** Those that were used, or may be. */
  List<PartyBytes> left() {
    return List.copyOf(left);
  }

  /**
   * Uses them, without those of parties that the core names for theirs.
   *
   * @param call of the core
   * @return the reply; the first refusal if too few are left
   */
  GroupReply use(Function<List<PartyBytes>, GroupReply> call) {
    GroupReply first = call.apply(left());
    GroupReply reply = first;
    while (reply.hasGroupRefused()) {
      int party = reply.getGroupRefused().getParty();
      if (!left.removeIf(given -> given.getParty() == party)) {
        return first;
      }
      reply = call.apply(left());
    }
    return reply;
  }
}
