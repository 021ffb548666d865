package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.share.KeyShareStore;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Two signers with the native core, no third one, and ECDSA keys that need both: alpha's store is
 * put back to an earlier state.
 */
class TwoOfTwoTest {
  private static final String KEY = "keys/main";
  private static final List<String> NAMES = List.of("alpha", "bravo");

  @TempDir Path folder;
  private NativeParties cores;
  private Installation i;

  @BeforeEach
  void start() {
    cores = new NativeParties(NAMES);
    i = new Installation(folder, cores.evidence(), cores::open);
    i.limits = Installation.quick();
    NAMES.forEach(i::join);
    create(KEY);
    awaitActive(KEY);
  }

  @AfterEach
  void stop() {
    i.close();
    cores.close();
  }

  private void create(String key) {
    i.coordinator.give(
        i.coordinator
            .order(ProtocolId.PROTOCOL_ID_ECDSA_KEYGEN, key, 2, 1, 2)
            .setSignedIntent(
                i.signed(
                    i.keyIntent(Installation.requestId(), key, 2)
                        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                        .clearParties()
                        .addAllParties(NAMES)))
            .build());
  }

  private void awaitActive(String key) {
    Installation.until(
        key + " is active", () -> i.parties.stream().allMatch(p -> p.hasActive(key)));
  }

  private KeyPublic keyPublic() {
    return i.party("alpha").store.shares().find(KEY).orElseThrow().keyPublic();
  }

  private static ByteString digest() {
    byte[] digest = new byte[32];
    new SecureRandom().nextBytes(digest);
    return ByteString.copyFrom(digest);
  }

  private Order order(ProtocolId protocol, String key, int epoch, SignedIntent intent) {
    return i.coordinator
        .order(protocol, key, 2, 1, 2)
        .setEpoch(epoch)
        .setSignedIntent(intent)
        .build();
  }

  private SessionId orderSignature(String key, int epoch, ByteString digest) {
    return i.coordinator.give(
        order(
            ProtocolId.PROTOCOL_ID_ECDSA_SIGN, key, epoch, i.signed(i.digestIntent(key, digest))));
  }

  private void sign() {
    ByteString digest = digest();
    int epoch = keyPublic().getEpoch();
    NativeParties.combine(
        i,
        orderSignature(KEY, epoch, digest),
        SessionConfig.newBuilder()
            .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN)
            .setThreshold(2)
            .setKeyId(KEY)
            .setEpoch(epoch)
            .setPayload(digest)
            .setKeyPublic(keyPublic()),
        1,
        2);
  }

  private void refresh() {
    i.coordinator.give(
        order(
            ProtocolId.PROTOCOL_ID_ECDSA_REFRESH,
            KEY,
            1,
            i.signed(
                RefreshIntent.newBuilder()
                    .setRequestId(Installation.requestId())
                    .setKey(KEY)
                    .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                    .setEpoch(1)
                    .setNotAfter(Installation.in(Duration.ofMinutes(5))))));
    Installation.until(
        "the next epoch at both",
        () ->
            i.parties.stream()
                .allMatch(p -> p.store.shares().find(KEY).orElseThrow().epoch() == 2));
  }

  private RefusalReason refusalOfAlpha(SessionId session) {
    return i.coordinator.awaitFrom("alpha", session).report().getRefused().getReason();
  }

  private boolean alphaWentBack() {
    return i.party("alpha").store.shares().excluded(KEY).contains(KeyShareStore.ITSELF);
  }

  /** Some reports of bravo do not come to alpha. */
  private void bravoKeepsBack(Predicate<SessionReport> some) {
    i.network.tap(
        (from, to, body) -> {
          PartyMessage message = Installation.parse(body);
          boolean kept =
              from.partyId() == 2
                  && to.partyId() == 1
                  && message.hasReport()
                  && some.test(message.getReport());
          return kept ? null : body;
        });
  }

  /** The coordinator is the only one that is honest and remembers. */
  @Test
  void an_honest_coordinator_notices_what_the_only_peer_conceals() {
    sign();
    Path copy = i.copy("alpha");
    sign();
    i.bravoConceals();
    i.putBack("alpha", copy);
    SessionId session = orderSignature(KEY, 1, digest());
    Installation.until("alpha has heard it", this::alphaWentBack);
    assertThat(refusalOfAlpha(orderSignature(KEY, 1, digest())))
        .isEqualTo(RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    Installation.until("its session has ended", () -> i.party("alpha").live() == 0);
    assertThat(i.coordinator.partials(session)).as("contributions").isZero();
    assertThat(i.party("bravo").store.shares().troubles()).as("bravo says nothing").isEmpty();

    i.restart("alpha");
    assertThat(refusalOfAlpha(orderSignature(KEY, 1, digest())))
        .isEqualTo(RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    refresh();
    sign();
    assertThat(alphaWentBack()).isFalse();
  }

  /** The limit: both witnesses are corrupt. */
  @Test
  void a_coordinator_that_is_hostile_as_well_conceals_it() {
    sign();
    Path copy = i.copy("alpha");
    sign();
    i.bravoConceals();
    i.coordinator.memory = (_, stated) -> ClaimMemory.newBuilder().addRemembered(stated).build();
    i.putBack("alpha", copy);
    sign();
    assertThat(alphaWentBack()).isFalse();
  }

  /**
   * A share that was provisional when alpha's store went back, and for which a session waits while
   * it becomes active.
   */
  @Test
  void a_session_that_waits_for_its_key_does_not_multiply_with_a_share_of_that_time() {
    String late = "keys/treasury-1";
    bravoKeepsBack(_ -> true);
    create(late);
    Installation.until("bravo uses its share", () -> i.party("bravo").hasActive(late));
    Path copy = i.copy("alpha");
    sign();
    i.putBack("alpha", copy);
    Installation.until("bravo has told alpha", this::alphaWentBack);
    Installation.until(
        "it is on disk, and holds for the shares of that time",
        () -> i.party("alpha").store.shares().excluded("keys/treasury-2").isEmpty());
    assertThat(i.party("alpha").hasActive(late)).isFalse();

    SessionId session = orderSignature(late, 1, digest());
    Installation.until("alpha waits for the key", () -> i.party("alpha").live() == 1);
    bravoKeepsBack(SessionReport::hasDeclined);
    assertThat(refusalOfAlpha(session)).isEqualTo(RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    assertThat(i.party("alpha").hasActive(late)).isTrue();
  }
}
