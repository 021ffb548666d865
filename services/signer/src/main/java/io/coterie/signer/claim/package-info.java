/** The once-only right to run a session, and the witnesses that notice a ledger that went back. */
@NullMarked
package io.coterie.signer.claim;

import org.jspecify.annotations.NullMarked;
