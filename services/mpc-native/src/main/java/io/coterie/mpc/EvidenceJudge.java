package io.coterie.mpc;

import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;

/** Judges what one party reports of another, as the parties themselves do. */
@FunctionalInterface
public interface EvidenceJudge {

  /**
   * A pure function of its arguments.
   *
   * @param config a key generation, refresh or reshare as an observer describes it, without a party
   *     of its own; of a refresh or reshare with the key's public data as they were before
   * @param accusation cause, accused and evidence of an abort
   * @return whether the evidence convicts the accused, shows that it ran the session twice, is its
   *     word by which the session ended, shows something of another party, or shows nothing
   * @throws MpcException with INVALID_ARGUMENT or SETUP_REFUSED if the configuration describes no
   *     such session, or the accusation names no cause or party
   */
  Verdict judge(SessionConfig config, Accusation accusation);
}
