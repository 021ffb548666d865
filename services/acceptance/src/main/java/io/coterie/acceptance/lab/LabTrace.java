package io.coterie.acceptance.lab;

import io.coterie.acceptance.cluster.Cluster;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * One signing as the services' logs tell it: all services run on one machine, so their clocks are
 * one, and the trace id that follows a signing finds its lines.
 */
public final class LabTrace {
  /** The services' settings that make them write what this reads. */
  static final String MESSAGING_DEBUG = "--logging.level.io.coterie.messaging.api=debug";

  static final String SIGNER_DEBUG = "--logging.level.io.coterie.signer.session=debug";

  private static final Duration WRITTEN = Duration.ofSeconds(5);
  private static final Duration POLL = Duration.ofMillis(20);
  private static final Pattern TIME = Pattern.compile("\"@timestamp\":\"([^\"]+)\"");
  private static final Pattern TRACE = Pattern.compile("\"trace_id\":\"([0-9a-f]+)\"");

  /**
   * A part of the signing.
   *
   * @param kind {@code way} of a message, {@code compute}, {@code all} of it, or its {@code floor}
   * @param begin milliseconds after the client's call
   */
  record Span(String what, String kind, double begin, double end) {
    String csv() {
      return String.format(Locale.ROOT, "\"%s\",%s,%.3f,%.3f", what, kind, begin, end);
    }
  }

  static final String HEADER = "what,kind,begin_ms,end_ms";

  private record Line(Instant at, String text) {}

  private final Instant begin;

  private LabTrace(Instant begin) {
    this.begin = begin;
  }

  /**
   * Reads what the services wrote about the only signing between two instants.
   *
   * @param coordinatorWay one-way milliseconds between coordinator and messaging
   */
  static List<Span> read(
      Cluster cluster, List<String> signers, Instant begin, Instant end, double coordinatorWay) {
    return new LabTrace(begin).spans(cluster, signers, end, coordinatorWay);
  }

  private List<Span> spans(
      Cluster cluster, List<String> signers, Instant end, double coordinatorWay) {
    // The coordinator answers first and writes then.
    Instant written = end.plus(WRITTEN);
    Predicate<String> result = l -> l.contains("signed in session");
    Path answers = cluster.coordinator().log();
    while (lines(answers, written, result).isEmpty() && Instant.now().isBefore(written)) {
      LockSupport.parkNanos(POLL.toNanos());
    }
    Line signed = only(lines(answers, written, result));
    Matcher trace = TRACE.matcher(signed.text());
    if (!trace.find()) {
      throw new IllegalStateException("a signing without a trace id");
    }
    String id = trace.group(1);
    List<Double> accepted =
        lines(
                cluster.messaging().log(),
                end,
                l -> l.contains(id) && l.contains("PUT /v1/messages/"))
            .stream()
            .map(this::millis)
            .toList();
    if (accepted.size() < 1 + signers.size()) {
      throw new IllegalStateException("messaging tells of " + accepted.size() + " messages");
    }
    double total = ChronoUnit.NANOS.between(begin, end) / 1e6;
    double ordered = accepted.getFirst();
    List<Span> spans = new ArrayList<>();
    spans.add(new Span("all", "all", 0, total));
    spans.add(
        new Span("coordinator: check, store, send order", "compute", 0, ordered - coordinatorWay));
    spans.add(new Span("order to messaging", "way", ordered - coordinatorWay, ordered));
    List<Span> parties = new ArrayList<>();
    for (String signer : signers) {
      Path log = cluster.signer(signer).log();
      double received = event(log, end, id, "CHECKED");
      double claimed = event(log, end, id, "CLAIMED");
      double sent = event(log, end, id, "LAST_SENT_UNOBSERVED");
      double arrived =
          accepted.stream().filter(at -> at >= sent).min(Comparator.naturalOrder()).orElse(sent);
      parties.add(new Span("order to " + signer, "way", ordered, received));
      parties.add(new Span(signer + ": claim on disk", "compute", received, claimed));
      parties.add(new Span(signer + ": sign and send", "compute", claimed, sent));
      parties.add(new Span(signer + "'s contribution to messaging", "way", sent, arrived));
    }
    spans.addAll(parties);
    double last = accepted.get(signers.size());
    double back = last + coordinatorWay;
    spans.add(new Span("last contribution to coordinator", "way", last, back));
    double stored = Math.min(millis(signed), total);
    spans.add(new Span("coordinator: combine, verify, store", "compute", back, stored));
    spans.add(new Span("answer to client", "way", stored, total));
    return spans;
  }

  private double event(Path log, Instant end, String trace, String event) {
    return millis(
        lines(log, end, l -> l.contains(trace) && l.contains("-> " + event + " ->")).stream()
            .findFirst()
            .orElseThrow(() -> new IllegalStateException(log + " tells nothing of " + event)));
  }

  private double millis(Line line) {
    return ChronoUnit.NANOS.between(begin, line.at()) / 1e6;
  }

  private static Line only(List<Line> lines) {
    if (lines.size() != 1) {
      throw new IllegalStateException(lines.size() + " lines instead of one");
    }
    return lines.getFirst();
  }

  private List<Line> lines(Path log, Instant end, Predicate<String> which) {
    try (Stream<String> all = Files.lines(log)) {
      return all.filter(which)
          .flatMap(text -> time(text).map(at -> new Line(at, text)).stream())
          .filter(l -> !l.at().isBefore(begin) && !l.at().isAfter(end))
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Optional<Instant> time(String text) {
    Matcher time = TIME.matcher(text);
    return time.find() ? Optional.of(Instant.parse(time.group(1))) : Optional.empty();
  }
}
