/**
 * The coordinator: client API, choice of the quorum, life cycle of sessions, final verification.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator;
