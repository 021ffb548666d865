/** Typed configuration and the wiring of the party. */
@org.jspecify.annotations.NullMarked
package io.coterie.signer.config;
