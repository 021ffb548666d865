package io.coterie.signer;

import io.coterie.signer.config.ProcessProtection;
import io.coterie.signer.config.SignerConfiguration;
import io.coterie.signer.storage.Backup;
import io.coterie.signer.storage.OperatorRequests;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.storage.StoreException;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Import;

/** Starts one party. */
@SpringBootConfiguration(proxyBeanMethods = false)
@Import(SignerConfiguration.class)
public class SignerApplication {
  /** The commands that are done here, and not by the running signer. */
  private static final Set<String> OWN = Set.of("backup", "restore", "keys", "records");

  private static final String USAGE =
      "usage: backup FOLDER >FILE, restore FOLDER <FILE, keys FOLDER, records FOLDER FIRST,"
          + " unfreeze FOLDER KEY,"
          + " hold FOLDER SCOPE REASON, lift FOLDER SCOPE REASON, fence FOLDER TIME REASON,"
          + " permit-trust FOLDER DIGEST REASON, forget-key FOLDER KEY FINGERPRINT REASON, or --SETTING=VALUE...";

  /**
   * Starts a signer in this process.
   *
   * @param args Spring properties, {@code --coterie.signer.name=alpha}
   */
  public static ConfigurableApplicationContext start(String... args) {
    return new SpringApplicationBuilder(SignerApplication.class)
        .web(WebApplicationType.SERVLET)
        .properties("spring.config.name=signer")
        .run(args);
  }

  /**
   * Without a command, starts the service. {@code backup <data folder>} writes the party's backup
   * to the standard output, {@code restore <data folder>} takes one from the standard input and
   * prints the holds that the party has then; see {@link Backup}. {@code keys <data folder>} prints
   * the keys that this party uses, as the party itself has stored them, and what keeps keys from
   * being used here; {@code records <data folder> <number>} prints the audit records from that
   * number on, with signed intents. {@code forget-key} looks first whether the party holds anything
   * of the key, and tells what it holds if not. The others ask the running signer for something;
   * see {@link OperatorRequests.Kind}. All end then: with 0, or with 1 and a line that says what is
   * wrong.
   */
  public static void main(String[] args) {
    if (args.length == 0 || args[0].startsWith("--")) {
      ProcessProtection.apply();
      start(args);
      // After the start: by now the data key is open, if it is not sealed.
      ProcessProtection.log();
    } else {
      PrintStream output = System.out;
      // No output of a library may get into a backup.
      System.setOut(System.err);
      System.exit(command(System.in, output, System.err, args));
    }
  }

  /** Runs a command and gives its exit code. */
  static int command(InputStream in, PrintStream out, PrintStream err, String... args) {
    Optional<OperatorRequests.Kind> request = OperatorRequests.Kind.of(args[0]);
    int arguments =
        request
            .map(kind -> 1 + kind.words() + (kind.hasReason() ? 1 : 0))
            .orElse(args[0].equals("records") ? 2 : 1);
    if (args.length != 1 + arguments || request.isEmpty() && !OWN.contains(args[0])) {
      err.println(USAGE);
      return 2;
    }
    try {
      Path folder = Path.of(args[1]);
      if (request.isPresent()) {
        PartyStore.requireParty(folder);
        OperatorRequests.Kind kind = request.get();
        int reason = 2 + kind.words();
        String argument = String.join(" ", Arrays.copyOfRange(args, 2, reason));
        OperatorRequests.Request asked =
            new OperatorRequests.Request(kind, argument, kind.hasReason() ? args[reason] : "");
        if (kind == OperatorRequests.Kind.FORGET_KEY) {
          PartyStore.requireShareOf(folder, argument);
        }
        new OperatorRequests(folder).ask(asked);
        return 0;
      }
      switch (args[0]) {
        case "restore" -> {
          Backup.restore(in, folder);
          PartyStore.holds(folder).forEach(hold -> out.println(hold.text()));
        }
        case "keys" -> {
          PartyStore.activeShares(folder).forEach(share -> share.lines().forEach(out::println));
          PartyStore.troubles(folder).forEach(trouble -> out.println(trouble.text()));
          PartyStore.holds(folder).forEach(hold -> out.println(hold.text()));
        }
        case "records" -> {
          PartyStore.export(folder, sequence(args[2]), out);
          requireWritten(out, "the records");
        }
        default -> {
          Backup.write(folder, out);
          requireWritten(out, "the backup");
        }
      }
      return 0;
    } catch (IOException | RuntimeException e) {
      err.println(problem(e));
      return 1;
    }
  }

  private static long sequence(String text) {
    if (!text.matches("[0-9]{1,18}")) {
      throw new IllegalArgumentException(
          "'" + text + "' is not the sequence number of the first record: give 1 for all");
    }
    return Long.parseLong(text);
  }

  private static void requireWritten(PrintStream out, String what) throws IOException {
    if (out.checkError()) {
      throw new IOException(what + " cannot be written to the standard output");
    }
  }

  /** A failure in one line, by the exception's type if its text does not say what is wrong. */
  private static String problem(Exception e) {
    String message = String.valueOf(e.getMessage());
    boolean says = e instanceof StoreException || e.getClass() == IOException.class;
    return (says || e instanceof IllegalArgumentException
            ? message
            : e.getClass().getSimpleName() + ": " + message)
        .replaceAll("\\p{Cntrl}+", " ");
  }
}
