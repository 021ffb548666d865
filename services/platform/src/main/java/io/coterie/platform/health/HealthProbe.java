package io.coterie.platform.health;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Asks a service over TLS whether it is ready, as {@code helm test} does: the images have no shell
 * and no other program that could.
 */
public final class HealthProbe {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  private HealthProbe() {}

  /**
   * Prints what the service says and ends with 0 if its status is 200, with 1 otherwise.
   *
   * @param args the URI to ask and the PEM file of the certificate authority to trust
   */
  public static void main(String... args) {
    if (args.length != 2) {
      System.err.println("usage: HealthProbe https://NAME:PORT/PATH CA.pem");
      System.exit(2);
    }
    try {
      HttpResponse<String> answer = ask(URI.create(args[0]), Path.of(args[1]));
      System.out.println(answer.statusCode() + " " + answer.body());
      System.exit(answer.statusCode() == 200 ? 0 : 1);
    } catch (IOException | GeneralSecurityException | IllegalArgumentException e) {
      System.err.println(args[0] + ": " + e);
      System.exit(1);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      System.exit(1);
    }
  }

  static HttpResponse<String> ask(URI uri, Path authority)
      throws IOException, GeneralSecurityException, InterruptedException {
    try (HttpClient http =
        HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .sslContext(trusting(authority))
            .connectTimeout(TIMEOUT)
            .build()) {
      return http.send(
          HttpRequest.newBuilder(uri).timeout(TIMEOUT).build(),
          HttpResponse.BodyHandlers.ofString());
    }
  }

  private static SSLContext trusting(Path authority) throws IOException, GeneralSecurityException {
    KeyStore trust = KeyStore.getInstance(KeyStore.getDefaultType());
    trust.load(null, null);
    try (InputStream pem = Files.newInputStream(authority)) {
      trust.setCertificateEntry(
          "ca", CertificateFactory.getInstance("X.509").generateCertificate(pem));
    }
    TrustManagerFactory managers =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(trust);
    SSLContext tls = SSLContext.getInstance("TLSv1.3");
    tls.init(null, managers.getTrustManagers(), null);
    return tls;
  }
}
