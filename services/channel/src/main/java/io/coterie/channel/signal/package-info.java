/** The secure channel itself: peers, the messages to and from them, and its assembly. */
@org.jspecify.annotations.NullMarked
package io.coterie.channel.signal;
