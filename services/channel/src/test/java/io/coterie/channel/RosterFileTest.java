package io.coterie.channel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RosterFileTest {
  @TempDir Path folder;

  private static final Member PARTY =
      new Member(
          "p1", Member.Role.PARTY, 1, "eu-west-1", new UUID(1, 2), 1, new byte[33], new byte[32]);
  private static final Member COORDINATOR =
      new Member(
          "coordinator-1",
          Member.Role.COORDINATOR,
          0,
          "eu-west-1",
          new UUID(3, 4),
          1,
          new byte[33],
          new byte[0]);

  @Test
  void rosterComesBack() throws Exception {
    Roster roster = new Roster(7, List.of(PARTY, COORDINATOR));
    Path file = folder.resolve("roster.json");
    RosterFile.write(file, roster);
    assertThat(RosterFile.read(file)).isEqualTo(roster);
    RosterFile.write(file, new Roster(8, List.of(PARTY)));
    assertThat(RosterFile.read(file).version()).isEqualTo(8);
    try (var files = Files.list(folder)) {
      assertThat(files).containsExactly(file);
    }
  }

  @Test
  void entryComesBack() throws Exception {
    Path file = folder.resolve("roster-entry.json");
    RosterFile.writeEntry(file, COORDINATOR);
    assertThat(RosterFile.parseEntry(Files.readAllBytes(file))).isEqualTo(COORDINATOR);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "\"version\" : 1 | \"version\" : -1",
        "\"version\" : 1 | \"version\" : 1.5",
        "\"version\" : 1 | \"version\" : 99999999999999999999",
        "\"version\" : 1 | \"version\" : \"1\"",
        "\"version\" : 1 | \"version\" : 1, \"extra\" : 1",
        "\"version\" : 1 | \"version\" : 1, \"version\" : 2",
        "\"members\" | \"member\"",
        "\"party\" | \"leader\"",
        "\"p1\" | \"P1\"",
        "\"p1\" | 1",
        "\"partyId\" : 1 | \"partyId\" : 0",
        "\"partyId\" : 1 | \"partyId\" : 65536",
        "\"partyId\" : 1 | \"partyId\" : 4294967297",
        "\"deviceId\" : 1 | \"deviceId\" : 128",
        "00000000-0000-0001 | 00000000-0000-000g",
        "00000000-0000-0001 | 0-0-1",
        "\"identityKey\" : \"AAAA | \"identityKey\" : \"AAA",
        "\"identityKey\" : \"AAAA | \"identityKey\" : \"*AAA",
        "\"region\" : \"eu-west-1\", | ''",
      })
  void wrongFileIsRefused(String good, String bad) throws Exception {
    Path file = folder.resolve("roster.json");
    RosterFile.write(file, new Roster(1, List.of(PARTY)));
    String json = Files.readString(file);
    assertThat(json).contains(good);
    assertThatThrownBy(
            () -> RosterFile.parse(json.replace(good, bad).getBytes(StandardCharsets.UTF_8)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void whatIsNoRosterIsRefused() {
    for (String text : List.of("", "[]", "null", "{}", "{\"version\":1,\"members\":[]}", "{} {}")) {
      assertThatThrownBy(() -> RosterFile.parse(text.getBytes(StandardCharsets.UTF_8)))
          .as(text)
          .isInstanceOf(IllegalArgumentException.class);
    }
  }
}
