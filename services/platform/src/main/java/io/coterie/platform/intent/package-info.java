/**
 * Intents, and how a requester signs and a party verifies them: DSSE over the exact bytes of an
 * intent.
 *
 * <p>Free of any framework, so that clients sign with the same code that the services verify with.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.intent;
