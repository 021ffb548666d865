package io.coterie.coordinator.custody.request;

import java.time.Duration;

/**
 * Bounds of the work on requests.
 *
 * @param maxRuns requests being worked on at once; more are refused with OVERLOADED, and more than
 *     its share of one requester with REQUESTER_OVERLOADED
 * @param atOnce sessions at once; more requests than that wait for their turn
 * @param maxSessions sessions tried for one request before it fails
 * @param clockSkew by how much the parties' clocks may differ from this one's: their deadline for a
 *     session is so much later than the coordinator's
 */
public record RunLimits(int maxRuns, int atOnce, int maxSessions, Duration clockSkew) {}
