package io.coterie.member;

import io.coterie.trust.Member;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;

/** The parties of an installation that is not there. */
final class TestMembers {
  private TestMembers() {}

  /** Three parties, each with a key of its own. */
  static List<Member> parties() {
    return IntStream.rangeClosed(1, 3).mapToObj(TestMembers::party).toList();
  }

  private static Member party(int id) {
    return new Member(
        "party-" + id,
        Member.Role.PARTY,
        id,
        "here",
        new UUID(0, id),
        1,
        new byte[33],
        evidenceKey(id));
  }

  /** 32 bytes; no signature is checked with them here. */
  static byte[] evidenceKey(int party) {
    byte[] key = new byte[32];
    key[0] = (byte) party;
    return key;
  }
}
