package io.coterie.signer;

import io.coterie.signer.config.ProcessProtection;
import io.coterie.signer.config.SignerConfiguration;
import io.coterie.signer.storage.Backup;
import io.coterie.signer.storage.OperatorRequests;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.storage.StoreException;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.List;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Import;

/** Starts one party. */
@SpringBootConfiguration(proxyBeanMethods = false)
@Import(SignerConfiguration.class)
public class SignerApplication {

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
   * to the standard output, {@code restore <data folder>} takes one from the standard input; see
   * {@link Backup}. {@code keys <data folder>} prints the keys that this party uses, as the party
   * itself has stored them, and what keeps keys from being used here; {@code unfreeze <data folder>
   * <key>} asks the running signer to use a frozen key again. All end then: with 0, or with 1 and a
   * line that says what is wrong.
   */
  public static void main(String[] args) {
    if (args.length == 0 || args[0].startsWith("--")) {
      ProcessProtection.apply();
      start(args);
      // After the start: by now the data key is open, if it is not sealed.
      ProcessProtection.log();
    } else {
      System.exit(command(args));
    }
  }

  private static int command(String... args) {
    if (!(args.length == 2 && List.of("backup", "restore", "keys").contains(args[0])
        || args.length == 3 && args[0].equals("unfreeze"))) {
      System.err.println(
          "usage: backup FOLDER >FILE, restore FOLDER <FILE, keys FOLDER, unfreeze FOLDER KEY,"
              + " or --SETTING=VALUE...");
      return 2;
    }
    Path folder = Path.of(args[1]);
    PrintStream output = System.out;
    // No output of a library may get into a backup.
    System.setOut(System.err);
    try {
      switch (args[0]) {
        case "restore" -> Backup.restore(System.in, folder);
        case "keys" -> {
          PartyStore.activeShares(folder).forEach(share -> share.lines().forEach(output::println));
          PartyStore.troubles(folder).forEach(trouble -> output.println(trouble.text()));
        }
        case "unfreeze" -> new OperatorRequests(folder).unfreeze(args[2]);
        default -> {
          Backup.write(folder, output);
          if (output.checkError()) {
            throw new IOException("the backup cannot be written to the standard output");
          }
        }
      }
      return 0;
    } catch (IOException | StoreException e) {
      System.err.println(e.getMessage());
      return 1;
    }
  }
}
