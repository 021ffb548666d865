package io.coterie.cli.doctor;

import static java.util.concurrent.TimeUnit.SECONDS;

import io.coterie.cli.profile.Profile;
import io.coterie.cli.profile.TlsFiles;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Printing;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.RequesterKeys;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.trust.Trust;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthGrpc;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.List;
import java.util.concurrent.Callable;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code coterie doctor} finds faults between this machine and the installation. */
@Command(
    name = "doctor",
    mixinStandardHelpOptions = true,
    description = "Check files, certificates, connection, health and clock.")
public final class DoctorCommand implements Callable<Integer> {
  private static final Duration WARN_BEFORE_EXPIRY = Duration.ofDays(14);

  /** The HTTP date has whole seconds, and the answer takes time. */
  private static final Duration CLOCK_TOLERANCE = Duration.ofSeconds(5);

  private static final String NOT_CHECKED = "not checked: ";

  @Spec @Nullable CommandSpec spec;
  @Mixin Profile profile = new Profile();
  private boolean failed;

  /** Requesters of the trust file; none before it was read. */
  private List<Trust.Requester> requesters = List.of();

  /** One check: its finding, or an exception that says what to do. */
  private interface Check {
    String run() throws Exception;
  }

  @Override
  public Integer call() {
    check("ca", () -> certificate(profile.ca()));
    // Of another authority than the first, which the coordinator knows and this machine need not.
    check("certificate", () -> certificate(profile.cert()));
    check(
        "tls key",
        () -> {
          if (!TlsFiles.belongs(profile.key(), TlsFiles.certificate("cert", profile.cert()))) {
            throw CliException.local(
                profile.key()
                    + " is not the key of "
                    + profile.cert()
                    + ": give both of one client");
          }
          return profile.key().toString();
        });
    check(
        "trust",
        () -> {
          Trust trust = profile.trust();
          requesters = trust.requesters();
          return trust.roster().installation() + ", version " + trust.roster().version();
        });
    check("requester", () -> requester(profile.requester(), profile.requesterKey()));
    try (Profile.Connection connection = profile.connect()) {
      check(
          "health",
          () -> {
            HealthCheckResponse health =
                HealthGrpc.newBlockingStub(connection.channel())
                    .withDeadlineAfter(profile.timeout().toSeconds(), SECONDS)
                    .check(HealthCheckRequest.getDefaultInstance());
            if (health.getStatus() != HealthCheckResponse.ServingStatus.SERVING) {
              throw new IllegalStateException(
                  "the coordinator says " + health.getStatus() + ": see its log");
            }
            return profile.endpoint() + " serves";
          });
      check(
          "api",
          () -> {
            long start = System.nanoTime();
            KeyServiceGrpc.newBlockingStub(connection.channel())
                .withDeadlineAfter(profile.timeout().toSeconds(), SECONDS)
                .listKeys(ListKeysRequest.newBuilder().setPageSize(1).build());
            return "answers in " + (System.nanoTime() - start) / 1_000_000 + " ms";
          });
    } catch (CliException e) {
      check(
          "connection",
          () -> {
            throw e;
          });
    }
    check(
        "clock",
        () ->
            profile.management().isPresent()
                ? clock(URI.create(profile.management().get()))
                : NOT_CHECKED + "no management endpoint in the profile");
    return failed ? ExitCode.NO : 0;
  }

  private void check(String name, Check check) {
    String mark = "ok";
    String text;
    try {
      text = check.run();
      mark = text.startsWith(NOT_CHECKED) ? "skip" : mark;
    } catch (StatusRuntimeException e) {
      mark = "FAIL";
      text =
          e.getStatus().getCode() == Status.Code.UNAVAILABLE
              ? CliException.of(e).getMessage().replaceFirst("\\. (Try again|One side).*", "")
                  + ": is the coordinator running, and is its certificate from this CA?"
              : CliException.of(e).getMessage();
      failed = true;
    } catch (Exception e) {
      mark = "FAIL";
      text = reason(e);
      failed = true;
    }
    Printing.out(spec).printf("%-5s %-12s %s%n", mark, name, Output.oneLine(text));
  }

  /** The cause of a failure, also where an exception has no text or hides that of its cause. */
  private static String reason(Throwable failure) {
    Throwable root = root(failure);
    String said = CliException.firstLine(failure.getMessage());
    String cause = CliException.firstLine(root.getMessage());
    String kind = root.getClass().getSimpleName();
    return said.isEmpty()
        ? kind + (cause.isEmpty() ? "" : ": " + cause)
        : said + (root == failure || cause.isEmpty() || said.contains(cause) ? "" : ": " + cause);
  }

  private static Throwable root(Throwable failure) {
    Throwable root = failure;
    while (root.getCause() != null) {
      root = root.getCause();
    }
    return root;
  }

  private String requester(String name, IntentSigner signer) {
    List<byte[]> keys =
        requesters.stream()
            .filter(known -> known.name().equals(name))
            .flatMap(known -> known.publicKeys().stream())
            .toList();
    if (keys.isEmpty()) {
      return NOT_CHECKED + "the trust file has no key of requester " + name;
    }
    if (keys.stream().map(RequesterKeys::publicKey).noneMatch(signer::isOf)) {
      throw CliException.local(
          "the requester key is none that the trust file has of "
              + name
              + ": give requester and requester-key of one client");
    }
    return name;
  }

  private static String certificate(Path file) {
    X509Certificate certificate = TlsFiles.certificate("certificate", file);
    Instant end = certificate.getNotAfter().toInstant();
    Duration left = Duration.between(Instant.now(), end);
    if (left.isNegative() || certificate.getNotBefore().toInstant().isAfter(Instant.now())) {
      throw CliException.local(
          file
              + " is valid from "
              + certificate.getNotBefore().toInstant()
              + " to "
              + end
              + " only: renew it, or set this machine's clock");
    }
    return certificate.getSubjectX500Principal()
        + ", "
        + left.toDays()
        + " days left"
        + (left.compareTo(WARN_BEFORE_EXPIRY) < 0 ? ": renew it soon" : "");
  }

  private String clock(URI management) throws Exception {
    SSLContext tls = SSLContext.getInstance("TLS");
    tls.init(null, TlsFiles.authorities(profile.ca()), null);
    try (HttpClient client =
        HttpClient.newBuilder().sslContext(tls).connectTimeout(profile.timeout()).build()) {
      HttpResponse<InputStream> answer = readiness(client, management);
      // Its head says all; its body may have no end.
      answer.body().close();
      if (answer.statusCode() != 200) {
        throw new IllegalStateException(
            "the coordinator is not ready (HTTP " + answer.statusCode() + "): see its log");
      }
      String date = answer.headers().firstValue("Date").orElse("");
      if (date.isEmpty()) {
        return NOT_CHECKED + "the management endpoint tells no time";
      }
      Duration skew = Duration.between(Instant.now(), time(date));
      if (skew.abs().compareTo(CLOCK_TOLERANCE) > 0) {
        throw new IllegalStateException(
            "this machine differs by " + skew.abs().toSeconds() + " s: set the clock (NTP)");
      }
      return "within " + CLOCK_TOLERANCE.toSeconds() + " s of the coordinator";
    }
  }

  private HttpResponse<InputStream> readiness(HttpClient client, URI management)
      throws InterruptedException {
    try {
      return client.send(
          HttpRequest.newBuilder(management.resolve("/actuator/health/readiness"))
              .timeout(profile.timeout())
              .build(),
          HttpResponse.BodyHandlers.ofInputStream());
    } catch (IOException e) {
      // Only the cause says in words that a certificate is not believed.
      String said = CliException.firstLine(root(e).getMessage());
      throw CliException.local(
          management
              + " gives no answer"
              + (said.isEmpty() ? "" : " (" + said + ")")
              + ": is it the coordinator's management endpoint, with a certificate from this CA?");
    }
  }

  private static Instant time(String date) {
    try {
      return ZonedDateTime.parse(date, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
    } catch (DateTimeParseException e) {
      throw CliException.local(
          "the management endpoint tells a Date that is none: is it the coordinator's?");
    }
  }
}
