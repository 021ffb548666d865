package io.coterie.coordinator.custody.key;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.MemoryStores;
import io.coterie.coordinator.MemoryStores.Replica;
import io.coterie.coordinator.TestEvidence;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import java.lang.reflect.Proxy;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** One replica remembers keys that another one changes. */
class KeyDirectoryTest {
  private static final Instant NOW = Instant.parse("2030-01-01T00:00:00Z");
  private static final String KEY = "keys/test";

  private final MemoryStores database = new MemoryStores();
  private final Replica here = database.replica("here");
  private final Replica other = database.replica("other");
  private final AtomicLong nanos = new AtomicLong();
  private final List<String> told = new ArrayList<>();

  /** Happens once, after the exclusions of a key were read and before their reader has them. */
  private Runnable meanwhile = () -> {};

  private final KeyDirectory keys =
      new KeyDirectory(
          paused(here.keys()),
          new KeyObserver() {
            @Override
            public void renewed(String key) {
              told.add("renewed " + key);
            }

            @Override
            public void excluded(String key, int partyId) {
              told.add("excluded " + partyId + " from " + key);
            }
          },
          Runnable::run,
          Clock.fixed(NOW, ZoneOffset.UTC),
          nanos::get);

  private KeyStore paused(KeyStore store) {
    return (KeyStore)
        Proxy.newProxyInstance(
            KeyStore.class.getClassLoader(),
            new Class<?>[] {KeyStore.class},
            (proxy, method, arguments) -> {
              Object read = method.invoke(store, arguments);
              if (method.getName().equals("excluded")) {
                Runnable next = meanwhile;
                meanwhile = () -> {};
                next.run();
              }
              return read;
            });
  }

  private static MadeKey epoch(int epoch) {
    return TestEvidence.unattested(KeyPublic.newBuilder().setEpoch(epoch).setThreshold(2).build());
  }

  private static final List<KeyRecord.Holder> HOLDERS =
      List.of(new KeyRecord.Holder(1, "p1"), new KeyRecord.Holder(2, "p2"));

  private static RequestHeader header() {
    return new RequestHeader(
        "wallet", RequestId.next(), ByteString.EMPTY, SignedIntent.getDefaultInstance(), NOW, NOW);
  }

  @BeforeEach
  void create() {
    KeyRecord attempt = KeyRecord.creating(header(), KEY, Scheme.SCHEME_ED25519, 2, HOLDERS);
    KeyStore.Creation.Stored stored = (KeyStore.Creation.Stored) here.keys().create(attempt);
    here.keys().finish(stored.record().id(), epoch(1), null, 1);
  }

  private void renewElsewhere() {
    Renewal renewal = Renewal.running(header(), KEY, 1, 2, HOLDERS);
    RenewalStore.Start.Stored started = (RenewalStore.Start.Stored) other.renewals().start(renewal);
    other.renewals().switchEpoch(started.record().id(), epoch(2), 1);
  }

  private int epochFound() {
    return keys.find(KEY).orElseThrow().epoch();
  }

  @Test
  void a_key_in_use_is_read_again_behind_its_use_after_a_while() {
    assertThat(epochFound()).isEqualTo(1);
    renewElsewhere();
    nanos.addAndGet(KeyDirectory.FRESH.toNanos());
    assertThat(epochFound()).isEqualTo(1);
    nanos.addAndGet(1);
    assertThat(epochFound()).as("read again behind this use").isEqualTo(1);
    assertThat(told).containsExactly("renewed " + KEY);
    assertThat(epochFound()).isEqualTo(2);
  }

  @Test
  void a_key_is_read_again_for_an_intent_that_knows_of_a_later_reshare() {
    assertThat(epochFound()).isEqualTo(1);
    renewElsewhere();
    assertThat(keys.find(KEY, 0)).get().extracting(KeyRecord::epoch).isEqualTo(1);
    assertThat(keys.find(KEY, 2)).get().extracting(KeyRecord::epoch).isEqualTo(2);
    assertThat(epochFound()).as("and is remembered").isEqualTo(2);
  }

  @Test
  void an_exclusion_by_another_replica_is_told_when_it_is_read() {
    keys.find(KEY);
    other.keys().exclude(KEY, 2, "CAUSE", new byte[32], NOW);
    assertThat(keys.excluded(KEY)).isEmpty();
    assertThat(keys.excludedByNow(KEY)).containsExactly(2);
    assertThat(keys.excluded(KEY)).containsExactly(2);
    assertThat(told).containsExactly("excluded 2 from " + KEY);
  }

  @Test
  void an_exclusion_here_counts_at_once_and_ends_with_new_shares() {
    keys.find(KEY);
    keys.exclude(KEY, 1, "CAUSE", new SessionId(ByteString.copyFrom(new byte[32])));
    assertThat(keys.excluded(KEY)).containsExactly(1);
    assertThat(other.keys().excluded(KEY)).containsExactly(1);
    renewElsewhere();
    keys.renewed(KEY);
    assertThat(keys.excluded(KEY)).isEmpty();
    assertThat(epochFound()).isEqualTo(2);
    assertThat(told).containsExactly("excluded 1 from " + KEY, "renewed " + KEY);
  }

  @Test
  void an_exclusion_while_a_key_is_read_is_not_forgotten() {
    meanwhile =
        () -> keys.exclude(KEY, 1, "CAUSE", new SessionId(ByteString.copyFrom(new byte[32])));
    keys.find(KEY);
    assertThat(keys.excluded(KEY)).containsExactly(1);
  }

  @Test
  void a_switch_while_a_key_is_read_is_not_forgotten() {
    meanwhile =
        () -> {
          renewElsewhere();
          keys.renewed(KEY);
        };
    keys.find(KEY);
    assertThat(epochFound()).isEqualTo(2);
  }

  @Test
  void of_two_readings_the_one_that_ends_last_does_not_undo_the_other() {
    meanwhile =
        () -> {
          other.keys().exclude(KEY, 2, "CAUSE", new byte[32], NOW);
          keys.read(KEY);
        };
    keys.find(KEY);
    assertThat(keys.excluded(KEY)).containsExactly(2);
    meanwhile =
        () -> {
          renewElsewhere();
          keys.read(KEY);
        };
    keys.read(KEY);
    assertThat(epochFound()).isEqualTo(2);
    assertThat(keys.excluded(KEY)).as("lifted by the new shares").isEmpty();
  }

  @Test
  void a_key_that_is_not_active_is_not_remembered() {
    assertThat(keys.find("keys/unknown")).isEmpty();
    KeyRecord failed =
        ((KeyStore.Creation.Stored)
                other
                    .keys()
                    .create(
                        KeyRecord.creating(
                            new RequestHeader(
                                "wallet",
                                RequestId.next(),
                                ByteString.EMPTY,
                                SignedIntent.getDefaultInstance(),
                                NOW,
                                NOW),
                            "keys/unknown",
                            Scheme.SCHEME_ED25519,
                            1,
                            List.of(new KeyRecord.Holder(1, "p1")))))
            .record();
    assertThat(keys.find("keys/unknown").orElseThrow().state()).isEqualTo(Key.State.CREATING);
    other.keys().finish(failed.id(), epoch(1), null, 1);
    assertThat(keys.find("keys/unknown").orElseThrow().state()).isEqualTo(Key.State.ACTIVE);
  }
}
