package io.coterie.platform.scheme;

import com.google.protobuf.ByteString;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import java.util.Arrays;
import java.util.Optional;

/**
 * The differences between the keys of the schemes: above all the way from the public data of the
 * core to the key that verifiers use.
 */
public enum SchemeKeys {
  /** One key, 48 bytes. */
  BLS12381(Scheme.SCHEME_BLS12381, Family.SINGLE, 48, 96, false),
  /** 33 bytes, with descendants. */
  ECDSA_SECP256K1(Scheme.SCHEME_ECDSA_SECP256K1, Family.TREE, 33, 0, true),
  /** One key, 32 bytes. */
  ED25519(Scheme.SCHEME_ED25519, Family.SINGLE, 32, 0, false),
  /** The same; signed for otherwise. */
  ED25519_EXACT(Scheme.SCHEME_ED25519_EXACT, Family.SINGLE, 32, 0, false),
  /** 32 bytes without the parity, with descendants and their output keys. */
  BIP340_SECP256K1(Scheme.SCHEME_BIP340_SECP256K1, Family.TAPROOT, 33, 0, true);

  private static final RecentKeys RECENT = new RecentKeys();

  private enum Family {
    SINGLE,
    TREE,
    TAPROOT
  }

  private final Scheme scheme;
  private final Family family;
  private final int pointBytes;
  private final int proofBytes;
  private final boolean signsDigests;

  /**
   * The facts about a scheme.
   *
   * @param pointBytes of public keys and verification shares, as the core encodes them
   * @param proofBytes of a proof of possession; 0 if there is none
   */
  SchemeKeys(Scheme scheme, Family family, int pointBytes, int proofBytes, boolean signsDigests) {
    this.scheme = scheme;
    this.family = family;
    this.pointBytes = pointBytes;
    this.proofBytes = proofBytes;
    this.signsDigests = signsDigests;
  }

  /**
   * The keys of a scheme.
   *
   * @throws IllegalArgumentException for a scheme that no intent can name
   */
  public static SchemeKeys of(Scheme scheme) {
    return Arrays.stream(values())
        .filter(keys -> keys.scheme == scheme)
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("no keys of " + scheme));
  }

  /**
   * Whether public data of the core can be that of such a key: every part has the scheme's size,
   * and a key with descendants is a point.
   */
  public boolean fit(KeyPublic key) {
    if (key.getPublicKey().size() != pointBytes
        || key.getProofOfPossession().size() != proofBytes
        || key.getVerificationSharesList().stream()
            .anyMatch(share -> share.getPoint().size() != pointBytes)) {
      return false;
    }
    if (family == Family.SINGLE) {
      return key.getChainCode().isEmpty();
    }
    try {
      ExtendedPublicKey.of(key.getPublicKey(), key.getChainCode());
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /**
   * The key that signatures for a target verify under, in the scheme's standard encoding.
   *
   * @param key as the core made it
   * @throws IllegalArgumentException if the scheme has no such target, or it is one of those that
   *     do not exist (one in 2^127)
   */
  public ByteString verifyingKey(KeyPublic key, KeyTarget target) {
    if (target.taproot().isPresent() && family != Family.TAPROOT) {
      throw new IllegalArgumentException("keys of " + scheme + " have no output keys");
    }
    return switch (family) {
      case SINGLE -> {
        if (!target.path().isEmpty()) {
          throw new IllegalArgumentException("keys of " + scheme + " have no descendants");
        }
        yield key.getPublicKey();
      }
      case TREE, TAPROOT ->
          RECENT.get(this, key.getPublicKey(), key.getChainCode(), target, this::derived);
    };
  }

  private ByteString derived(RecentKeys.Name of) {
    KeyTarget target = of.target();
    ByteString descendant =
        target.path().isEmpty()
            ? of.publicKey()
            : ExtendedPublicKey.of(of.publicKey(), of.chainCode())
                .derive(target.path())
                .publicKey();
    if (family == Family.TREE) {
      return descendant;
    }
    ByteString internal = TaprootKey.xOnly(descendant);
    return target.taproot().isPresent()
        ? TaprootKey.output(internal, target.taproot().get())
        : internal;
  }

  /** Whether what they sign is a digest of 32 bytes, and not a message that the scheme hashes. */
  public boolean signsDigests() {
    return signsDigests;
  }

  /** The serialised form from which anyone can derive descendants; empty if there are none. */
  public Optional<String> xpub(KeyPublic key) {
    return family == Family.SINGLE
        ? Optional.empty()
        : Optional.of(ExtendedPublicKey.of(key.getPublicKey(), key.getChainCode()).xpub());
  }
}
