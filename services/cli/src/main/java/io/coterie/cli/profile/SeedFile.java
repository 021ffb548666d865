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

/** A file with an Ed25519 key that exists already: PEM (PKCS#8), or the 32 bytes of its seed. */
public final class SeedFile {
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

  private SeedFile() {}

  /**
   * Reads the seed.
   *
   * @return 32 bytes, which the caller wipes
   * @throws CliException saying what is wrong with the file
   */
  public static byte[] read(Path file) {
    // Buffers of this class alone: those that a library grows would keep the seed.
    byte[] buffer = new byte[MAX_BYTES];
    byte[] content = new byte[0];
    try (InputStream in = Files.newInputStream(PrivateFile.require(file))) {
      int length = in.readNBytes(buffer, 0, MAX_BYTES);
      content = Arrays.copyOf(buffer, length);
      return length == SEED_BYTES ? content.clone() : ofPem(file, content);
    } catch (IOException e) {
      throw CliException.local("key file " + file + " cannot be read");
    } finally {
      Arrays.fill(buffer, (byte) 0);
      Arrays.fill(content, (byte) 0);
    }
  }

  private static byte[] ofPem(Path file, byte[] content) {
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
      boolean known = length == PKCS8_BYTES || length == PKCS8_WITH_PUBLIC_KEY_BYTES;
      int seedAt = ED25519_AT + ED25519.length;
      if (!known || !Arrays.equals(der, ED25519_AT, seedAt, ED25519, 0, ED25519.length)) {
        throw CliException.local(file + " has no Ed25519 key: only those can be imported");
      }
      return Arrays.copyOfRange(der, seedAt, seedAt + SEED_BYTES);
    } catch (IllegalArgumentException e) {
      throw CliException.local(file + " is damaged: its base64 does not decode");
    } finally {
      Arrays.fill(base64, (byte) 0);
      Arrays.fill(der, (byte) 0);
    }
  }

  private static int indexOf(byte[] content, byte[] marker) {
    for (int at = 0; at + marker.length <= content.length; at++) {
      if (Arrays.equals(content, at, at + marker.length, marker, 0, marker.length)) {
        return at;
      }
    }
    return -1;
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
