package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import fr.acinq.bitcoin.Base58;

/** Solana addresses: keys of accounts, programs and mints. */
public final class SolanaAddress {
  /** Bytes of an address. */
  public static final int BYTES = 32;

  private SolanaAddress() {}

  /**
   * The address of a key.
   *
   * @param publicKey 32 bytes, Ed25519
   */
  public static String of(ByteString publicKey) {
    if (publicKey.size() != BYTES) {
      throw new IllegalArgumentException("public key is not 32 bytes");
    }
    return Base58.encode(publicKey.toByteArray());
  }
}
