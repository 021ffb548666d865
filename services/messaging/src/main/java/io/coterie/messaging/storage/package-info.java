/** The ports to what is durable, on PostgreSQL; migrations in {@code db/messaging}. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.storage;
