package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditRecord;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.signer.Installation;
import io.coterie.signer.RootOwner;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The highest version of the trust file, in the real store. */
class AcceptedTrustTest {
  private static final RootOwner OWNER = new RootOwner();
  private static final SignedTrust FIRST = OWNER.first(roster(1, 1));
  private static final SignedTrust SECOND = OWNER.after(FIRST, roster(2, 2));
  private static final SignedTrust THIRD = OWNER.after(SECOND, roster(3, 3));

  @TempDir Path folder;

  private static Roster roster(long version, int aci) {
    return new Roster(
        "test",
        version,
        List.of(
            new Member(
                "p1",
                Member.Role.PARTY,
                1,
                "eu",
                new UUID(1, aci),
                1,
                new byte[33],
                new byte[32])));
  }

  private static PartyStore open(Path folder) {
    return PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {});
  }

  private static void accept(PartyStore store, SignedTrust trust) {
    store
        .trust()
        .accept(
            trust,
            held ->
                AuditEvent.of(
                    "operator",
                    "trust.accept",
                    held.map(SignedTrust::version) + " " + trust.version(),
                    Map.of()));
  }

  private static List<String> recorded(PartyStore store) {
    assertThat(store.audit().verify()).isInstanceOf(AuditTrail.Verification.Intact.class);
    return store.audit().read(1, 100).stream()
        .map(AuditRecord::event)
        .filter(event -> event.action().equals("trust.accept"))
        .map(AuditEvent::outcome)
        .toList();
  }

  private static void refused(PartyStore store, SignedTrust trust, String because) {
    byte[] before = store.trust().find().orElseThrow().digest();
    List<String> recorded = recorded(store);
    assertThatThrownBy(() -> accept(store, trust))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(because);
    assertThat(store.trust().find().orElseThrow().digest()).isEqualTo(before);
    assertThat(recorded(store)).isEqualTo(recorded);
  }

  @Test
  void each_new_version_is_recorded_once_and_kept_for_the_next_start() {
    try (PartyStore store = open(folder)) {
      assertThat(store.trust().find()).isEmpty();
      accept(store, FIRST);
      accept(store, FIRST);
      accept(store, THIRD);
    }
    try (PartyStore store = open(folder)) {
      assertThat(store.trust().find().orElseThrow().digest()).isEqualTo(THIRD.digest());
      accept(store, THIRD);
      assertThat(recorded(store)).containsExactly("Optional.empty 1", "Optional[1] 3");
    }
  }

  @Test
  void no_file_goes_back_or_comes_from_other_root_keys() {
    SignedTrust theirs = new RootOwner().first(roster(1, 9));
    RootOwner stranger = new RootOwner();
    SignedTrust strange = stranger.first(roster(1, 1));
    try (PartyStore store = open(folder)) {
      accept(store, SECOND);
    }
    try (PartyStore store = open(folder)) {
      refused(store, FIRST, "version 1, and version 2 was used before");
      refused(store, theirs, "version 1, and version 2 was used before");
      refused(store, OWNER.after(FIRST, roster(2, 77)), "another content than the version 2");
      refused(
          store,
          stranger.after(stranger.after(strange, roster(2, 2)), roster(3, 3)),
          "not signed by the root keys of version 2");
      accept(store, THIRD);
    }
  }

  @Test
  void what_does_not_follow_is_accepted_if_the_operator_permits_that_very_version()
      throws Exception {
    SignedTrust fork = OWNER.after(FIRST, roster(2, 77));
    SignedTrust other = OWNER.first(new Roster("another", 1, roster(1, 1).members()));
    try (PartyStore store = open(folder)) {
      accept(store, SECOND);
      permit(store, other);
      refused(store, other, "is of installation another");
      permit(store, fork);
      refused(store, FIRST, "version 1, and version 2 was used before");
    }
    try (PartyStore store = open(folder)) {
      accept(store, SECOND);
      accept(store, fork);
      assertThat(store.trust().find().orElseThrow().digest()).isEqualTo(fork.digest());
      refused(store, SECOND, "another content than the version 2");
      refused(store, FIRST, "version 1, and version 2 was used before");
      permit(store, FIRST);
      accept(store, FIRST);
      accept(store, SECOND);
      assertThat(recorded(store))
          .containsExactly("Optional.empty 2", "Optional[2] 2", "Optional[2] 1", "Optional[1] 2");
      assertThat(
              store.audit().read(1, 100).stream()
                  .map(AuditRecord::event)
                  .filter(event -> event.action().equals("trust.permit"))
                  .map(event -> event.fields().get("digest") + " " + event.fields().get("reason")))
          .containsExactly(hex(other) + " a fork", hex(fork) + " a fork", hex(FIRST) + " a fork");
    }
  }

  private static String hex(SignedTrust trust) {
    return HexFormat.of().formatHex(trust.digest());
  }

  private void permit(PartyStore store, SignedTrust trust) throws Exception {
    String digest = hex(trust);
    new OperatorRequests(folder)
        .ask(new OperatorRequests.Request(OperatorRequests.Kind.PERMIT_TRUST, digest, "a fork"));
    store.doAsAsked();
    Installation.until(
        "it is permitted",
        () ->
            store.audit().read(1, 100).stream()
                .map(AuditRecord::event)
                .anyMatch(
                    event ->
                        event.action().equals("trust.permit")
                            && digest.equals(event.fields().get("digest"))));
  }

  @Test
  void a_restored_store_accepts_the_newest_version_again() throws Exception {
    byte[] backup;
    Files.write(folder.resolve(Backup.DATA_KEY), new byte[3]);
    try (PartyStore store = open(folder)) {
      accept(store, FIRST);
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      Backup.write(folder, out);
      backup = out.toByteArray();
      accept(store, SECOND);
    }
    Path restored = folder.resolve("restored");
    Backup.restore(new ByteArrayInputStream(backup), restored);
    try (PartyStore store = open(restored)) {
      assertThat(store.trust().find().orElseThrow().version()).isEqualTo(1);
      accept(store, THIRD);
      refused(store, SECOND, "version 2, and version 3 was used before");
      assertThat(recorded(store)).containsExactly("Optional.empty 1", "Optional[1] 3");
    }
  }
}
