package io.coterie.trust;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFileAttributeView;
import java.security.PrivateKey;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * A trust file whose signatures nobody has checked: {@code
 * {"payload","signatures":[{"key","signature"}],"earlier":[{"payload","signatures"}]}}, all in
 * base64. The payload is the JSON of a {@link TrustContent}, and signatures cover its exact bytes.
 *
 * @param current the version that the file is of
 * @param earlier version 1, and each later version that changed the root keys, oldest first: the
 *     way from any version to this one. Empty if this is version 1
 */
public record TrustFile(TrustVersion current, List<TrustVersion> earlier) {
  /** A full roster takes about 40 KB, and so may its former members. */
  public static final int MAX_BYTES = 1 << 20;

  public TrustFile {
    earlier = List.copyOf(earlier);
    TrustVersion before = null;
    for (TrustVersion link : links(current, earlier)) {
      TrustContent content = link.content();
      if (before == null) {
        if (content.version() != 1) {
          throw new IllegalArgumentException("the trust file does not have its version 1");
        }
      } else {
        requireNext(before, content, link == current);
      }
      before = link;
    }
  }

  private static void requireNext(TrustVersion before, TrustContent content, boolean last) {
    TrustContent old = before.content();
    if (!content.installation().equals(old.installation())) {
      throw new IllegalArgumentException(
          "the trust file has versions of two installations, %s and %s"
              .formatted(old.installation(), content.installation()));
    }
    if (content.version() <= old.version()) {
      throw new IllegalArgumentException(
          "the trust file has version %d after version %d"
              .formatted(content.version(), old.version()));
    }
    if (!last && content.roots().equals(old.roots())) {
      throw new IllegalArgumentException(
          "earlier version %d does not change the root keys".formatted(content.version()));
    }
    requireNamed(before, content);
  }

  /** Checks that a version names the content of the one before, if that is the one just before. */
  static void requireNamed(TrustVersion before, TrustContent content) {
    if (content.version() == before.content().version() + 1
        && !Arrays.equals(content.previous(), before.digest())) {
      throw new IllegalArgumentException(
          "version %d follows another version %d than this one"
              .formatted(content.version(), before.content().version()));
    }
  }

  private static List<TrustVersion> links(TrustVersion current, List<TrustVersion> earlier) {
    List<TrustVersion> links = new ArrayList<>(earlier);
    links.add(current);
    return links;
  }

  /** The versions of the file, oldest first. */
  List<TrustVersion> links() {
    return links(current, earlier);
  }

  /**
   * Reads a trust file.
   *
   * @throws IllegalArgumentException when the content is not one; says what is wrong with it
   */
  public static TrustFile read(Path file) throws IOException {
    if (Files.size(file) > MAX_BYTES) {
      throw new IllegalArgumentException(file + " is above " + MAX_BYTES + " bytes");
    }
    return parse(Files.readAllBytes(file));
  }

  /** Reads the bytes of a trust file. */
  public static TrustFile parse(byte[] json) {
    return TrustJson.file(json);
  }

  /** The bytes of the file. */
  public byte[] encode() {
    byte[] json = TrustJson.bytes(this);
    if (json.length > MAX_BYTES) {
      throw new IllegalArgumentException("the trust file would be above " + MAX_BYTES + " bytes");
    }
    return json;
  }

  /** Writes the file; a reader sees the old file or the new one, never a part. */
  public void write(Path file) throws IOException {
    replace(file, encode());
  }

  /** Version 1 of an installation, without signatures. */
  public static TrustFile first(Trust trust, Roots roots) {
    TrustContent content = new TrustContent(trust, roots, new byte[0]);
    return new TrustFile(new TrustVersion(TrustJson.bytes(content), List.of()), List.of());
  }

  /** The version after a verified one, without signatures. */
  public static TrustFile after(SignedTrust previous, Trust trust, Roots roots) {
    TrustFile file = previous.file();
    List<TrustVersion> earlier = new ArrayList<>(file.earlier());
    if (earlier.isEmpty() || !earlier.getLast().content().roots().equals(previous.roots())) {
      earlier.add(file.current());
    }
    TrustContent content = new TrustContent(trust, roots, previous.digest());
    return new TrustFile(new TrustVersion(TrustJson.bytes(content), List.of()), earlier);
  }

  /**
   * The root keys that sign this version: those of the version before, and its own. Version 1 has
   * only its own.
   */
  public List<Roots> signers() {
    Roots own = current.content().roots();
    if (earlier.isEmpty()) {
      return List.of(own);
    }
    Roots old = earlier.getLast().content().roots();
    return old.equals(own) ? List.of(own) : List.of(old, own);
  }

  /**
   * This file with one more signature.
   *
   * @param key private half of a root key
   * @throws IllegalArgumentException if it is none of this version or the one before
   */
  public TrustFile signed(PrivateKey key) {
    return new TrustFile(current.signed(key, keys(signers())), earlier);
  }

  private static Set<RootKey> keys(List<Roots> signers) {
    Set<RootKey> keys = new HashSet<>();
    signers.forEach(roots -> keys.addAll(roots.keys()));
    return keys;
  }

  /**
   * Checks that enough root keys have signed each version of the file: those of the version before,
   * and its own.
   *
   * @throws IllegalArgumentException saying what is missing or forged
   */
  public SignedTrust verified() {
    Roots before = null;
    for (TrustVersion link : links()) {
      Roots own = link.content().roots();
      List<Roots> signers = before == null ? List.of(own) : List.of(before, own);
      link.requireValid(keys(signers));
      if (before != null) {
        link.requireSignedBy(before, "of the version before it");
      }
      link.requireSignedBy(own, "of its own");
      before = own;
    }
    return new SignedTrust(this);
  }

  /**
   * Writes a file: a reader sees the old one or the new one, never a part, also after a loss of
   * power. The new one has the rights of the old one.
   */
  static void replace(Path file, byte[] content) throws IOException {
    Path folder = file.toAbsolutePath().getParent();
    Path temporary = Files.createTempFile(folder, ".trust-", ".tmp");
    try {
      try (FileChannel channel = FileChannel.open(temporary, StandardOpenOption.WRITE)) {
        ByteBuffer left = ByteBuffer.wrap(content);
        while (left.hasRemaining()) {
          channel.write(left);
        }
        channel.force(true);
      }
      PosixFileAttributeView mode =
          Files.getFileAttributeView(temporary, PosixFileAttributeView.class);
      if (mode != null && Files.exists(file)) {
        mode.setPermissions(Files.getPosixFilePermissions(file));
      }
      try {
        Files.move(
            temporary, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      } catch (AtomicMoveNotSupportedException e) {
        Files.move(temporary, file, StandardCopyOption.REPLACE_EXISTING);
      }
    } finally {
      Files.deleteIfExists(temporary);
    }
  }
}
