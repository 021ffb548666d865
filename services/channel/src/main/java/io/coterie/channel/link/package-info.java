/** The messaging service: its sockets, and the calls of the Signal server API on them. */
@org.jspecify.annotations.NullMarked
package io.coterie.channel.link;
