package io.coterie.coordinator.custody.ledger;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.MemoryStores;
import io.coterie.coordinator.TestEvidence;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyObserver;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyRecord.Holder;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.KeyStore.Creation;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.Signature;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Statements of parties, honest and not, and the answers of the coordinator. */
class PartyLedgersTest {
  private static final Instant NOW = Instant.parse("2030-01-01T00:00:00Z");
  private static final String KEY = "keys/hot";

  private final KeyPair evidence = ed25519();
  private final Member p1 = member(evidence);
  private final MemoryStores database = new MemoryStores();
  private final MemoryStores.Replica replica = database.replica("here");
  private final List<String> told = new ArrayList<>();
  private final List<ClaimMemory> answers = new ArrayList<>();
  private final Queue<Runnable> threads = new ArrayDeque<>();
  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
  private boolean away;
  private int calls;
  private int drawn;
  private long nanos;
  private final KeyDirectory keys =
      new KeyDirectory(
          unlessAway(KeyStore.class, replica.keys()),
          new KeyObserver() {
            @Override
            public void renewed(String key) {}

            @Override
            public void excluded(String key, int partyId) {
              told.add("excluded " + partyId + " from " + key);
            }
          },
          Runnable::run,
          Clock.fixed(NOW, ZoneOffset.UTC),
          () -> nanos);
  private final PartyLedgers ledgers = witness();

  private PartyLedgers witness() {
    return new PartyLedgers(
        unlessAway(LedgerStore.class, replica.ledgers()),
        keys,
        () -> Optional.of(channel()),
        threads::add,
        new CoordinatorMetrics(registry),
        () -> nanos);
  }

  private <S> S unlessAway(Class<S> type, S store) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (_, method, arguments) -> {
              if (away) {
                throw new StoreUnavailableException("away", null);
              }
              calls++;
              return method.invoke(store, arguments);
            }));
  }

  private SecureChannel channel() {
    return (SecureChannel)
        Proxy.newProxyInstance(
            SecureChannel.class.getClassLoader(),
            new Class<?>[] {SecureChannel.class},
            (_, method, arguments) -> {
              if (method.getName().equals("roster")) {
                return new Roster("test", 1, List.of(p1));
              }
              assertThat(method.getName()).isEqualTo("send");
              assertThat(arguments[0]).isEqualTo(p1);
              answers.add(PartyMessage.parseFrom((byte[]) arguments[1]).getClaimMemory());
              return CompletableFuture.completedFuture(null);
            });
  }

  private static KeyPair ed25519() {
    try {
      return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Member member(KeyPair evidence) {
    byte[] encoded = evidence.getPublic().getEncoded();
    return new Member(
        "p1",
        Member.Role.PARTY,
        1,
        "local",
        new UUID(1, 1),
        1,
        new byte[33],
        Arrays.copyOfRange(encoded, encoded.length - 32, encoded.length));
  }

  private static ClaimCount signed(KeyPair key, LedgerPosition position) {
    return signed(key, new LedgerHead("test", 1, position, 0));
  }

  private static ClaimCount signed(KeyPair key, LedgerHead head) {
    try {
      Signature signer = Signature.getInstance("Ed25519");
      signer.initSign(key.getPrivate());
      signer.update("coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII));
      signer.update(MessageDigest.getInstance("SHA-256").digest(head.statement().toByteArray()));
      return head.count(ByteString.copyFrom(signer.sign()));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private ClaimCount signed(LedgerPosition position) {
    return signed(evidence, position);
  }

  private LedgerPosition start(LedgerPosition before) {
    return before.next(ByteBuffer.allocate(LedgerPosition.HASH_BYTES).putInt(++drawn).array());
  }

  private static LedgerPosition claim(LedgerPosition p, int times) {
    LedgerPosition position = p;
    for (int i = 0; i < times; i++) {
      position = position.claimed(ByteString.EMPTY);
    }
    return position;
  }

  private void state(ClaimCount count) {
    ledgers.stated(p1, count);
    run();
  }

  private void run() {
    for (Runnable task = threads.poll(); task != null; task = threads.poll()) {
      task.run();
    }
  }

  private List<ClaimCount> lastAnswer() {
    return answers.getLast().getRememberedList();
  }

  @BeforeEach
  void ecdsaKey() {
    KeyRecord key =
        KeyRecord.creating(
            new RequestHeader(
                "wallet",
                RequestId.next(),
                ByteString.copyFrom(new byte[32]),
                SignedIntent.getDefaultInstance(),
                NOW.plusSeconds(60),
                NOW),
            KEY,
            Scheme.SCHEME_ECDSA_SECP256K1,
            2,
            List.of(new Holder(1, "p1"), new Holder(2, "p2")));
    long id = ((Creation.Stored) replica.keys().create(key)).record().id();
    replica
        .keys()
        .finish(
            id,
            TestEvidence.unattested(KeyPublic.newBuilder().setEpoch(1).setThreshold(2).build()),
            null,
            1);
  }

  @Test
  void each_statement_is_answered_with_what_is_remembered() {
    LedgerPosition first = claim(start(LedgerPosition.NONE), 2);
    state(signed(first));
    assertThat(lastAnswer()).containsExactly(signed(first));
    LedgerPosition second = claim(start(first), 1);
    state(signed(second));
    assertThat(lastAnswer()).containsExactly(signed(first), signed(second));
    state(signed(first)); // overtaken on its way
    assertThat(lastAnswer()).containsExactly(signed(first), signed(second));
    assertThat(told).isEmpty();
  }

  @Test
  void a_statement_without_the_party_s_signature_changes_nothing_and_costs_no_look_at_the_store() {
    LedgerPosition position = start(LedgerPosition.NONE);
    state(signed(ed25519(), position));
    state(signed(position).toBuilder().setCount(9).build());
    state(signed(position).toBuilder().setMark(ByteString.EMPTY).build());
    state(signed(evidence, new LedgerHead("staging", 1, position, 0)));
    state(signed(position).toBuilder().setParty(2).build());
    assertThat(calls).isZero();
    assertThat(answers).isEmpty();
    assertThat(
            registry
                .get(CoordinatorMetrics.DROPPED)
                .tag("cause", "bad_evidence_signature")
                .counter()
                .count())
        .isEqualTo(3);
  }

  @Test
  void a_party_that_went_back_is_told_and_gets_no_multiplication_before_there_are_new_shares() {
    LedgerPosition copy = claim(start(LedgerPosition.NONE), 1);
    LedgerPosition latest = claim(start(copy), 5);
    state(signed(copy));
    state(signed(latest));
    assertThat(keys.excluded(KEY)).isEmpty();

    LedgerPosition restored = start(copy);
    state(signed(restored));
    assertThat(lastAnswer()).containsExactly(signed(copy), signed(latest));
    assertThat(keys.excluded(KEY)).containsExactly(1);
    assertThat(keys.wentBack(KEY)).containsExactly(1);
    assertThat(told).containsExactly("excluded 1 from " + KEY);

    LedgerPosition above =
        restored.reopened(latest, ByteBuffer.allocate(LedgerPosition.HASH_BYTES).array());
    state(signed(above));
    assertThat(lastAnswer().getLast()).as("it has learned of it").isEqualTo(signed(above));
    assertThat(keys.excluded(KEY)).as("its shares are the same").containsExactly(1);
    LedgerPosition third = start(copy);
    state(signed(third));
    assertThat(lastAnswer().getLast()).as("never less").isEqualTo(signed(above));
  }

  @Test
  void contradictions_of_one_party_are_written_down_once_in_a_while() {
    LedgerPosition copy = start(LedgerPosition.NONE);
    state(signed(claim(start(copy), 1)));
    state(signed(start(copy)));
    int before = calls;
    for (int i = 0; i < 100; i++) {
      state(signed(start(copy)));
    }
    assertThat(calls - before).as("one look at its ledger each").isEqualTo(100);
    nanos += TimeUnit.SECONDS.toNanos(10);
    state(signed(start(copy)));
    assertThat(calls - before).isEqualTo(102);
  }

  @Test
  void without_the_database_there_is_no_answer_and_the_next_statement_gets_one() {
    LedgerPosition position = start(LedgerPosition.NONE);
    away = true;
    state(signed(position));
    assertThat(answers).isEmpty();
    away = false;
    state(signed(position));
    assertThat(lastAnswer()).containsExactly(signed(position));
  }

  @Test
  void of_the_statements_that_wait_the_latest_is_looked_at() {
    LedgerPosition first = start(LedgerPosition.NONE);
    for (int i = 0; i < 50; i++) {
      ledgers.stated(p1, signed(claim(first, i)));
    }
    assertThat(threads).hasSize(1);
    run();
    assertThat(answers).hasSize(1);
    assertThat(lastAnswer()).containsExactly(signed(claim(first, 49)));
    state(signed(claim(first, 50)));
    assertThat(answers).hasSize(2);
  }
}
