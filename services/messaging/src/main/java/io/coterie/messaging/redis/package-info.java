/** The state that replicas share through Redis: who is connected where, and online messages. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.redis;
