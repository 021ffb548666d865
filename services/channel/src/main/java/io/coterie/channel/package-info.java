/**
 * The secure channel between the members of a roster: Signal sessions and sender keys over a
 * messaging service that is trusted with nothing but delivery.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.channel;
