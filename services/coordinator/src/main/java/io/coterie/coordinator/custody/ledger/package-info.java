/** The coordinator as a witness of the parties' ledgers. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.custody.ledger;
