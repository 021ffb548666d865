package io.coterie.cli;

import java.util.logging.LogManager;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ParameterException;

/** The command line client of a Coterie installation. */
@Command(
    name = "coterie",
    mixinStandardHelpOptions = true,
    version = "coterie 0.1.0",
    description = "Keys that exist only as shares, and signatures made by a quorum.",
    subcommands = {
      KeysCommand.class,
      SignCommand.class,
      VerifyCommand.class,
      IntentCommand.class,
      TrustCommand.class,
      DoctorCommand.class,
      PlanCommand.class,
      LoadCommand.class,
      CommandLine.HelpCommand.class
    },
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {
      "0:done",
      "1:the answer is no: a signature that does not verify, a check of the doctor that failed",
      "2:the command line is wrong",
      "3:the installation refused, and the reason says why; or its answer is not attested and was not believed",
      "4:the installation cannot be reached or did not finish in time; try again with the same request id",
      "5:a local file is missing or wrong",
      "70:a bug in this command"
    },
    footerHeading = "%nSettings:%n",
    footer = {
      "  Options of the connection can stand in a profile (--profile FILE, default",
      "  ~/.config/coterie/profile.properties) as name=value without the dashes, or",
      "  in the environment as COTERIE_NAME. An option wins over the environment,",
      "  the environment over the profile."
    })
public final class Coterie {
  static final int NO = 1;
  static final int REFUSED = 3;
  static final int UNAVAILABLE = 4;
  static final int LOCAL = 5;
  static final int BUG = 70;

  private final Terminal terminal;

  private Coterie(Terminal terminal) {
    this.terminal = terminal;
  }

  public static void main(String... args) {
    silenceLibraries();
    System.exit(commandLine().execute(args));
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
    return commandLine(Terminal.OF_PROCESS);
  }

  static CommandLine commandLine(Terminal terminal) {
    CommandLine line = new CommandLine(new Coterie(terminal));
    line.setCaseInsensitiveEnumValuesAllowed(true);
    line.setParameterExceptionHandler(Coterie::wrongCommandLine);
    line.setExecutionExceptionHandler(
        (failure, command, parsed) -> {
          CliException known = CliException.of(failure);
          Terminal.printable(command.getErr())
              .println("coterie: " + Output.oneLine(known.getMessage()));
          return known.exitCode();
        });
    return line;
  }

  private static int wrongCommandLine(ParameterException e, String[] args) {
    CommandLine command = e.getCommandLine();
    Terminal.printable(command.getErr())
        .printf(
            "coterie: %s. See '%s --help'.%n",
            firstLine(e.getMessage()), command.getCommandSpec().qualifiedName());
    return CommandLine.ExitCode.USAGE;
  }

  /** The person who can be asked while a command runs. */
  static Terminal terminal(CommandLine running) {
    return ((Coterie) running.getCommandSpec().root().userObject()).terminal;
  }

  static String firstLine(@Nullable String text) {
    String line = (text == null ? "" : text).lines().findFirst().orElse("").strip();
    return line.endsWith(".") ? line.substring(0, line.length() - 1) : line;
  }
}
