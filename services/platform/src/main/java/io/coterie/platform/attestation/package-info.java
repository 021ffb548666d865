/**
 * The word of the parties on their keys: how it is signed, and what a client may conclude from it.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.attestation;
