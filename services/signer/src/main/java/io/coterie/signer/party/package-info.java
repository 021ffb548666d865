/** The means of a party: the network, the core, the audit trail and the threads. */
@NullMarked
package io.coterie.signer.party;

import org.jspecify.annotations.NullMarked;
