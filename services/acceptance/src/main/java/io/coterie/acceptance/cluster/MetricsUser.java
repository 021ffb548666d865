package io.coterie.acceptance.cluster;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Authenticator;
import java.net.PasswordAuthentication;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Base64;

/**
 * The user who may read the metrics of an installation.
 *
 * @param passwordFile for services and Prometheus
 * @param usersFile the same as a hash, for Envoy
 */
public record MetricsUser(Path passwordFile, Path usersFile) {
  /** The name under which the services know the user. */
  public static final String NAME = "metrics";

  private static final int PASSWORD_BYTES = 24;

  /** Draws a password, and writes it into a folder. */
  public static MetricsUser create(Path folder) {
    byte[] random = new byte[PASSWORD_BYTES];
    new SecureRandom().nextBytes(random);
    String password = Base64.getEncoder().encodeToString(random);
    try {
      byte[] hash =
          MessageDigest.getInstance("SHA-1").digest(password.getBytes(StandardCharsets.UTF_8));
      String line = NAME + ":{SHA}" + Base64.getEncoder().encodeToString(hash) + "\n";
      Files.createDirectories(folder);
      return new MetricsUser(
          Files.writeString(folder.resolve("password"), password),
          Files.writeString(folder.resolve("users"), line));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-1", e);
    }
  }

  /** Shows the password to servers that ask for it. */
  Authenticator authenticator() {
    try {
      char[] password = Files.readString(passwordFile).toCharArray();
      return new Authenticator() {
        @Override
        protected PasswordAuthentication getPasswordAuthentication() {
          return new PasswordAuthentication(NAME, password);
        }
      };
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
