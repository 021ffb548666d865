package io.coterie.coordinator.session;

import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;

/** Keeps what parties have shown of each other, so that it can be judged again. */
@FunctionalInterface
public interface EvidenceKeeper {

  /**
   * Keeps a judged accusation, soon. Does not block.
   *
   * @param session as the core needs it to judge
   * @param accusation with evidence
   * @param reporter party id of its sender
   */
  void keep(SessionConfig session, Accusation accusation, int reporter, Verdict verdict);
}
