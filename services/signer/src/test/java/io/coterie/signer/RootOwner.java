package io.coterie.signer;

import io.coterie.trust.RootKey;
import io.coterie.trust.Roots;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustFile;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.util.List;

/** The owner of the only root key of a trust file. */
public final class RootOwner {
  private final KeyPair key;

  public RootOwner() {
    try {
      key = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private Roots roots() {
    return new Roots(1, List.of(new RootKey(key.getPublic().getEncoded())));
  }

  /** Version 1 of a trust file. */
  public SignedTrust first(Roster roster) {
    return TrustFile.first(new Trust(roster, List.of()), roots())
        .signed(key.getPrivate())
        .verified();
  }

  /** The version after another one of this owner. */
  public SignedTrust after(SignedTrust previous, Roster roster) {
    return TrustFile.after(previous, new Trust(roster, List.of()), roots())
        .signed(key.getPrivate())
        .verified();
  }
}
