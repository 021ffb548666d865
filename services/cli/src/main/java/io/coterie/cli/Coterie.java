package io.coterie.cli;

import io.coterie.cli.doctor.DoctorCommand;
import io.coterie.cli.group.GroupCommand;
import io.coterie.cli.intent.IntentCommand;
import io.coterie.cli.key.KeysCommand;
import io.coterie.cli.plan.PlanCommand;
import io.coterie.cli.profile.Preparation;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.signing.CancelCommand;
import io.coterie.cli.signing.LoadCommand;
import io.coterie.cli.signing.SignCommand;
import io.coterie.cli.signing.VerifyCommand;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.ProcessTerminal;
import io.coterie.cli.terminal.Terminal;
import io.coterie.cli.trust.TrustCommand;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Set;
import java.util.logging.LogManager;
import picocli.AutoComplete;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/** The command line client of a Coterie installation. */
@Command(
    name = "coterie",
    mixinStandardHelpOptions = true,
    version = "coterie 0.1.0",
    description = "Keys that exist only as shares, and signatures made by a quorum.",
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {
      "0:done",
      "1:the answer is no: a signature that does not verify, a check of the doctor that failed, a request to cancel that"
          + " is signed",
      "2:the command line is wrong",
      "3:the installation refused, and the reason says why; or its answer is not attested and was not believed",
      "4:the installation cannot be reached or did not finish in time, or it is not known whether a request is signed;"
          + " try again with the same request id",
      "5:a local file is missing or wrong",
      "6:the parties have proven that the request to sign never is signed",
      "70:a bug in this command"
    },
    footerHeading = "%nSettings:%n",
    footer = {
      "  Options of the connection can stand in a profile (--profile FILE, default",
      "  ~/.config/coterie/profile.properties) as name=value without the dashes, or",
      "  in the environment as COTERIE_NAME. An option wins over the environment,",
      "  the environment over the profile.",
      "  Completion in bash and zsh: source <(coterie generate-completion)"
    })
public final class Coterie implements Terminal.Holder {

  /** In the order of the help. */
  private static final List<Class<?>> COMMANDS =
      List.of(
          KeysCommand.class,
          GroupCommand.class,
          SignCommand.class,
          CancelCommand.class,
          VerifyCommand.class,
          IntentCommand.class,
          TrustCommand.class,
          DoctorCommand.class,
          PlanCommand.class,
          LoadCommand.class,
          AutoComplete.GenerateCompletion.class,
          CommandLine.HelpCommand.class);

  /** These speak of all others. */
  static final Set<Class<?>> ABOUT_OTHERS =
      Set.of(AutoComplete.GenerateCompletion.class, CommandLine.HelpCommand.class);

  /** All that these do needs a connection, and little of what others do. */
  private static final Set<Class<?>> CONNECTED =
      Set.of(
          KeysCommand.class,
          GroupCommand.class,
          SignCommand.class,
          CancelCommand.class,
          DoctorCommand.class,
          LoadCommand.class);

  private final Terminal terminal;

  private Coterie(Terminal terminal) {
    this.terminal = terminal;
  }

  public static void main(String... args) {
    System.exit(run(args));
  }

  /** Runs a command as the process does, and returns its exit code. */
  static int run(String... args) {
    silenceLibraries();
    List<Class<?>> commands = commands(args);
    if (connects(commands)) {
      Preparation.begin();
    }
    String part = args.length < 2 ? "" : args[1];
    return commandLine(new ProcessTerminal(), commands, part).execute(args);
  }

  /**
   * A failure is one line of this command. Libraries would print warnings and stack traces beside
   * it: gRPC and Netty by java.util.logging, the platform by SLF4J, which has no logger here.
   */
  private static void silenceLibraries() {
    LogManager.getLogManager().reset();
    System.setProperty("slf4j.internal.verbosity", "WARN");
    System.setProperty("slf4j.provider", "org.slf4j.helpers.NOP_FallbackServiceProvider");
  }

  /** The command with its error handling: one line on standard error, and an exit code. */
  public static CommandLine commandLine() {
    return commandLine(new ProcessTerminal());
  }

  static CommandLine commandLine(Terminal terminal) {
    return commandLine(terminal, COMMANDS, "");
  }

  /**
   * The command that the arguments name, or all where all may be spoken of. A start makes the model
   * of no other command, because picocli reads each by reflection.
   */
  static List<Class<?>> commands(String... args) {
    String first = args.length == 0 ? "" : args[0];
    if (first.equals("--version") || first.equals("-V")) {
      return List.of();
    }
    List<Class<?>> named = COMMANDS.stream().filter(command -> isNamed(command, first)).toList();
    return named.isEmpty() || ABOUT_OTHERS.containsAll(named) ? COMMANDS : named;
  }

  /** Whether the commands that the arguments name are going to connect. */
  static boolean connects(List<Class<?>> commands) {
    return commands.size() == 1 && CONNECTED.containsAll(commands);
  }

  /** The same for the commands of a command: the named one, or all if none is. */
  static List<Method> parts(Class<?> command, String name) {
    List<Method> all = CommandLine.getCommandMethods(command, null);
    List<Method> named = all.stream().filter(part -> isNamed(part, name)).toList();
    return named.isEmpty() ? all : named;
  }

  private static boolean isNamed(AnnotatedElement command, String name) {
    Command declared = command.getAnnotation(Command.class);
    return declared.name().equals(name) || List.of(declared.aliases()).contains(name);
  }

  /**
   * @param part the word after the command
   */
  private static CommandLine commandLine(Terminal terminal, List<Class<?>> commands, String part) {
    CommandLine line = new CommandLine(new Coterie(terminal));
    for (Class<?> command : commands) {
      CommandLine added = new CommandLine(command);
      // Their classes ask picocli for none of their methods, as it would read all of them.
      parts(command, part).forEach(added::addSubcommand);
      line.addSubcommand(added);
    }
    Profile.describeApart(line);
    line.setCaseInsensitiveEnumValuesAllowed(true);
    line.setParameterExceptionHandler(Coterie::wrongCommandLine);
    line.setExecutionExceptionHandler(
        (failure, command, parsed) -> {
          CliException known = CliException.of(failure);
          Terminal.printable(command.getErr())
              .println(Output.failure(command.getCommandSpec(), failure, known));
          return known.exitCode();
        });
    return line;
  }

  private static int wrongCommandLine(ParameterException e, String[] args) {
    CommandLine command = e.getCommandLine();
    Terminal.printable(command.getErr())
        .printf(
            "coterie: %s.%s See '%s --help'.%n",
            CliException.firstLine(e.getMessage()),
            meant(e),
            command.getCommandSpec().qualifiedName());
    return CommandLine.ExitCode.USAGE;
  }

  private static String meant(ParameterException e) {
    List<String> meant =
        e instanceof UnmatchedArgumentException unmatched ? unmatched.getSuggestions() : List.of();
    return meant.isEmpty() ? "" : " Did you mean " + String.join(" or ", meant) + "?";
  }

  @Override
  public Terminal terminal() {
    return terminal;
  }
}
