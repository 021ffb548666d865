/** The state that replicas share through Redis: connections of devices, and online messages. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.redis;
