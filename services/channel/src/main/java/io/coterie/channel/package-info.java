/**
 * The secure channel between the members of a roster: Signal sessions and sender keys over a
 * messaging service that is trusted with nothing but delivery.
 *
 * <p>This package is the contract, which the services know. Below it, each package may know those
 * before it:
 *
 * <ul>
 *   <li>{@code telemetry}: metrics
 *   <li>{@code wire}: the bytes that are encrypted
 *   <li>{@code keys}: prekeys, sessions, certificates, sender keys and their exchange
 *   <li>{@code link}: the messaging service, its sockets and calls
 *   <li>{@code signal}: peers, the messages to and from them, and the assembly of it all
 * </ul>
 *
 * <h2>Locks</h2>
 *
 * <p>A thread takes locks only downwards in this list, and never two of one line:
 *
 * <ol>
 *   <li>the {@link io.coterie.channel.signal.SignalChannel} itself: changes of the roster
 *   <li>the {@link io.coterie.channel.keys.SenderKeyRotation}: the choice of own sender keys
 *   <li>a {@link io.coterie.channel.keys.PeerKeys}: the key exchange with a peer
 *   <li>an {@link io.coterie.channel.keys.OwnSenderKey}: its chain
 *   <li>one of these, under which no other lock is taken: {@code Peer.session} (the ratchet with a
 *       peer), {@code Inbox.arrivals} (the order of envelopes), {@code Link.lock} (a connection and
 *       its pending requests), {@code Certificates} (the own certificate), {@code PreKeys} (the
 *       keys at the service)
 * </ol>
 *
 * <p>A request goes to the messaging service under none of them, because a service that does not
 * read stops the thread that writes. Nor does the timer write: it closes a socket that stalls.
 *
 * <p>The maps of {@link io.coterie.channel.keys.ProtocolStore} are concurrent and need no lock.
 * Futures that callers hold are completed under no lock, because their continuations may call the
 * channel again. State that {@code Peer.inbound} alone touches has no lock: a lane runs one task at
 * a time.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.channel;
