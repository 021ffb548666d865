package io.coterie.acceptance.cluster;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * One service of an installation: as a Spring context of this JVM, or as a process of its own,
 * which may stay when the service is stopped.
 */
public final class Service implements AutoCloseable {
  private static final Duration POLL = Duration.ofMillis(25);
  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(60);

  /**
   * How a service starts.
   *
   * @param inJvm {@code XApplication::start}
   * @param main the class with the {@code main} method
   * @param heap {@code -Xmx} of a process, for example {@code 96m}
   */
  record Program(
      Function<String[], ConfigurableApplicationContext> inJvm, Class<?> main, String heap) {}

  /**
   * A command that starts a service as a process, instead of the class path of this JVM.
   *
   * @param folder that the process works in
   * @param command asked for at each start; the service's arguments come after it
   */
  public record Launch(Path folder, Supplier<List<String>> command) {}

  /** The process or context that a service lives in. */
  enum Home {
    /** This JVM, as a context. */
    CONTEXT,
    /** A process of its own. */
    PROCESS,
    /** A process of its own that outlives {@link #stop}: see {@link Resident}. */
    RESIDENT
  }

  private final String name;
  private final Program program;
  private final List<String> arguments;
  private final Path folder;
  private final Management port;
  private final Home home;
  private final Site site;
  private final @Nullable Launch launch;
  private boolean residentRuns;
  private @Nullable ConfigurableApplicationContext context;
  private @Nullable Process process;

  Service(
      String name,
      Program program,
      List<String> arguments,
      Path folder,
      int managementPort,
      HttpClient http,
      Home home,
      Site site,
      @Nullable Launch launch) {
    if (launch != null && home != Home.PROCESS) {
      throw new IllegalArgumentException(name + " has a command to start it, and is no process");
    }
    this.name = name;
    this.program = program;
    this.arguments = List.copyOf(arguments);
    this.folder = folder;
    URI base = URI.create("https://" + site.direct() + ":" + managementPort);
    this.port = new Management(name, base, http);
    this.home = home;
    this.site = site;
    this.launch = launch;
  }

  public String name() {
    return name;
  }

  /** Where the service keeps its data. */
  public Path folder() {
    return folder;
  }

  /** The service's log. In one JVM all services share one. */
  public Path log() {
    return home == Home.CONTEXT ? folder.resolveSibling("log.json") : folder.resolve("log.json");
  }

  public URI management() {
    return port.base();
  }

  /** The context of a service that runs in this JVM. */
  public ConfigurableApplicationContext context() {
    if (context == null) {
      throw new IllegalStateException(name + " does not run in this JVM");
    }
    return context;
  }

  /**
   * Starts the service.
   *
   * @param more further Spring settings for this run, {@code --key=value}; they win over the others
   */
  public synchronized void start(String... more) {
    List<String> all = new ArrayList<>(arguments);
    all.addAll(List.of(more));
    if (running()) {
      throw new IllegalStateException(name + " runs already");
    }
    try {
      Files.createDirectories(folder);
      switch (home) {
        case CONTEXT -> context = program.inJvm().apply(all.toArray(String[]::new));
        case PROCESS ->
            process =
                (launch == null ? builder(program.main(), all) : builder(launch, all))
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.appendTo(log().toFile()))
                    .start();
        case RESIDENT -> {
          if (process == null || !process.isAlive()) {
            process =
                builder(Resident.class, List.of(program.main().getName()))
                    .redirectError(ProcessBuilder.Redirect.appendTo(log().toFile()))
                    .start();
          }
          all.add("--logging.file.name=" + log());
          all.add("--logging.structured.format.file=ecs");
          all.add("--logging.threshold.console=OFF");
          tell(process, Resident.START + "\t" + String.join("\t", all));
          residentRuns = true;
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void tell(Process resident, String line) throws IOException {
    BufferedWriter orders = resident.outputWriter();
    orders.write(line);
    orders.newLine();
    orders.flush();
    String answer = resident.inputReader().readLine();
    if (!Resident.DONE.equals(answer)) {
      throw new IllegalStateException(
          "%s: %s; the end of its log:%n%s".formatted(name, answer, logTail()));
    }
  }

  private ProcessBuilder builder(Launch launch, List<String> all) {
    List<String> command = new ArrayList<>(site.launcher());
    command.addAll(launch.command().get());
    command.addAll(all);
    return new ProcessBuilder(command).directory(launch.folder().toFile());
  }

  private ProcessBuilder builder(Class<?> main, List<String> all) {
    List<String> command = new ArrayList<>(site.launcher());
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(a -> a.startsWith("-Djava.library.path=") || a.startsWith("-XX:AOTCache="))
        .forEach(command::add);
    command.addAll(
        List.of(
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow",
            "-XX:+UseSerialGC",
            "-Xmx" + program.heap(),
            "-cp",
            classPath(),
            main.getName()));
    command.addAll(all);
    return new ProcessBuilder(command);
  }

  /** Surefire hides the class path in a jar's manifest; it tells the real one separately. */
  private static String classPath() {
    return System.getProperty(
        "surefire.real.class.path",
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")));
  }

  public synchronized boolean running() {
    return (process != null && process.isAlive() && (home == Home.PROCESS || residentRuns))
        || (context != null && context.isActive());
  }

  /** Ends the service as {@code kill -9} does; in one JVM, as fast as a context can be closed. */
  public synchronized void kill() {
    if (process != null) {
      process.destroyForcibly();
      process.onExit().join();
      process = null;
    }
    closeContext();
  }

  /** Stops the service in order and waits for its end; the process of a resident stays. */
  public synchronized void stop() {
    Process resident = process;
    if (home != Home.RESIDENT || resident == null) {
      close();
      return;
    }
    try {
      tell(resident, Resident.STOP);
      residentRuns = false;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Stops what a resident does; the service around it runs on. */
  public synchronized void leave() {
    tell(Resident.LEAVE);
  }

  /** Starts again what {@link #leave} stopped. */
  public synchronized void join() {
    tell(Resident.JOIN);
  }

  private void tell(String order) {
    Process resident = process;
    if (resident == null || !residentRuns) {
      throw new IllegalStateException(name + " does not run in a resident");
    }
    try {
      tell(resident, order);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Stops the service in order, with its process, and waits for its end. */
  @Override
  public synchronized void close() {
    if (process != null) {
      end(process, STOP_TIMEOUT);
      process = null;
    }
    closeContext();
  }

  /** Asks a process to end, and ends it when it has not after the timeout. */
  static void end(Process process, Duration timeout) {
    process.destroy();
    try {
      if (!process.waitFor(timeout.toMillis(), TimeUnit.MILLISECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }

  private void closeContext() {
    if (context != null) {
      context.close();
      context = null;
    }
  }

  /** Starts again after {@link #kill} or {@link #close}, and waits until ready. */
  public void restart(Duration timeout) {
    start();
    awaitReady(timeout);
  }

  /** Waits until the service says it is ready for work. */
  public void awaitReady(Duration timeout) {
    await(timeout, () -> status("/actuator/health/readiness") == 200, "ready");
  }

  /** Waits for a file that the service writes. */
  void awaitFile(Path file, Duration timeout) {
    await(timeout, () -> Files.exists(file), "writing " + file);
  }

  private interface Condition {
    boolean holds();
  }

  private void await(Duration timeout, Condition condition, String what) {
    long end = System.nanoTime() + timeout.toNanos();
    while (!condition.holds()) {
      if (!running()) {
        throw new IllegalStateException(name + " has ended; the end of its log:\n" + logTail());
      }
      if (System.nanoTime() > end) {
        throw new IllegalStateException(
            name + " is not " + what + " after " + timeout + "; the end of its log:\n" + logTail());
      }
      LockSupport.parkNanos(POLL.toNanos());
    }
  }

  /** HTTP status of a management path; 0 if nobody answers. */
  public int status(String path) {
    return port.status(path);
  }

  /** A reading of the Prometheus endpoint, with the label {@code service}. */
  public Metrics metrics() {
    return port.metrics("/actuator/prometheus").labelled("service", name);
  }

  /** Resident memory of the process in bytes. */
  public long residentBytes() {
    Process running = process;
    if (running == null) {
      throw new IllegalStateException(name + " is not a process of its own");
    }
    try {
      return Files.readAllLines(Path.of("/proc", "" + running.pid(), "status")).stream()
          .filter(line -> line.startsWith("VmRSS:"))
          .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) * 1024)
          .findFirst()
          .orElseThrow();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private String logTail() {
    try {
      List<String> lines = Files.readAllLines(log());
      return String.join("\n", lines.subList(Math.max(0, lines.size() - 20), lines.size()));
    } catch (IOException e) {
      return "(no log: " + e.getMessage() + ")";
    }
  }
}
