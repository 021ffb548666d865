package io.coterie.trust;

import java.io.IOException;
import java.nio.file.Path;

/** The entry of one member as a file of its own, which the member writes for the operators. */
public final class MemberEntry {
  private MemberEntry() {}

  /**
   * Reads an entry.
   *
   * @throws IllegalArgumentException when the content is not one; says what is wrong with it
   */
  public static Member parse(byte[] json) {
    return TrustJson.member(json);
  }

  /** The bytes of an entry: the same member has the same bytes. */
  public static byte[] encode(Member member) {
    return TrustJson.bytes(member);
  }

  /** The fingerprint of an entry: it covers everything that is pinned about the member. */
  public static String fingerprint(Member member) {
    return Fingerprint.of("coterie/member-fingerprint/1", encode(member));
  }

  /** Writes an entry; a reader sees the old file or the new one, never a part. */
  public static void write(Path file, Member member) throws IOException {
    TrustFile.replace(file, encode(member));
  }
}
