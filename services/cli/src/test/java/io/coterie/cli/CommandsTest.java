package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.cli.key.KeysCommand;
import java.lang.reflect.Method;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** A start makes the models of the commands that it may have to speak of. */
class CommandsTest {
  private static List<Class<?>> all() {
    return Coterie.commands();
  }

  @Test
  void a_command_is_made_alone_by_each_of_its_names() {
    assertThat(all()).hasSizeGreaterThan(8);
    for (Class<?> command : all()) {
      if (Coterie.ABOUT_OTHERS.contains(command)) {
        continue;
      }
      Command declared = command.getAnnotation(Command.class);
      assertThat(Coterie.commands(declared.name(), "more")).containsExactly(command);
      for (String alias : declared.aliases()) {
        assertThat(Coterie.commands(alias)).containsExactly(command);
      }
    }
  }

  @Test
  void a_command_of_a_command_is_made_alone_by_each_of_its_names() {
    int checked = 0;
    for (Class<?> command : all()) {
      for (Method part : Coterie.parts(command, "")) {
        Command declared = part.getAnnotation(Command.class);
        assertThat(Coterie.parts(command, declared.name())).containsExactly(part);
        for (String alias : declared.aliases()) {
          assertThat(Coterie.parts(command, alias)).containsExactly(part);
        }
        checked++;
      }
    }
    assertThat(checked).isGreaterThan(14);
    assertThat(Coterie.parts(KeysCommand.class, "--help"))
        .isEqualTo(Coterie.parts(KeysCommand.class, "lst"))
        .hasSizeGreaterThan(5);
  }

  @ParameterizedTest
  @ValueSource(strings = {"--help", "help", "generate-completion", "kyes", "-o"})
  void all_are_made_where_all_may_be_spoken_of(String first) {
    assertThat(Coterie.commands(first, "keys")).isEqualTo(all());
  }

  @ParameterizedTest
  @ValueSource(strings = {"--version", "-V"})
  void the_version_needs_none(String first) {
    assertThat(Coterie.commands(first)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"keys", "key", "sign", "cancel", "doctor", "load"})
  void a_connection_is_prepared_for_the_commands_that_need_one(String first) {
    assertThat(Coterie.connects(Coterie.commands(first))).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"verify", "intent", "trust", "plan", "--version", "--help", "kyes"})
  void no_connection_is_prepared_for_others(String first) {
    assertThat(Coterie.connects(Coterie.commands(first))).isFalse();
  }

  @Test
  void the_help_names_all() {
    String help = Run.of("--help").out();
    for (Class<?> command : all()) {
      String name = command.getAnnotation(Command.class).name();
      assertThat(help).containsPattern("(?m)^  " + name + "\\b");
    }
  }

  @Test
  void a_help_has_the_commands_own_options_before_those_of_the_connection() {
    String help = Run.of("sign", "--help").out();
    assertThat(help.lines().findFirst().orElseThrow().length()).isLessThan(60);
    assertThat(help)
        .containsSubsequence("--digest", "--yes", "\nConnection;", "--endpoint", "--trust-roots");
    assertThat(Run.of("keys", "list", "--help").out())
        .containsSubsequence("--output", "\nConnection;", "--endpoint");
    assertThat(Run.of("plan", "--help").out()).doesNotContain("Connection;");
  }

  @Test
  void a_help_and_a_completion_name_the_schemes() {
    for (String text :
        List.of(
            Run.of("keys", "create", "--help").out(),
            Run.of("sign", "--help").out(),
            Run.of("generate-completion").out())) {
      // A help breaks its lines also at dashes.
      assertThat(text.replaceAll("\\s", ""))
          .contains("bls12381", "ecdsa-secp256k1", "ed25519", "bip340-secp256k1");
    }
  }

  @Test
  void every_command_that_signs_an_intent_can_be_told_not_to_ask() {
    for (String command :
        List.of(
            "sign",
            "intent sign",
            "keys create",
            "keys refresh",
            "keys reshare",
            "cancel",
            "load")) {
      assertThat(Run.of((command + " --help").split(" ")).out()).as(command).contains("-y, --yes");
    }
  }

  @Test
  void a_completion_knows_the_commands_of_commands() {
    Run completion = Run.of("generate-completion");
    assertThat(completion.exitCode()).isZero();
    assertThat(completion.out()).contains("coterie", "reshare", "new-requester", "--trust-roots");
  }

  @Test
  void a_mistyped_name_is_answered_with_what_was_meant() {
    Run run = Run.of("verfy", "treasury");
    assertThat(run.exitCode()).isEqualTo(CommandLine.ExitCode.USAGE);
    assertThat(run.err()).hasLineCount(1).contains("Did you mean", "verify");
  }
}
