/** BIP-32: children of a public key, without private keys. */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.bip32;
