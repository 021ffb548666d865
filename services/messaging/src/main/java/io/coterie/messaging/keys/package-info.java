/** Prekeys: stored for a device, handed out to whoever may open a session with it. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.keys;
