package io.coterie.cli.profile;

import io.coterie.cli.terminal.CliException;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.RequesterKeys;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.spec.ECGenParameterSpec;
import java.util.Arrays;
import java.util.Base64;

/** A key with which a requester signs intents, or an owner the trust file, as PEM files. */
public final class RequesterKeyFile {

  /** Signature algorithms a requester may use. */
  public enum Algorithm {
    ED25519,
    P256;

    private KeyPair generate() throws GeneralSecurityException {
      return switch (this) {
        case ED25519 -> KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
        case P256 -> {
          KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
          generator.initialize(new ECGenParameterSpec("secp256r1"));
          yield generator.generateKeyPair();
        }
      };
    }
  }

  private RequesterKeyFile() {}

  /**
   * Makes a key pair and writes it: {@code file} is the private half (PKCS#8), readable by its
   * owner only; {@link #publicFile} the public half (SPKI).
   *
   * @throws CliException if a file exists already or cannot be written
   */
  public static void create(Algorithm algorithm, Path file) {
    try {
      KeyPair pair = algorithm.generate();
      Files.createFile(
          file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
      Files.write(file, pem("PRIVATE KEY", pair.getPrivate().getEncoded()));
      Files.write(
          publicFile(file),
          pem("PUBLIC KEY", pair.getPublic().getEncoded()),
          StandardOpenOption.CREATE_NEW);
    } catch (FileAlreadyExistsException e) {
      throw CliException.local(e.getFile() + " exists already: choose another name");
    } catch (IOException | GeneralSecurityException e) {
      throw CliException.local("cannot write the key pair " + file + ": " + e.getMessage());
    }
  }

  /** Where the public half of a key file is. */
  public static Path publicFile(Path file) {
    return file.resolveSibling(file.getFileName() + ".pub");
  }

  /**
   * Reads a private key to sign intents with.
   *
   * @param requester our name in the services' configuration
   * @throws CliException saying what is wrong with the file or the name
   */
  public static IntentSigner read(String requester, Path file) {
    try {
      return new IntentSigner(requester, privateKey("requester key", file));
    } catch (IllegalArgumentException e) {
      throw CliException.local("requester key " + file + ": " + e.getMessage());
    }
  }

  /**
   * Reads a private key.
   *
   * @param what purpose of the key, for the text
   * @throws CliException saying what is wrong with the file
   */
  public static PrivateKey privateKey(String what, Path file) {
    byte[] pem = new byte[0];
    try {
      pem = Files.readAllBytes(PrivateFile.require(file));
      return RequesterKeys.privateKey(pem);
    } catch (IOException e) {
      throw CliException.local(what + " " + file + " cannot be read");
    } catch (IllegalArgumentException e) {
      throw CliException.local(what + " " + file + ": " + e.getMessage());
    } finally {
      Arrays.fill(pem, (byte) 0);
    }
  }

  private static byte[] pem(String label, byte[] der) {
    String body = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der);
    return ("-----BEGIN " + label + "-----\n" + body + "\n-----END " + label + "-----\n")
        .getBytes(StandardCharsets.US_ASCII);
  }
}
