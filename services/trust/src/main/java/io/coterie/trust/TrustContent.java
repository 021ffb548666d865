package io.coterie.trust;

import java.util.Arrays;

/**
 * The content of one version of the trust file: everything that root keys sign.
 *
 * @param trust the members, and whom clients believe; its version is at least 1
 * @param roots sign the next version
 * @param previous SHA-256 of the payload of the version before; empty for version 1
 */
public record TrustContent(Trust trust, Roots roots, byte[] previous) {
  static final int DIGEST_BYTES = 32;

  public TrustContent {
    previous = previous.clone();
    long version = trust.roster().version();
    if (version < 1) {
      throw new IllegalArgumentException("version " + version + " is below 1");
    }
    if (previous.length != (version == 1 ? 0 : DIGEST_BYTES)) {
      throw new IllegalArgumentException(
          version == 1
              ? "version 1 names a version before it"
              : "version " + version + " does not name the digest of the version before it");
    }
  }

  @Override
  public byte[] previous() {
    return previous.clone();
  }

  /** The version of the trust file. */
  public long version() {
    return trust.roster().version();
  }

  /** The name of the installation. */
  public String installation() {
    return trust.roster().installation();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TrustContent content
        && trust.equals(content.trust)
        && roots.equals(content.roots)
        && Arrays.equals(previous, content.previous);
  }

  @Override
  public int hashCode() {
    return trust.hashCode() * 31 + roots.hashCode();
  }
}
