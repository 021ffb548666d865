package io.coterie.cli.profile;

import io.coterie.cli.terminal.CliException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;

/**
 * An Ed25519 key that exists already, from a file: PEM (PKCS#8), or the 32 bytes of its seed. The
 * seed is wiped when this is closed.
 */
public final class SeedFile implements AutoCloseable {
  private static final int SEED_BYTES = 32;

  /** More than any of the forms has. */
  private static final int MAX_BYTES = 1024;

  private static final byte[] BEGIN = ascii("-----BEGIN PRIVATE KEY-----");
  private static final byte[] END = ascii("-----END PRIVATE KEY-----");

  /** Algorithm and wrapping of the seed, which RFC 8410 says, after the length and the version. */
  private static final byte[] ED25519 = HexFormat.of().parseHex("300506032b657004220420");

  private static final int ED25519_AT = 5;

  /** Without the public key behind it, and with it. */
  private static final int PKCS8_BYTES = 48;

  private static final int PKCS8_WITH_PUBLIC_KEY_BYTES = 83;

  /** The wrapping of the public key, as RFC 5958 says, in version 2. */
  private static final byte[] PUBLIC_KEY = HexFormat.of().parseHex("812100");

  private final Path file;
  private final byte[] seed;

  /** As the file says it; empty if it says none. */
  private final byte[] publicKey;

  private SeedFile(Path file, byte[] seed, byte[] publicKey) {
    this.file = file;
    this.seed = seed;
    this.publicKey = publicKey;
  }

  /** The 32 bytes of the seed, until this is closed. */
  public byte[] seed() {
    return seed;
  }

  /**
   * Checks what the file says of its public key. Where the two differ, one of them is another key's
   * or damaged, and only the owner knows which key is meant.
   *
   * @param derived public key of the seed
   * @throws CliException if the file says another one
   */
  public void requirePublicKey(byte[] derived) {
    if (publicKey.length != 0 && !Arrays.equals(publicKey, derived)) {
      throw CliException.local(
          file
              + " has another public key than the one of its seed: find out which of the two your"
              + " wallet signs with, and write a file of the right seed alone");
    }
  }

  @Override
  public void close() {
    Arrays.fill(seed, (byte) 0);
  }

  /**
   * Reads a key.
   *
   * @throws CliException saying what is wrong with the file
   */
  public static SeedFile read(Path file) {
    // Buffers of this class alone: those that a library grows would keep the seed.
    byte[] buffer = new byte[MAX_BYTES];
    byte[] content = new byte[0];
    try (InputStream in = Files.newInputStream(PrivateFile.require(file))) {
      int length = in.readNBytes(buffer, 0, MAX_BYTES);
      content = Arrays.copyOf(buffer, length);
      return length == SEED_BYTES
          ? new SeedFile(file, content.clone(), new byte[0])
          : ofPem(file, content);
    } catch (IOException e) {
      throw CliException.local("key file " + file + " cannot be read");
    } finally {
      Arrays.fill(buffer, (byte) 0);
      Arrays.fill(content, (byte) 0);
    }
  }

  private static SeedFile ofPem(Path file, byte[] content) {
    int begin = indexOf(content, BEGIN);
    int end = indexOf(content, END);
    if (begin < 0 || end < begin) {
      throw CliException.local(
          file
              + " is neither PEM (BEGIN PRIVATE KEY) nor a seed of 32 bytes: write the key in one of"
              + " these forms");
    }
    byte[] base64 = Arrays.copyOfRange(content, begin + BEGIN.length, end);
    byte[] der = new byte[base64.length];
    try {
      int length = Base64.getMimeDecoder().decode(base64, der);
      boolean second = length == PKCS8_WITH_PUBLIC_KEY_BYTES && has(der, PKCS8_BYTES, PUBLIC_KEY);
      boolean known = length == PKCS8_BYTES || second;
      if (!known || !has(der, ED25519_AT, ED25519)) {
        throw CliException.local(file + " has no Ed25519 key: only those can be imported");
      }
      int seedAt = ED25519_AT + ED25519.length;
      int publicKeyAt = second ? PKCS8_BYTES + PUBLIC_KEY.length : length;
      return new SeedFile(
          file,
          Arrays.copyOfRange(der, seedAt, seedAt + SEED_BYTES),
          Arrays.copyOfRange(der, publicKeyAt, length));
    } catch (IllegalArgumentException e) {
      throw CliException.local(file + " is damaged: its base64 does not decode");
    } finally {
      Arrays.fill(base64, (byte) 0);
      Arrays.fill(der, (byte) 0);
    }
  }

  private static int indexOf(byte[] content, byte[] marker) {
    for (int at = 0; at + marker.length <= content.length; at++) {
      if (has(content, at, marker)) {
        return at;
      }
    }
    return -1;
  }

  private static boolean has(byte[] content, int at, byte[] part) {
    return Arrays.equals(content, at, at + part.length, part, 0, part.length);
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
