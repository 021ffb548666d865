/** The bytes that are encrypted: frames, and the bodies that come in several of them. */
@org.jspecify.annotations.NullMarked
package io.coterie.channel.wire;
