package io.coterie.signer.config;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.signer.RootOwner;
import io.coterie.trust.FormerParty;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The changes that the audit tells of a new version of the trust file. */
class TrustAuditTest {
  private static final RootOwner OWNER = new RootOwner();

  private static Member party(int id, int aci) {
    return party("p" + id, id, aci);
  }

  private static Member party(String name, int id, int aci) {
    byte[] evidence = new byte[32];
    evidence[0] = (byte) id;
    return new Member(
        name, Member.Role.PARTY, id, "eu", new UUID(id, aci), 1, new byte[33], evidence);
  }

  @Test
  void first_version_is_told_with_everything_that_it_has() {
    SignedTrust first = OWNER.first(new Roster("test", 1, List.of(party(1, 1), party(2, 2))));
    AuditEvent event = TrustAudit.accepted(Optional.empty(), first);
    assertThat(event.actor()).isEqualTo("operator");
    assertThat(event.action()).isEqualTo("trust.accept");
    assertThat(event.fields())
        .containsEntry("version", "1")
        .containsEntry("digest", HexFormat.of().formatHex(first.digest()))
        .containsEntry("roots", first.roots().fingerprint())
        .containsEntry("members_added", "p1,p2")
        .containsEntry("corrupt", "1")
        .doesNotContainKeys(
            "version_before", "corrupt_before", "members_removed", "members_changed");
  }

  @Test
  void later_version_is_told_by_its_differences() {
    SignedTrust first = OWNER.first(new Roster("test", 1, List.of(party(1, 1), party(2, 2))));
    SignedTrust second =
        OWNER.after(
            first,
            new Roster(
                "test",
                2,
                List.of(party(1, 9), party(3, 3)),
                List.of(new FormerParty("p2", 2, party(2, 2).evidenceKey(), 4))));
    assertThat(TrustAudit.accepted(Optional.of(first), second).fields())
        .containsEntry("version_before", "1")
        .containsEntry("version", "2")
        .containsEntry("members_added", "p3")
        .containsEntry("members_removed", "p2")
        .containsEntry("members_changed", "p1")
        .containsEntry("former_added", "p2")
        .containsEntry("corrupt_before", "1")
        .doesNotContainKeys("requesters_added", "requesters_removed", "requesters_changed");
  }

  @Test
  void names_that_no_field_takes_are_counted() {
    List<Member> many =
        IntStream.rangeClosed(1, 100)
            .mapToObj(id -> party("a-party-with-a-long-name-" + id, id, 1))
            .toList();
    SignedTrust first = OWNER.first(new Roster("test", 1, many));
    assertThat(TrustAudit.accepted(Optional.empty(), first).fields())
        .containsEntry("members_added", "100");
  }
}
