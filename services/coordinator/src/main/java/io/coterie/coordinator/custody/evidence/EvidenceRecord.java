package io.coterie.coordinator.custody.evidence;

import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import java.time.Instant;

/**
 * What one party has shown of another, and what the core made of it. Session and accusation are the
 * arguments of the judge: whoever has them can judge again.
 *
 * @param reporter party id of whoever showed it
 * @param judgedAt in whole microseconds
 */
public record EvidenceRecord(
    SessionConfig session,
    Accusation accusation,
    int reporter,
    Verdict verdict,
    Instant judgedAt) {}
