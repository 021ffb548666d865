package io.coterie.coordinator.custody.evidence;

import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import java.time.Instant;

/**
 * The evidence that one party showed of another, and the verdict of the core. Session and
 * accusation are the arguments of the judge: with them, anyone can judge again.
 *
 * @param reporter id of the party that showed it
 * @param judgedAt in whole microseconds
 */
public record EvidenceRecord(
    SessionConfig session,
    Accusation accusation,
    int reporter,
    Verdict verdict,
    Instant judgedAt) {}
