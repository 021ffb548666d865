package io.coterie.coordinator.custody.request;

import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.platform.telemetry.TraceContext;

/**
 * A caller that waits for a result, and how long.
 *
 * @param deadlineNanos by {@link ReplicaTime#nanos()}: when the answer must leave
 */
public record Caller(long deadlineNanos, TraceContext trace) {}
