/**
 * Decodes the payload of a signing intent into fields for people and bytes for the scheme. Signers
 * decode every payload themselves before they agree; the coordinator decodes it for the caller.
 *
 * <p>Transactions, typed data and PSBTs come from requesters, so each decoder takes hostile bytes:
 * sizes, counts and depths are bounded before a library sees them, and whatever is not in its
 * canonical encoding is refused.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.payload;
