package io.coterie.acceptance.cluster;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/**
 * The management port of a program: probes and metrics.
 *
 * @param name of the program, for exceptions
 * @param http a client that trusts its certificate
 */
record Management(String name, URI base, HttpClient http) {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  /** HTTP status of a path; 0 if nobody answers. */
  int status(String path) {
    try {
      return get(path).statusCode();
    } catch (IOException e) {
      return 0;
    }
  }

  /** A reading of a Prometheus endpoint. */
  Metrics metrics(String path) {
    try {
      HttpResponse<String> answer = get(path);
      if (answer.statusCode() != 200) {
        throw new IllegalStateException(name + " " + path + ": " + answer.statusCode());
      }
      return Metrics.parse(answer.body());
    } catch (IOException e) {
      throw new UncheckedIOException(name + " gives no metrics", e);
    }
  }

  private HttpResponse<String> get(String path) throws IOException {
    try {
      return http.send(
          HttpRequest.newBuilder(base.resolve(path)).timeout(TIMEOUT).build(),
          HttpResponse.BodyHandlers.ofString());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }
}
