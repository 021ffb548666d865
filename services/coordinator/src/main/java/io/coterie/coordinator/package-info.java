/**
 * The coordinator: client API, choice of signing sets, life cycle of sessions, final verification.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator;
