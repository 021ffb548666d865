/** The HTTP and WebSocket entry: transport in, dispatch, transport out. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.socket;
