/**
 * The protocols of the core and the names of their sessions, as signer and coordinator know them.
 */
@NullMarked
package io.coterie.platform.protocol;

import org.jspecify.annotations.NullMarked;
