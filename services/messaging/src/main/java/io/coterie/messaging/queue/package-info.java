/** The messages that wait for a device, and the place where the device is connected. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.queue;
