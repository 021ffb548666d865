package io.coterie.cli.terminal;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The width of the terminal, in the words of stty. */
class ProcessTerminalTest {
  @ParameterizedTest
  @CsvSource({
    "'50 132\n', 132",
    "'24 80', 80",
    "'24 3', 8",
    "'0 0', 80",
    "'', 80",
    "'24', 80",
    "'rows columns', 80",
    "'24 99999999999', 80",
    "'24 -5', 80",
  })
  void a_width_that_is_none_is_the_usual_one(String size, int columns) {
    assertThat(ProcessTerminal.columnsOf(size)).isEqualTo(columns);
  }
}
