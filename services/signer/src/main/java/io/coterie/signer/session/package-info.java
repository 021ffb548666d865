/** The sessions of one party: from an order to its end, with everything that they act on. */
@NullMarked
package io.coterie.signer.session;

import org.jspecify.annotations.NullMarked;
