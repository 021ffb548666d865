/**
 * One party's part in sessions: what an order must be, the life of a session, and the ports it
 * needs.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.signer.session;
