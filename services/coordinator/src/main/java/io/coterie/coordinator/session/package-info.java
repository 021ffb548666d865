/** One run of one protocol with one set of parties, and who to ask. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.session;
