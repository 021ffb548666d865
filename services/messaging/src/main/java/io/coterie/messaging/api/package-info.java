/** The calls of the API, one dispatch layer for REST and for requests inside the WebSocket. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.api;
