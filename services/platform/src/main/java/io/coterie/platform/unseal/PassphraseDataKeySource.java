package io.coterie.platform.unseal;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Set;
import java.util.function.Supplier;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * A random data key in a file, wrapped under a passphrase: Argon2id (RFC 9106) makes the wrapping
 * key, AES-256-GCM wraps. The passphrase is a file of its own, normally a mounted secret.
 *
 * <p>The file, 100 bytes, integers big-endian: magic {@code COTERIEK}, u32 version 1, u32 memory in
 * KiB, u32 passes, u32 lanes, 16 bytes salt, 12 bytes nonce, 48 bytes ciphertext and tag. All
 * before the ciphertext is associated data.
 */
public final class PassphraseDataKeySource implements DataKeySource {
  /** Bytes of a passphrase, without the line end that editors leave. */
  public static final int MIN_PASSPHRASE = 12;

  public static final int MAX_PASSPHRASE = 1024;

  private static final byte[] MAGIC = "COTERIEK".getBytes(US_ASCII);
  private static final int VERSION = 1;
  private static final int SALT = 16;
  private static final int NONCE = 12;
  private static final int TAG_BITS = 128;
  private static final int HEADER = MAGIC.length + 4 * Integer.BYTES + SALT + NONCE;
  private static final int FILE = HEADER + DATA_KEY_BYTES + TAG_BITS / 8;

  /**
   * The cost of one guess.
   *
   * @param memoryKib memory of one derivation, KiB; 8 KiB a lane to 256 MiB
   * @param passes over that memory, 1 to 64
   * @param lanes independent parts of it, 1 to 16
   */
  public record Cost(int memoryKib, int passes, int lanes) {
    /** 64 MiB, 3 passes, 4 lanes: the second recommendation of RFC 9106, 4. */
    public static final Cost STANDARD = new Cost(64 * 1024, 3, 4);

    private static final int MAX_MEMORY_KIB = 256 * 1024;
    private static final int MAX_PASSES = 64;
    private static final int MAX_LANES = 16;

    public Cost {
      if (lanes < 1
          || lanes > MAX_LANES
          || passes < 1
          || passes > MAX_PASSES
          || memoryKib < 8 * lanes
          || memoryKib > MAX_MEMORY_KIB) {
        throw new IllegalArgumentException("Argon2id cost is out of range");
      }
    }
  }

  /** Argon2id, RFC 9106, version 0x13, without secret key and associated data. */
  @FunctionalInterface
  public interface Argon2id {
    /**
     * Derives a key.
     *
     * @param passphrase {@value #MIN_PASSPHRASE} to {@value #MAX_PASSPHRASE} bytes, not changed
     * @param salt 16 bytes
     * @return 32 bytes, a fresh array that the caller zeroes
     */
    byte[] derive(byte[] passphrase, byte[] salt, int memoryKib, int passes, int lanes);
  }

  private final Path keyFile;
  private final Supplier<byte[]> passphrase;
  private final Argon2id argon2id;

  /**
   * A source; reads nothing yet.
   *
   * @param keyFile the wrapped data key
   * @param passphraseFile the passphrase as bytes; one line end after it is not part of it
   * @param argon2id should give its memory back: a heap that has grown by it stays that large
   */
  public PassphraseDataKeySource(Path keyFile, Path passphraseFile, Argon2id argon2id) {
    this(keyFile, () -> readPassphrase(passphraseFile), argon2id);
  }

  /**
   * A source for a passphrase that is in no file; reads nothing yet.
   *
   * @param keyFile the wrapped data key
   * @param passphrase gives {@value #MIN_PASSPHRASE} to {@value #MAX_PASSPHRASE} bytes, each time a
   *     fresh array, which is zeroed here
   * @param argon2id should give its memory back: a heap that has grown by it stays that large
   */
  public PassphraseDataKeySource(Path keyFile, Supplier<byte[]> passphrase, Argon2id argon2id) {
    this.keyFile = keyFile;
    this.passphrase = passphrase;
    this.argon2id = argon2id;
  }

  /** Whether {@link #create} was done. */
  public boolean exists() {
    return Files.exists(keyFile);
  }

  /**
   * Makes a data key and stores it wrapped, durably. Never replaces one: everything that was sealed
   * under it would be lost.
   *
   * @throws UnsealException if there is one already, or on bad files
   */
  public void create(SecureRandom random, Cost cost) {
    byte[] dataKey = new byte[DATA_KEY_BYTES];
    random.nextBytes(dataKey);
    byte[] given = passphrase();
    try {
      ByteBuffer file = ByteBuffer.allocate(FILE);
      file.put(MAGIC).putInt(VERSION).putInt(cost.memoryKib()).putInt(cost.passes());
      file.putInt(cost.lanes());
      byte[] fresh = new byte[SALT + NONCE];
      random.nextBytes(fresh);
      file.put(fresh);
      byte[] header = Arrays.copyOf(file.array(), HEADER);
      file.put(crypt(Cipher.ENCRYPT_MODE, given, header, cost, dataKey));
      store(file.flip());
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every JDK has AES-256-GCM", e);
    } finally {
      Arrays.fill(dataKey, (byte) 0);
      Arrays.fill(given, (byte) 0);
    }
  }

  @Override
  public byte[] dataKey() {
    byte[] file = readBounded(keyFile, FILE, "data key file");
    ByteBuffer in = ByteBuffer.wrap(file);
    if (file.length != FILE || !Arrays.equals(file, 0, MAGIC.length, MAGIC, 0, MAGIC.length)) {
      throw new UnsealException("data key file " + keyFile + " is not a wrapped data key");
    }
    in.position(MAGIC.length);
    int version = in.getInt();
    if (version != VERSION) {
      throw new UnsealException(
          "data key file " + keyFile + " has version " + version + ", known is " + VERSION);
    }
    Cost cost;
    try {
      cost = new Cost(in.getInt(), in.getInt(), in.getInt());
    } catch (IllegalArgumentException e) {
      throw new UnsealException("data key file " + keyFile + ": " + e.getMessage());
    }
    byte[] given = passphrase();
    try {
      return crypt(
          Cipher.DECRYPT_MODE,
          given,
          Arrays.copyOf(file, HEADER),
          cost,
          Arrays.copyOfRange(file, HEADER, FILE));
    } catch (AEADBadTagException e) {
      throw new UnsealException(
          "wrong passphrase for data key file " + keyFile + ", or the file was altered");
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every JDK has AES-256-GCM", e);
    } finally {
      Arrays.fill(given, (byte) 0);
    }
  }

  private byte[] crypt(int mode, byte[] passphrase, byte[] header, Cost cost, byte[] input)
      throws GeneralSecurityException {
    byte[] salt = Arrays.copyOfRange(header, HEADER - NONCE - SALT, HEADER - NONCE);
    byte[] nonce = Arrays.copyOfRange(header, HEADER - NONCE, HEADER);
    byte[] wrappingKey =
        argon2id.derive(passphrase, salt, cost.memoryKib(), cost.passes(), cost.lanes());
    try {
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(
          mode, new SecretKeySpec(wrappingKey, "AES"), new GCMParameterSpec(TAG_BITS, nonce));
      cipher.updateAAD(header);
      return cipher.doFinal(input);
    } finally {
      Arrays.fill(wrappingKey, (byte) 0);
    }
  }

  private byte[] passphrase() {
    byte[] given = passphrase.get();
    if (given.length < MIN_PASSPHRASE || given.length > MAX_PASSPHRASE) {
      Arrays.fill(given, (byte) 0);
      throw new UnsealException(
          "the passphrase must have " + MIN_PASSPHRASE + " to " + MAX_PASSPHRASE + " bytes");
    }
    return given;
  }

  private static byte[] readPassphrase(Path passphraseFile) {
    byte[] raw = readBounded(passphraseFile, MAX_PASSPHRASE + 2, "passphrase file");
    int length = raw.length;
    if (length > 0 && raw[length - 1] == '\n') {
      length -= length > 1 && raw[length - 2] == '\r' ? 2 : 1;
    }
    byte[] passphrase = Arrays.copyOf(raw, length);
    Arrays.fill(raw, (byte) 0);
    if (length < MIN_PASSPHRASE || length > MAX_PASSPHRASE) {
      Arrays.fill(passphrase, (byte) 0);
      throw new UnsealException(
          "passphrase file "
              + passphraseFile
              + " must hold "
              + MIN_PASSPHRASE
              + " to "
              + MAX_PASSPHRASE
              + " bytes");
    }
    return passphrase;
  }

  /**
   * The first bytes of a file, at most one more than allowed so that the caller sees the excess.
   */
  private static byte[] readBounded(Path path, int limit, String what) {
    ByteBuffer buffer = ByteBuffer.allocate(limit + 1);
    try (FileChannel in = FileChannel.open(path, StandardOpenOption.READ)) {
      while (buffer.hasRemaining() && in.read(buffer) >= 0) {
        // until full or at the end
      }
      return Arrays.copyOf(buffer.array(), buffer.position());
    } catch (IOException e) {
      throw new UnsealException("cannot read " + what + " " + path, e);
    } finally {
      Arrays.fill(buffer.array(), (byte) 0);
    }
  }

  /**
   * Written aside and linked into place: there is either a whole file or none, after a crash too.
   */
  private void store(ByteBuffer content) {
    Path directory = keyFile.toAbsolutePath().getParent();
    if (directory == null) {
      throw new UnsealException("data key file " + keyFile + " has no directory");
    }
    if (exists()) {
      throw new UnsealException("data key file " + keyFile + " exists and is never replaced");
    }
    Path draft = directory.resolve(keyFile.getFileName() + ".new");
    try {
      Files.deleteIfExists(draft);
      try (FileChannel out =
          FileChannel.open(
              draft,
              Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
        while (content.hasRemaining()) {
          out.write(content);
        }
        out.force(true);
      }
      // A link, unlike a move, fails if the name is taken.
      Files.createLink(keyFile, draft);
      Files.delete(draft);
      try (FileChannel dir = FileChannel.open(directory, StandardOpenOption.READ)) {
        dir.force(true);
      }
    } catch (FileAlreadyExistsException e) {
      throw new UnsealException("data key file " + keyFile + " exists and is never replaced", e);
    } catch (IOException e) {
      throw new UnsealException("cannot write data key file " + keyFile, e);
    }
  }
}
