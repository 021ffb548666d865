/**
 * The keys of this process and of its peers, without input or output: prekeys, sessions,
 * certificates, sender keys and their exchange.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.channel.keys;
