/**
 * The stores in the memory of one process, for tests and for the simulation: no service uses them.
 * They keep the same contract as those in PostgreSQL.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.storage.memory;
