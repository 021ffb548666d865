/** What waits for a device, and where the device is connected. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.queue;
