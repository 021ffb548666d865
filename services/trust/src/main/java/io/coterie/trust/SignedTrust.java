package io.coterie.trust;

import java.util.Arrays;
import java.util.Locale;

/** A version of the trust file that enough root keys have signed; made by {@link TrustFile}. */
public final class SignedTrust {
  private final TrustFile file;

  SignedTrust(TrustFile file) {
    this.file = file;
  }

  /** The members, and whom clients believe. */
  public Trust trust() {
    return content().trust();
  }

  /** The root keys that sign the next version. */
  public Roots roots() {
    return content().roots();
  }

  /** The version of the trust file. */
  public long version() {
    return content().version();
  }

  /** The name of the installation. */
  public String installation() {
    return content().installation();
  }

  /** SHA-256 of the content: two files of the same version and digest say the same. */
  public byte[] digest() {
    return file.current().digest();
  }

  /** The file that says so. */
  public TrustFile file() {
    return file;
  }

  private TrustContent content() {
    return file.current().content();
  }

  /**
   * Checks that the file descends from root keys that its reader was given.
   *
   * @param fingerprint of the root keys of some version of the file, see {@link Roots#fingerprint};
   *     spaces and capitals do not matter
   * @throws IllegalArgumentException if no version of the file has such root keys
   */
  public SignedTrust requireRoots(String fingerprint) {
    String expected = bare(fingerprint);
    if (file.links().stream()
        .noneMatch(link -> bare(link.content().roots().fingerprint()).equals(expected))) {
      throw new IllegalArgumentException(
          "the trust file has the root keys %s, and none of its versions has the expected ones, %s:"
                  .formatted(roots().fingerprint(), fingerprint)
              + " compare the fingerprint with the owners of the root keys");
    }
    return this;
  }

  private static String bare(String fingerprint) {
    return fingerprint.replaceAll("\\s", "").toLowerCase(Locale.ROOT);
  }

  /**
   * Checks that a reader may use this file, which has used another one before.
   *
   * @param held the highest version that the reader has accepted
   * @return whether this one is newer
   * @throws IllegalArgumentException if this one is older, has another content under the same
   *     version, or was not signed by the root keys of {@code held}
   */
  public boolean requireNotBefore(SignedTrust held) {
    if (!installation().equals(held.installation())) {
      throw new IllegalArgumentException(
          "the trust file is of installation %s, and the one before was of %s: give back the right"
                  .formatted(installation(), held.installation())
              + " file");
    }
    if (version() < held.version()) {
      throw new IllegalArgumentException(
          "the trust file has version %d, and version %d was used before: get the newest file"
              .formatted(version(), held.version()));
    }
    if (version() == held.version()) {
      if (!Arrays.equals(digest(), held.digest())) {
        throw new IllegalArgumentException(
            "the trust file has another content than the version %d that was used before:"
                    .formatted(version())
                + " ask the owners of the root keys why they signed two");
      }
      return false;
    }
    requireDescends(held);
    return true;
  }

  /** The root keys of that time must be the same: those of later versions follow from them. */
  private void requireDescends(SignedTrust held) {
    TrustVersion link =
        file.links().stream()
            .filter(each -> each.content().version() <= held.version())
            .reduce((first, second) -> second)
            .orElseThrow();
    boolean other =
        link.content().version() == held.version()
            ? !Arrays.equals(link.digest(), held.digest())
            : !link.content().roots().equals(held.roots());
    if (other) {
      throw new IllegalArgumentException(
          "the trust file's version %d is not signed by the root keys of version %d, which was used"
                  .formatted(version(), held.version())
              + " before: get a file that the owners of those keys have signed");
    }
    TrustFile.requireNamed(held.file().current(), content());
  }
}
