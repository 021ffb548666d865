/** PostgreSQL adapters of the domain's stores. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.storage;
