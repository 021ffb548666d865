/** Whom this party obeys: requesters, their keys and their limits. Pure functions. */
@org.jspecify.annotations.NullMarked
package io.coterie.signer.policy;
