package io.coterie.signer.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.channel.ChannelAccount;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.audit.AuditRecord;
import io.coterie.platform.unseal.DataKeySource;
import io.coterie.platform.unseal.UnsealException;
import io.coterie.signer.Installation;
import io.coterie.signer.MemoryNetwork;
import io.coterie.signer.RootOwner;
import io.coterie.signer.claim.OutsideCounter;
import io.coterie.signer.policy.LocalRules;
import io.coterie.signer.policy.RequesterRule;
import io.coterie.signer.policy.ShareFloor;
import io.coterie.signer.storage.OperatorRequests;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.telemetry.SignerMetrics;
import io.coterie.trust.Glob;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.health.contributor.Status;

/** The start of a party, step by step, and what it keeps for the next one. */
class PartyTest {
  private static final RootOwner OWNER = new RootOwner();

  @TempDir Path folder;
  private final Access access = new Access();
  private final SimpleMeterRegistry meters = new SimpleMeterRegistry();
  private long minFree;
  private DataKeySource dataKeys = () -> key(7);
  private Party party;

  private static byte[] key(int fill) {
    byte[] key = new byte[32];
    Arrays.fill(key, (byte) fill);
    return key;
  }

  /** The operator, the messaging service and the network. */
  private final class Access implements ChannelAccess {
    final AtomicInteger enrolments = new AtomicInteger();
    final AtomicReference<Member> entry = new AtomicReference<>();
    final AtomicReference<SignedTrust> trust = new AtomicReference<>();
    volatile boolean messagingDown;
    volatile boolean offline;

    @Override
    public ChannelAccount enrol() throws IOException {
      if (messagingDown) {
        throw new IOException("the messaging service cannot be reached");
      }
      enrolments.incrementAndGet();
      return new ChannelAccount(UUID.randomUUID(), 1, new byte[24], 0x3FFF, new byte[69]);
    }

    @Override
    public Member member(ChannelAccount account, byte[] evidenceKey) {
      assertThat(account.registrationId()).isEqualTo(0x3FFF);
      return new Member(
          "alpha", Member.Role.PARTY, 1, "here", account.aci(), 1, new byte[33], evidenceKey);
    }

    @Override
    public void writeEntry(Member self) {
      entry.set(self);
    }

    @Override
    public Optional<SignedTrust> trust() {
      return Optional.ofNullable(trust.get());
    }

    @Override
    public Opened open(ChannelAccount account, Roster roster) {
      MemoryNetwork network = new MemoryNetwork(roster);
      return new Opened(network.channel("alpha"), () -> !offline);
    }
  }

  private OutsideCounter counter = OutsideCounter.NONE;
  private LocalRules rules = new LocalRules(Map.of());

  private Party start() {
    party =
        new Party(
            TestSettings.alpha(folder, null, minFree),
            () -> dataKeys.dataKey(),
            NativeMpcCore::load,
            access,
            rules,
            new SignerMetrics(meters, "alpha", "here"),
            counter,
            Clock.systemUTC());
    party.start();
    return party;
  }

  @AfterEach
  void stop() {
    if (party != null) {
      party.stop();
    }
  }

  private void awaitPhase(String phase) {
    Installation.until(phase, () -> phase.equals(party.health().getDetails().get("phase")));
  }

  private void writeRoster(Member self) {
    access.trust.set(OWNER.first(roster(1, self, 1)));
  }

  private static Roster roster(long version, Member self, int coordinator) {
    return new Roster(
        "test",
        version,
        List.of(
            self,
            new Member(
                "coordinator",
                Member.Role.COORDINATOR,
                0,
                "here",
                new UUID(3, coordinator),
                1,
                new byte[33],
                new byte[0])));
  }

  @Test
  void from_sealed_to_ready_and_the_same_party_after_a_restart() {
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    assertThat(party.health().getStatus()).isEqualTo(Status.OUT_OF_SERVICE);
    Member first = access.entry.get();
    assertThat(first.evidenceKey()).hasSize(32);
    writeRoster(first);
    awaitPhase("READY");
    assertThat(party.health().getStatus()).isEqualTo(Status.UP);
    assertThat(meters.get("coterie.vault.open").gauge().value()).isEqualTo(1);

    party.stop();
    assertThat(party.isRunning()).isFalse();
    assertThat(party.health().getStatus()).isEqualTo(Status.OUT_OF_SERVICE);
    access.entry.set(null);
    start();
    awaitPhase("READY");
    assertThat(access.enrolments.get()).isEqualTo(1);
    assertThat(access.entry.get()).isEqualTo(first);
  }

  @Test
  void lost_connection_is_not_ready() {
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    writeRoster(access.entry.get());
    awaitPhase("READY");
    access.offline = true;
    assertThat(party.health().getStatus()).isEqualTo(Status.OUT_OF_SERVICE);
    assertThat(party.health().getDetails()).containsKey("problem");
    access.offline = false;
    assertThat(party.health().getStatus()).isEqualTo(Status.UP);
  }

  @Test
  void roster_that_pins_something_else_is_not_used() {
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    Member self = access.entry.get();
    writeRoster(withAnotherKey(self));
    Installation.until(
        "it says why",
        () ->
            String.valueOf(party.health().getDetails().get("problem"))
                .contains("does not have this party"));
    assertThat(party.health().getDetails()).containsEntry("phase", "WAITING_FOR_ROSTER");
    access.trust.set(OWNER.after(access.trust.get(), roster(2, self, 1)));
    awaitPhase("READY");
  }

  @Test
  void a_first_trust_file_of_somebody_else_is_not_remembered() {
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    Member self = access.entry.get();
    access.trust.set(new RootOwner().first(roster(1, withAnotherKey(self), 1)));
    awaitProblem("does not have this party");
    access.trust.set(OWNER.first(roster(1, self, 1)));
    awaitPhase("READY");
  }

  @Test
  void an_older_trust_file_than_one_accepted_before_is_refused_after_a_restart() {
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    Member self = access.entry.get();
    SignedTrust first = OWNER.first(roster(1, self, 1));
    SignedTrust second = OWNER.after(first, roster(2, self, 1));
    access.trust.set(second);
    awaitPhase("READY");
    party.stop();

    access.trust.set(first);
    start();
    awaitProblem("has version 1, and version 2 was used before: get the newest file");
    assertThat(party.health().getDetails()).containsEntry("phase", "WAITING_FOR_ROSTER");
    access.trust.set(OWNER.after(first, roster(2, self, 77)));
    awaitProblem("another content than the version 2");
    RootOwner stranger = new RootOwner();
    SignedTrust strange = stranger.after(stranger.first(roster(1, self, 1)), roster(2, self, 1));
    access.trust.set(stranger.after(strange, roster(3, self, 1)));
    awaitProblem("not signed by the root keys of version 2");
    access.trust.set(OWNER.after(second, roster(3, self, 1)));
    awaitPhase("READY");
    party.stop();
    try (PartyStore store = PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {})) {
      assertThat(store.audit().read(1, 100))
          .extracting(AuditRecord::event)
          .filteredOn(event -> event.action().equals("trust.accept"))
          .extracting(event -> event.fields().get("version"))
          .containsExactly("2", "3");
    }
  }

  /** Without a roster there are no sessions whose housekeeping would look for requests. */
  @Test
  void a_party_that_refuses_its_trust_file_takes_it_when_its_operator_permits_it()
      throws Exception {
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    Member self = access.entry.get();
    SignedTrust first = OWNER.first(roster(1, self, 1));
    access.trust.set(OWNER.after(first, roster(2, self, 77)));
    awaitPhase("READY");
    party.stop();
    SignedTrust genuine = OWNER.after(first, roster(2, self, 1));
    access.trust.set(genuine);
    start();
    awaitProblem("another content than the version 2");
    new OperatorRequests(folder)
        .ask(
            new OperatorRequests.Request(
                OperatorRequests.Kind.PERMIT_TRUST,
                HexFormat.of().formatHex(genuine.digest()),
                "the first was a fork"));
    awaitPhase("READY");
  }

  @Test
  void holds_are_shown_in_health_and_counted() throws Exception {
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    assertThat(party.health().getDetails()).doesNotContainKey("holds");
    new OperatorRequests(folder)
        .ask(new OperatorRequests.Request(OperatorRequests.Kind.HOLD, "installation", "a drill"));
    Installation.until("it is held", () -> party.health().getDetails().containsKey("holds"));
    assertThat(party.health().getDetails().get("holds").toString())
        .contains("installation is on hold since ")
        .contains(": a drill; lifted by the operator of this party, with 'lift'");
    assertThat(holds("installation", "operator")).isEqualTo(1);
    assertThat(holds("key", "operator") + holds("key", "freeze")).isZero();
  }

  @Test
  void a_party_whose_disk_is_nearly_full_is_not_ready() throws Exception {
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    writeRoster(access.entry.get());
    awaitPhase("READY");
    assertThat(party.health().getDetails()).doesNotContainKey("disk");
    assertThat(meters.get("coterie.store.free").gauge().value())
        .isPositive()
        .isLessThanOrEqualTo(meters.get("coterie.store.total").gauge().value());
    party.stop();
    minFree = Long.MAX_VALUE;
    start();
    awaitPhase("READY");
    assertThat(party.health().getStatus()).isEqualTo(Status.OUT_OF_SERVICE);
    assertThat(party.health().getDetails().get("disk").toString()).contains("enlarge the volume");
  }

  @Test
  void a_requester_that_the_trust_file_does_not_name_is_shown_in_health() {
    RequesterRule rule =
        new RequesterRule(
            List.of(new Glob("*")),
            Set.of(),
            false,
            false,
            false,
            false,
            false,
            false,
            new ShareFloor(2, 2, Set.of()),
            Set.of(),
            List.of(),
            List.of(),
            1,
            RequesterRule.Lapse.AFTER_DEADLINE,
            null);
    rules = new LocalRules(Map.of("wallet", new LocalRules.Local(Optional.empty(), rule)));
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    writeRoster(access.entry.get());
    awaitPhase("READY");
    assertThat(party.health().getStatus()).isEqualTo(Status.UP);
    assertThat(party.health().getDetails().get("requesters").toString())
        .contains("the trust file does not name requester wallet");
  }

  private double holds(String scope, String cause) {
    return meters.get("coterie.holds").tag("scope", scope).tag("cause", cause).gauge().value();
  }

  private static Member withAnotherKey(Member member) {
    return new Member(
        member.name(),
        member.role(),
        member.partyId(),
        member.region(),
        member.aci(),
        member.deviceId(),
        member.identityKey(),
        key(9));
  }

  private void awaitProblem(String problem) {
    Installation.until(
        "it says why",
        () -> String.valueOf(party.health().getDetails().get("problem")).contains(problem));
  }

  @Test
  void messaging_that_is_down_is_tried_again() {
    access.messagingDown = true;
    start();
    Installation.until(
        "it says why",
        () ->
            String.valueOf(party.health().getDetails().get("problem"))
                .contains("cannot be reached"));
    access.messagingDown = false;
    awaitPhase("WAITING_FOR_ROSTER");
  }

  @Test
  void without_a_data_key_it_stays_sealed() {
    dataKeys =
        () -> {
          throw new UnsealException("wrong passphrase");
        };
    start();
    Installation.until(
        "it says why",
        () ->
            String.valueOf(party.health().getDetails().get("problem"))
                .contains("wrong passphrase"));
    assertThat(party.health().getDetails()).containsEntry("phase", "SEALED");
    assertThat(meters.get("coterie.vault.open").gauge().value()).isZero();
  }

  @Test
  void another_data_key_opens_nothing() {
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    Member first = access.entry.get();
    party.stop();
    access.entry.set(null);
    dataKeys = () -> key(8);
    start();
    Installation.until(
        "it says why",
        () -> String.valueOf(party.health().getDetails().get("problem")).contains("ENROLLING"));
    assertThat(access.entry.get()).as("no entry under another identity").isNull();
    assertThat(access.enrolments.get()).as("and no new account").isEqualTo(1);
    party.stop();
    dataKeys = () -> key(7);
    start();
    awaitPhase("WAITING_FOR_ROSTER");
    assertThat(access.entry.get()).isEqualTo(first);
  }

  @Test
  void file_of_another_process_is_waited_for() throws Exception {
    Files.createDirectories(folder);
    try (var other = PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {})) {
      assertThat(other.secrets().find("x")).isEmpty();
      start();
      Installation.until(
          "it says why",
          () ->
              String.valueOf(party.health().getDetails().get("problem")).contains("open already"));
    }
    assertThat(party.health().getDetails()).containsEntry("phase", "SEALED");
  }

  @Test
  void account_is_stored_as_it_was() {
    ChannelAccount account =
        new ChannelAccount(UUID.randomUUID(), 127, new byte[] {1, 2, 3}, 0x3FFF, new byte[] {4, 5});
    byte[] bytes = AccountCodec.encode(account);
    ChannelAccount back = AccountCodec.decode(bytes);
    assertThat(back.aci()).isEqualTo(account.aci());
    assertThat(back.deviceId()).isEqualTo(127);
    assertThat(back.registrationId()).isEqualTo(0x3FFF);
    assertThat(back.password()).containsExactly(1, 2, 3);
    assertThat(back.identityKeyPair()).containsExactly(4, 5);
    for (int length = 0; length < bytes.length; length++) {
      byte[] cut = Arrays.copyOf(bytes, length);
      assertThatThrownBy(() -> AccountCodec.decode(cut)).isInstanceOf(IllegalStateException.class);
    }
  }
}
