/** The signer: the service that acts for one party. */
@org.jspecify.annotations.NullMarked
package io.coterie.signer;
