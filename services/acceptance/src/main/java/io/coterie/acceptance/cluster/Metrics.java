package io.coterie.acceptance.cluster;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** One reading of a service's Prometheus endpoint. */
public record Metrics(List<Sample> samples) {

  /** One line of the text format. */
  public record Sample(String name, Map<String, String> labels, double value) {
    public String label(String key) {
      return labels.getOrDefault(key, "");
    }
  }

  private static final Pattern LINE =
      Pattern.compile("([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\\{(.*)})? (\\S+)(?: -?\\d+)?");
  private static final Pattern LABEL =
      Pattern.compile("([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\\]|\\\\.)*)\"");

  public static Metrics parse(String text) {
    List<Sample> samples = new ArrayList<>();
    text.lines()
        .filter(line -> !line.startsWith("#"))
        .map(LINE::matcher)
        .filter(Matcher::matches)
        .forEach(
            line -> {
              Map<String, String> labels = new TreeMap<>();
              if (line.group(2) != null) {
                Matcher label = LABEL.matcher(line.group(2));
                while (label.find()) {
                  labels.put(label.group(1), label.group(2));
                }
              }
              samples.add(new Sample(line.group(1), labels, number(line.group(3))));
            });
    return new Metrics(List.copyOf(samples));
  }

  /** A number as the text format writes it, infinities too. */
  public static double number(String text) {
    return switch (text) {
      case "+Inf" -> Double.POSITIVE_INFINITY;
      case "-Inf" -> Double.NEGATIVE_INFINITY;
      default -> Double.parseDouble(text);
    };
  }

  /** The same with one more label on every sample. */
  public Metrics labelled(String key, String value) {
    return new Metrics(
        samples.stream()
            .map(
                s -> {
                  Map<String, String> labels = new TreeMap<>(s.labels());
                  labels.put(key, value);
                  return new Sample(s.name(), labels, s.value());
                })
            .toList());
  }

  /** Everything of several services together. */
  public static Metrics union(Collection<Metrics> all) {
    return new Metrics(all.stream().flatMap(m -> m.samples().stream()).toList());
  }

  /** Sum of a metric over all its series that match. */
  public double sum(String name, Predicate<Sample> which) {
    return samples.stream()
        .filter(s -> s.name().equals(name) && which.test(s))
        .mapToDouble(Sample::value)
        .sum();
  }

  public double sum(String name) {
    return sum(name, s -> true);
  }

  /** The values a label takes for a metric, in order. */
  public List<String> values(String name, String label) {
    return samples.stream()
        .filter(s -> s.name().equals(name) && s.labels().containsKey(label))
        .map(s -> s.label(label))
        .distinct()
        .sorted()
        .toList();
  }

  /** The change since an earlier reading; gauges make no sense in it. */
  public Metrics since(Metrics before) {
    Map<String, Double> old = new TreeMap<>();
    before.samples().forEach(s -> old.merge(s.name() + s.labels(), s.value(), Double::sum));
    return new Metrics(
        samples.stream()
            .map(
                s ->
                    new Sample(
                        s.name(),
                        s.labels(),
                        s.value() - old.getOrDefault(s.name() + s.labels(), 0.0)))
            .toList());
  }

  /**
   * A quantile of a timer's histogram in seconds, interpolated in its bucket as Prometheus does.
   *
   * @param timer name without {@code _bucket}
   */
  public Optional<Double> quantile(double q, String timer, Predicate<Sample> which) {
    Map<Double, Double> cumulative = new TreeMap<>(Comparator.naturalOrder());
    samples.stream()
        .filter(s -> s.name().equals(timer + "_bucket") && which.test(s))
        .forEach(s -> cumulative.merge(number(s.label("le")), s.value(), Double::sum));
    double total = cumulative.getOrDefault(Double.POSITIVE_INFINITY, 0.0);
    if (total == 0) {
      return Optional.empty();
    }
    double rank = q * total;
    double lowerBound = 0;
    double lowerCount = 0;
    for (Map.Entry<Double, Double> bucket : cumulative.entrySet()) {
      if (bucket.getValue() >= rank) {
        if (bucket.getKey().isInfinite()) {
          return Optional.of(lowerBound);
        }
        double share = (rank - lowerCount) / Math.max(1e-9, bucket.getValue() - lowerCount);
        return Optional.of(lowerBound + (bucket.getKey() - lowerBound) * share);
      }
      lowerBound = bucket.getKey();
      lowerCount = bucket.getValue();
    }
    return Optional.empty();
  }
}
