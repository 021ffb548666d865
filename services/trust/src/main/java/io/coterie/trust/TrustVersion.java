package io.coterie.trust;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.ByteArrayOutputStream;
import java.security.PrivateKey;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** One version of the trust file as it was signed: its exact bytes, and signatures unchecked. */
public final class TrustVersion {
  private static final String TYPE = "application/vnd.coterie.trust.v1+json";

  private final byte[] payload;
  private final TrustContent content;
  private final List<RootSignature> signatures;

  /** A signature, and the key that is said to have made it. */
  public record RootSignature(RootKey key, byte[] signature) {
    public RootSignature {
      signature = signature.clone();
    }

    @Override
    public byte[] signature() {
      return signature.clone();
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof RootSignature s
          && key.equals(s.key)
          && Arrays.equals(signature, s.signature);
    }

    @Override
    public int hashCode() {
      return key.hashCode();
    }
  }

  /**
   * @param payload JSON of a {@link TrustContent}
   * @throws IllegalArgumentException if it is something else, or a key signs twice
   */
  TrustVersion(byte[] payload, List<RootSignature> signatures) {
    this.payload = payload.clone();
    this.content = TrustJson.content(payload);
    this.signatures = List.copyOf(signatures);
    Set<RootKey> seen = new HashSet<>();
    for (RootSignature signature : signatures) {
      if (!seen.add(signature.key())) {
        throw new IllegalArgumentException(
            what() + " has two signatures of root key " + signature.key().fingerprint());
      }
    }
  }

  /** The content that the root keys sign; nobody has checked that they did. */
  public TrustContent content() {
    return content;
  }

  /** The signatures, in the order of the file. */
  public List<RootSignature> signatures() {
    return signatures;
  }

  byte[] payload() {
    return payload.clone();
  }

  /** SHA-256 of the payload. Two files of the same version and digest say the same. */
  public byte[] digest() {
    return Fingerprint.sha256().digest(payload);
  }

  /** Whether a signature is one of this version. */
  public boolean isValid(RootSignature signature) {
    return signature.key().verifies(message(), signature.signature());
  }

  /** DSSE 1.0: the signature covers the payload's type together with its exact bytes. */
  private byte[] message() {
    ByteArrayOutputStream out = new ByteArrayOutputStream(payload.length + TYPE.length() + 32);
    String head = "DSSEv1 " + TYPE.length() + " " + TYPE + " " + payload.length + " ";
    out.writeBytes(head.getBytes(US_ASCII));
    out.writeBytes(payload);
    return out.toByteArray();
  }

  /**
   * This version with one more signature, or with the same key's signature made anew.
   *
   * @param possible the root keys that may sign it
   * @throws IllegalArgumentException if the private key belongs to none of them
   */
  TrustVersion signed(PrivateKey key, Set<RootKey> possible) {
    byte[] message = message();
    byte[] signature = RootKey.sign(key, message);
    RootKey signer =
        possible.stream()
            .filter(root -> root.verifies(message, signature))
            .findFirst()
            .orElseThrow(
                () ->
                    new IllegalArgumentException(
                        "the key is no root key of " + what() + " or of the version before it"));
    List<RootSignature> all = new ArrayList<>(signatures);
    all.removeIf(old -> old.key().equals(signer));
    all.add(new RootSignature(signer, signature));
    return new TrustVersion(payload, all);
  }

  /**
   * Checks that enough of the root keys have signed.
   *
   * @param whose for example {@code "of version 3"}
   * @throws IllegalArgumentException if they have not
   */
  void requireSignedBy(Roots roots, String whose) {
    long valid = signatures.stream().filter(s -> roots.keys().contains(s.key())).count();
    if (valid < roots.threshold()) {
      throw new IllegalArgumentException(
          "%s has %d of the %d signatures that it needs of the root keys %s: collect them with"
                  .formatted(what(), valid, roots.threshold(), whose)
              + " 'coterie trust sign'");
    }
  }

  /**
   * Checks every signature.
   *
   * @param possible the root keys that may sign this version
   * @throws IllegalArgumentException if one is forged or a stranger's
   */
  void requireValid(Set<RootKey> possible) {
    for (RootSignature signature : signatures) {
      if (!possible.contains(signature.key())) {
        throw new IllegalArgumentException(
            what() + " has a signature of a key that is none of its root keys");
      }
      if (!isValid(signature)) {
        throw new IllegalArgumentException(
            "%s has a signature of root key %s that is not valid"
                .formatted(what(), signature.key().fingerprint()));
      }
    }
  }

  private String what() {
    return "trust file version " + content.version();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TrustVersion version
        && Arrays.equals(payload, version.payload)
        && signatures.equals(version.signatures);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(payload);
  }
}
