/**
 * What a requester signs, and how it is signed and verified: DSSE over the exact bytes of an
 * intent.
 *
 * <p>Free of any framework, so that clients sign with the same code that the services verify with.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.intent;
