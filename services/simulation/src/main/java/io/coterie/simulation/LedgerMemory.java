package io.coterie.simulation;

import io.coterie.channel.SecureChannel;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The memory of the coordinator of how far the ledgers of parties have come. */
final class LedgerMemory {
  private final Coverage coverage;
  private final Map<Member, List<ClaimCount>> ledgers = new HashMap<>();
  private boolean forgets;

  /**
   * @param forgets whether it answers as if it remembered nothing
   */
  LedgerMemory(Coverage coverage, boolean forgets) {
    this.coverage = coverage;
    this.forgets = forgets;
  }

  /** From now on it remembers. */
  void remember() {
    forgets = false;
  }

  /** Says what it remembers of a party's ledger, never less than before. */
  void answer(SecureChannel channel, Member party, ClaimCount stated) {
    LedgerPosition now = LedgerPosition.of(stated);
    if (now == null || !now.isSigned(stated, party.evidenceKey())) {
      return;
    }
    if (forgets) {
      coverage.count(Lie.FORGETS_LEDGER.label());
      say(channel, party, List.of(stated));
      return;
    }
    List<ClaimCount> before = ledgers.getOrDefault(party, List.of());
    LedgerPosition latest = before.isEmpty() ? null : LedgerPosition.of(before.getLast());
    if (now.against(latest) == LedgerPosition.Judgement.LATER) {
      List<ClaimCount> next = new ArrayList<>(before);
      if (latest != null && (before.size() == 2 || latest.head().equals(now.head()))) {
        next.remove(latest.head().equals(now.head()) ? before.getLast() : before.getFirst());
      }
      next.add(stated);
      ledgers.put(party, List.copyOf(next));
    }
    say(channel, party, ledgers.getOrDefault(party, List.of()));
  }

  private static void say(SecureChannel channel, Member party, List<ClaimCount> remembered) {
    PartyMessage answer =
        PartyMessage.newBuilder()
            .setClaimMemory(ClaimMemory.newBuilder().addAllRemembered(remembered))
            .build();
    channel.send(party, answer.toByteArray(), SecureChannel.SendOptions.online(null));
  }
}
