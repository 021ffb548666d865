/** The policy of this party: requesters, their keys and their limits. Pure functions. */
@org.jspecify.annotations.NullMarked
package io.coterie.signer.policy;
