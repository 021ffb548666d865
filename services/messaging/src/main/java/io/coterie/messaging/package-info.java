/**
 * A messaging service that speaks the Signal server API. It is trusted with delivery and nothing
 * else, and knows nothing of multi-party computation.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging;
