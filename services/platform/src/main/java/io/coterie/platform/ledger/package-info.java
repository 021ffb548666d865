/** How far a party's ledger has come, as the party states it and others remember it. */
@NullMarked
package io.coterie.platform.ledger;

import org.jspecify.annotations.NullMarked;
