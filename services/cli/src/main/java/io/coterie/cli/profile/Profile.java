package io.coterie.cli.profile;

import io.coterie.cli.terminal.CliException;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.RequesterKeys;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustFile;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.io.Reader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;
import picocli.CommandLine.Option;

/** Where the installation is and who we are there. */
public final class Profile {
  /** Fifty keys whose shares have moved some dozen times each. */
  private static final int MAX_MESSAGE_BYTES = 16 << 20;

  /**
   * A connection on which nothing came for so long is asked whether it still is one: the machine at
   * its other end may be gone without a word, and TCP would notice after a quarter of an hour.
   */
  private static final Duration SILENCE = Duration.ofSeconds(20);

  private static final Duration KEEP_ALIVE_ANSWER = Duration.ofSeconds(5);

  @Option(
      names = "--profile",
      paramLabel = "FILE",
      description = "Settings; default ~/.config/coterie/profile.properties.")
  @Nullable Path file;

  @Option(
      names = "--endpoint",
      paramLabel = "HOST:PORT",
      description = "The coordinator's gRPC endpoint.")
  @Nullable String endpoint;

  @Option(names = "--ca", paramLabel = "FILE", description = "PEM file of the installation's CA.")
  @Nullable String ca;

  @Option(
      names = "--cert",
      paramLabel = "FILE",
      description = "PEM file of this client's certificate.")
  @Nullable String cert;

  @Option(
      names = "--key",
      paramLabel = "FILE",
      description = "PEM file (PKCS#8) of this client's TLS key.")
  @Nullable String key;

  @Option(
      names = "--trust",
      paramLabel = "FILE",
      description = "trust.json: the parties and requesters whose word on keys is believed.")
  @Nullable String trust;

  @Option(
      names = "--trust-roots",
      paramLabel = "FINGERPRINT",
      description =
          "Fingerprint of the root keys of the trust file, as 'coterie trust show' prints it.")
  @Nullable String trustRoots;

  @Option(
      names = "--trust-state",
      paramLabel = "FOLDER",
      description =
          "Keeps the highest version of the trust file that was accepted; default: beside the"
              + " trust file.")
  @Nullable String trustState;

  @Option(
      names = "--requester",
      paramLabel = "NAME",
      description = "Our name in the signers' configuration.")
  @Nullable String requester;

  @Option(
      names = "--requester-key",
      paramLabel = "FILE",
      description = "PEM file (PKCS#8) of the key that signs intents.")
  @Nullable String requesterKey;

  @Option(
      names = "--management",
      paramLabel = "URL",
      description = "The coordinator's management endpoint, for the doctor.")
  @Nullable String management;

  @Option(
      names = "--timeout",
      paramLabel = "SECONDS",
      defaultValue = "30",
      description = "How long to wait for an answer; default ${DEFAULT-VALUE}.")
  int timeoutSeconds = 30;

  private @Nullable Properties properties;

  /**
   * Lists these options after the others in the help of a command and its subcommands, so that a
   * command's own are read first.
   */
  public static void describeApart(CommandLine line) {
    CommandSpec command = line.getCommandSpec();
    command.usageMessage().abbreviateSynopsis(true);
    line.getHelpSectionMap().put(UsageMessageSpec.SECTION_KEY_OPTION_LIST, Profile::options);
    line.getSubcommands().values().forEach(Profile::describeApart);
  }

  private static String options(CommandLine.Help help) {
    List<OptionSpec> own = new ArrayList<>();
    List<OptionSpec> connection = new ArrayList<>();
    for (OptionSpec option : help.commandSpec().options()) {
      boolean ofProfile =
          option.userObject() instanceof Field field && field.getDeclaringClass() == Profile.class;
      (ofProfile ? connection : own).add(option);
    }
    return help.optionListExcludingGroups(own)
        + (connection.isEmpty()
            ? ""
            : "%nConnection; in a profile instead, see 'coterie --help':%n".formatted()
                + help.optionListExcludingGroups(connection));
  }

  /** Host and port of the coordinator. */
  public String endpoint() {
    return required("endpoint", endpoint);
  }

  /** The certificate of the installation's authority. */
  public Path ca() {
    return requiredFile("ca", ca);
  }

  /** This client's certificate. */
  public Path cert() {
    return requiredFile("cert", cert);
  }

  /** The private key of this client's certificate. */
  public Path key() {
    return requiredFile("key", key);
  }

  /**
   * The parties and requesters whose word on keys is believed.
   *
   * @throws CliException if there is no such file, or it is not one
   */
  public Trust trust() {
    Path path = requiredFile("trust", trust);
    try {
      SignedTrust signed = TrustFile.read(path).verified();
      optional("trust-roots", trustRoots).ifPresent(signed::requireRoots);
      signed.trust().requesters().forEach(Profile::requireKeys);
      AcceptedTrust.accept(signed, trustState(path));
      return signed.trust();
    } catch (IOException | IllegalArgumentException e) {
      throw CliException.local(
          "trust file "
              + path
              + " cannot be used: "
              + CliException.firstLine(e.getMessage())
              + ". Take it from the operators of the parties.");
    }
  }

  /** The folder with the versions that were accepted; that of the trust file unless given. */
  private Path trustState(Path trustFile) {
    return optional("trust-state", trustState)
        .map(folder -> resolved("trust-state", trustState, Path.of(folder)))
        .orElse(trustFile.toAbsolutePath().resolveSibling(""));
  }

  private static void requireKeys(Trust.Requester requester) {
    try {
      requester.publicKeys().forEach(RequesterKeys::publicKey);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "a key of requester " + requester.name() + " is " + e.getMessage(), e);
    }
  }

  /** The coordinator's management endpoint, if one is named. */
  public Optional<String> management() {
    return optional("management", management);
  }

  /** How long to wait for an answer. */
  public Duration timeout() {
    return Duration.ofSeconds(timeoutSeconds);
  }

  /** Signs intents as the requester. */
  public IntentSigner requesterKey() {
    return RequesterKeyFile.read(requester(), requiredFile("requester-key", requesterKey));
  }

  /** Name of the requester in the trust file. */
  public String requester() {
    return required("requester", requester);
  }

  /** A channel with our certificate; trusts the installation's CA and nothing else. */
  public Connection connect() {
    String target = endpoint();
    ChannelCredentials credentials = TlsFiles.credentials(ca(), cert(), key());
    ManagedChannel channel =
        Grpc.newChannelBuilder(target, credentials)
            .maxInboundMessageSize(MAX_MESSAGE_BYTES)
            .keepAliveTime(SILENCE.toNanos(), TimeUnit.NANOSECONDS)
            .keepAliveTimeout(KEEP_ALIVE_ANSWER.toNanos(), TimeUnit.NANOSECONDS)
            .build();
    // Connects at once: the handshake goes on while the trust file is read.
    channel.getState(true);
    return new Connection(channel);
  }

  /** A channel that is closed at the end of a try block. */
  public record Connection(ManagedChannel channel) implements AutoCloseable {
    @Override
    public void close() {
      channel.shutdownNow();
      try {
        channel.awaitTermination(1, TimeUnit.SECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private String required(String name, @Nullable String option) {
    return optional(name, option)
        .orElseThrow(
            () ->
                CliException.local(
                    "no "
                        + name
                        + ": give --"
                        + name
                        + ", set COTERIE_"
                        + environmentName(name)
                        + ", or put '"
                        + name
                        + "=' into a profile (--profile FILE)"));
  }

  private Path requiredFile(String name, @Nullable String option) {
    Path path = resolved(name, option, Path.of(required(name, option)));
    if (!Files.isReadable(path)) {
      throw CliException.local(name + " file " + path + " cannot be read");
    }
    return path;
  }

  /** A path of the profile as its author meant it: relative to the profile. */
  private Path resolved(String name, @Nullable String option, Path path) {
    return option == null && System.getenv(environment(name)) == null
        ? profilePath().toAbsolutePath().resolveSibling(path)
        : path;
  }

  private Optional<String> optional(String name, @Nullable String option) {
    if (option != null) {
      return Optional.of(option);
    }
    String fromEnvironment = System.getenv(environment(name));
    if (fromEnvironment != null) {
      return Optional.of(fromEnvironment);
    }
    return Optional.ofNullable(properties().getProperty(name)).map(String::strip);
  }

  private static String environment(String name) {
    return "COTERIE_" + environmentName(name);
  }

  private static String environmentName(String name) {
    return name.toUpperCase(Locale.ROOT).replace('-', '_');
  }

  private Path profilePath() {
    if (file != null) {
      return file;
    }
    String fromEnvironment = System.getenv("COTERIE_PROFILE");
    return fromEnvironment != null
        ? Path.of(fromEnvironment)
        : Path.of(System.getProperty("user.home"), ".config", "coterie", "profile.properties");
  }

  private Properties properties() {
    if (properties == null) {
      Properties read = new Properties();
      Path path = profilePath();
      if (Files.exists(path)) {
        try (Reader reader = Files.newBufferedReader(path, StandardCharsets.UTF_8)) {
          read.load(reader);
        } catch (IOException | IllegalArgumentException e) {
          throw CliException.local("profile " + path + " cannot be read: " + e.getMessage());
        }
      } else if (file != null) {
        throw CliException.local("profile " + path + " does not exist");
      }
      properties = read;
    }
    return properties;
  }
}
