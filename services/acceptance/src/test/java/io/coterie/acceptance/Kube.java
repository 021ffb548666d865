package io.coterie.acceptance;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * {@code kubectl} and {@code helm} as a person would use them, on the cluster that {@code
 * KUBECONFIG} names.
 */
final class Kube {
  private static final Duration TIMEOUT = Duration.ofMinutes(8);
  private static final String ROLLOUT_TIMEOUT = "300s";

  private final Path folder;

  /**
   * @param folder for what the commands print
   */
  Kube(Path folder) {
    this.folder = folder;
  }

  /** The output of a command. */
  private record Result(int status, String output, String complaint) {}

  /** Runs a command and returns what it printed; throws with its complaint if it fails. */
  String run(List<String> words) {
    Result result = execute(words);
    if (result.status() != 0) {
      throw new IllegalStateException(
          "%s ended with %d: %s%s"
              .formatted(
                  String.join(" ", words), result.status(), result.output(), result.complaint()));
    }
    return result.output();
  }

  /** The output of a command, if it succeeded. */
  Optional<String> attempt(List<String> words) {
    Result result = execute(words);
    return result.status() == 0 ? Optional.of(result.output()) : Optional.empty();
  }

  /**
   * Runs a script in bash, from the root of the project, until a command of it fails.
   *
   * @param absent variables that it does not inherit
   * @param variables its environment instead
   * @return its output
   */
  String shell(String script, Set<String> absent, Map<String, String> variables) {
    Result result =
        execute(
            List.of("bash", "-euo", "pipefail", "-c", script),
            process -> {
              process.directory(ProjectRoot.PATH.toFile());
              process.environment().keySet().removeAll(absent);
              process.environment().putAll(variables);
            });
    if (result.status() != 0) {
      throw new IllegalStateException(
          "this ended with %d: %s%s%nit was:%n%s"
              .formatted(result.status(), result.output(), result.complaint(), script));
    }
    return result.output();
  }

  private Result execute(List<String> words) {
    return execute(words, process -> {});
  }

  private Result execute(List<String> words, Consumer<ProcessBuilder> settings) {
    try {
      Path output = Files.createTempFile(folder, "stdout-", "");
      Path complaint = Files.createTempFile(folder, "stderr-", "");
      ProcessBuilder builder =
          new ProcessBuilder(words)
              .redirectInput(ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()))
              .redirectOutput(output.toFile())
              .redirectError(complaint.toFile());
      settings.accept(builder);
      Process process = builder.start();
      boolean ended = process.waitFor(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
      if (!ended) {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly().waitFor();
      }
      Result result =
          new Result(
              ended ? process.exitValue() : -1,
              Files.readString(output),
              Files.readString(complaint) + (ended ? "" : "not done after " + TIMEOUT));
      Files.delete(output);
      Files.delete(complaint);
      return result;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }

  /** {@code kubectl --namespace ...}. */
  String kubectl(String namespace, String... words) {
    return run(inNamespace("kubectl", namespace, words));
  }

  Optional<String> attemptKubectl(String namespace, String... words) {
    return attempt(inNamespace("kubectl", namespace, words));
  }

  private static List<String> inNamespace(String program, String namespace, String... words) {
    List<String> all = new ArrayList<>(List.of(program, "--namespace", namespace));
    all.addAll(List.of(words));
    return all;
  }

  /** Applies a manifest. */
  void apply(String namespace, String manifest) {
    try {
      Path file = Files.writeString(folder.resolve("manifest.yaml"), manifest);
      kubectl(namespace, "apply", "--filename", file.toString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** One field of an object, as {@code -o jsonpath} prints it. */
  String field(String namespace, String object, String path) {
    return kubectl(namespace, "get", object, "--output", "jsonpath={" + path + "}").strip();
  }

  /** Waits until all pods of a workload are of its present template and ready. */
  void rollout(String namespace, String workload) {
    kubectl(namespace, "rollout", "status", workload, "--timeout=" + ROLLOUT_TIMEOUT);
  }
}
