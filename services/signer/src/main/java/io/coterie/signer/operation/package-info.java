/** The work of sessions, one class for each kind: they decide, and the session acts. */
@NullMarked
package io.coterie.signer.operation;

import org.jspecify.annotations.NullMarked;
