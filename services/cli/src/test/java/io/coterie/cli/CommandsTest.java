package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
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
      if (command == CommandLine.HelpCommand.class) {
        continue;
      }
      Command declared = command.getAnnotation(Command.class);
      assertThat(Coterie.commands(declared.name(), "more")).containsExactly(command);
      for (String alias : declared.aliases()) {
        assertThat(Coterie.commands(alias)).containsExactly(command);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"--help", "help", "kyes", "-o"})
  void all_are_made_where_all_may_be_spoken_of(String first) {
    assertThat(Coterie.commands(first, "keys")).isEqualTo(all());
  }

  @ParameterizedTest
  @ValueSource(strings = {"--version", "-V"})
  void the_version_needs_none(String first) {
    assertThat(Coterie.commands(first)).isEmpty();
  }

  @Test
  void the_help_names_all() {
    StringWriter out = new StringWriter();
    CommandLine line = Coterie.commandLine().setOut(new PrintWriter(out));
    assertThat(line.execute("--help")).isZero();
    for (Class<?> command : all()) {
      String name = command.getAnnotation(Command.class).name();
      assertThat(out.toString()).containsPattern("(?m)^  " + name + "\\b");
    }
  }
}
