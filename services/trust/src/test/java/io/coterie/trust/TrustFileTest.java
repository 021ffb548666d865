package io.coterie.trust;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TrustFileTest {
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

  private static final FormerParty FORMER = new FormerParty("p9", 9, new byte[32], 4);
  private static final Trust.Requester WALLET =
      new Trust.Requester(
          "wallet",
          List.of(new byte[44]),
          List.of(new Glob("keys/hot-*")),
          Set.of(KeyRight.CREATE, KeyRight.RESHARE),
          2,
          3);

  private static Trust trust(long version, Member... members) {
    return new Trust(
        new Roster("production-eu", version, List.of(members), List.of(FORMER)), List.of(WALLET));
  }

  private static final KeyPair ROOT = RootKeys.pair();

  private static TrustFile signed(Trust trust) {
    return TrustFile.first(trust, RootKeys.roots(1, ROOT)).signed(ROOT.getPrivate());
  }

  @Test
  void trustComesBack() throws Exception {
    Trust written = trust(1, PARTY, COORDINATOR);
    Path file = folder.resolve("trust.json");
    signed(written).write(file);
    assertThat(TrustFile.read(file).verified().trust()).isEqualTo(written);
    signed(trust(1, PARTY)).write(file);
    assertThat(TrustFile.read(file).verified().trust().roster().members()).containsExactly(PARTY);
    try (var files = Files.list(folder)) {
      assertThat(files).containsExactly(file);
    }
  }

  @Test
  void entryComesBack() throws Exception {
    Path file = folder.resolve("roster-entry.json");
    MemberEntry.write(file, COORDINATOR);
    assertThat(MemberEntry.parse(Files.readAllBytes(file))).isEqualTo(COORDINATOR);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "\"version\" : 1 | \"version\" : -1",
        "\"version\" : 1 | \"version\" : 0",
        "\"version\" : 1 | \"version\" : 2",
        "\"previous\" : \"\" | \"previous\" : \"AAAA\"",
        "\"previous\" : \"\" | \"previous\" : null",
        "\"threshold\" : 1 | \"threshold\" : 0",
        "\"threshold\" : 1 | \"threshold\" : 2",
        "\"threshold\" : 1 | \"threshold\" : 1, \"unused\" : 1",
        "MCowBQYDK2VwAyEA | MCowBQYDK2VuAyEA",
        "MCowBQYDK2VwAyEA | MCowBQYDK2VwAyEAAA",
        "MCowBQYDK2VwAyEA | ' MCowBQYDK2VwAyEA'",
        "AAA=\" | AAB=\"",
        "AAA=\" | AAA\"",
        "\"version\" : 1 | \"version\" : 1.5",
        "\"version\" : 1 | \"version\" : 99999999999999999999",
        "\"version\" : 1 | \"version\" : \"1\"",
        "\"version\" : 1 | \"version\" : 1, \"extra\" : 1",
        "\"version\" : 1 | \"version\" : 1, \"version\" : 2",
        "\"members\" | \"member\"",
        "production-eu | Production",
        "\"production-eu\" | 1",
        "\"lastEpoch\" : 4 | \"lastEpoch\" : 0",
        "\"lastEpoch\" : 4 | \"lastEpoch\" : 4294967297",
        "\"p9\" | \"P9\"",
        "\"partyId\" : 9 | \"partyId\" : 0",
        "\"minThreshold\" : 2 | \"minThreshold\" : 0",
        "\"minThreshold\" : 2 | \"minThreshold\" : 4",
        "\"minParties\" : 3 | \"minParties\" : 3, \"may\" : \"all\"",
        "\"create\" | \"Create\"",
        "\"create\" | \"sign\"",
        "\"create\" | \"reshare\"",
        "\"create\" | true",
        "\"rights\" | \"mayCreate\"",
        "\"keys/hot-*\" | 1",
        "\"keys/hot-*\" | \"\"",
        "\"keys/hot-*\" | \"hot-*\"",
        "\"keys/hot-*\" | \"keys/Hot\"",
        "\"keys/hot-*\" | \"keys/hot.*\"",
        "\"keys/hot-*\" | \"**\"",
        "\"wallet\" | \"*\"",
        "\"wallet\" | \"wallet-*\"",
        "\"wallet\" | \"wallet\\\\nx\"",
        "\"requesters\" | \"requester\"",
        "\"former\" | \"formers\"",
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
  void wrongFileIsRefused(String good, String bad) {
    String json = new String(signed(trust(1, PARTY)).current().payload(), StandardCharsets.UTF_8);
    assertThat(json).contains(good);
    assertThatThrownBy(
            () -> TrustJson.content(json.replace(good, bad).getBytes(StandardCharsets.UTF_8)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void other_content_is_refused() {
    for (String text :
        List.of(
            "",
            "[]",
            "null",
            "{}",
            "{\"payload\":\"\",\"signatures\":[],\"earlier\":[]}",
            "{\"payload\":\"e30=\",\"signatures\":[],\"earlier\":[]}",
            "{} {}")) {
      assertThatThrownBy(() -> TrustFile.parse(text.getBytes(StandardCharsets.UTF_8)))
          .as(text)
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void former_party_is_believed_about_its_time_and_no_later_one() {
    Roster roster =
        new Roster(
            "test",
            1,
            List.of(PARTY),
            List.of(
                new FormerParty("p1", 1, filled(1), 4), new FormerParty("old", 2, filled(2), 1)));
    assertThat(roster.evidenceKeys(1, 4)).containsExactly(PARTY.evidenceKey(), filled(1));
    assertThat(roster.evidenceKeys(1, 5)).containsExactly(PARTY.evidenceKey());
    assertThat(roster.evidenceKeys(2, 1)).containsExactly(filled(2));
    assertThat(roster.evidenceKeys(2, 2)).isEmpty();
    assertThat(roster.partyIds("p1")).containsExactly(1);
    assertThat(roster.partyIds("old")).containsExactly(2);
    assertThat(roster.partyIds("nobody")).isEmpty();
  }

  /** It would be believed about the time of the party before it. */
  @Test
  void an_id_stands_for_one_party_for_ever() {
    FormerParty before = new FormerParty("a", 1, filled(1), 4);
    FormerParty renamed = new FormerParty("p1", 1, filled(1), 5);
    assertThatThrownBy(() -> new Roster("test", 1, List.of(PARTY), List.of(before)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("p1: partyId 1 was another party's");
    assertThatThrownBy(
            () ->
                new Roster(
                    "test",
                    1,
                    List.of(PARTY),
                    List.of(before, new FormerParty("b", 1, filled(2), 4))))
        .isInstanceOf(IllegalArgumentException.class);
    // A new name first, and then a new key.
    for (List<FormerParty> former : List.of(List.of(before, renamed), List.of(renamed, before))) {
      assertThat(new Roster("test", 1, List.of(COORDINATOR, PARTY), former).former())
          .isEqualTo(former);
    }
  }

  private static byte[] filled(int value) {
    byte[] key = new byte[32];
    Arrays.fill(key, (byte) value);
    return key;
  }
}
