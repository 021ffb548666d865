package io.coterie.coordinator;

import static io.coterie.coordinator.StoreContractTest.creation;
import static io.coterie.coordinator.StoreContractTest.started;
import static io.coterie.coordinator.StoreContractTest.stored;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.MemoryStores.Replica;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.Renewal;
import io.coterie.coordinator.custody.signing.SigningRecord;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * When a replica may take the work of one that was not seen for long, in PostgreSQL and in memory:
 * not if the database was away for both of them.
 */
class GoneReplicasTest {
  private static final Duration GONE_AFTER = Duration.ofMinutes(5);

  /** Longer than {@link #GONE_AFTER}. */
  private static final Duration OUTAGE = Duration.ofMinutes(6);

  /** Between two heartbeats that are late, and not missed. */
  private static final Duration LATE = Duration.ofMinutes(2);

  /**
   * The replicas of one database.
   *
   * @param replicas makes the stores of a replica, by its name
   * @param passing lets time pass in which no replica is seen
   */
  record Replicas(Function<String, Replica> replicas, Consumer<Duration> passing) {
    Replica named(String name) {
      return replicas.apply(name);
    }

    void pass(Duration time) {
      passing.accept(time);
    }

    /** Time passes in which these replicas are seen, and no others. */
    void pass(Duration time, Replica... seen) {
      Duration left = time;
      while (left.isPositive()) {
        Duration step = left.compareTo(LATE) < 0 ? left : LATE;
        pass(step);
        List.of(seen).forEach(replica -> replica.presence().seen());
        left = left.minus(step);
      }
    }
  }

  /** One piece of work of each kind. */
  private record Work(KeyRecord key, Renewal renewal, SigningRecord signing) {
    static Work of(Replica worker, String name) {
      KeyRecord renewed = stored(worker, creation(name + "-renewed"));
      worker.keys().finish(renewed.id(), StoreContractTest.made(1), null, 1);
      SigningRecord signing = StoreContractTest.signing();
      worker.signings().claimOnce(signing);
      return new Work(
          stored(worker, creation(name)),
          started(worker, StoreContractTest.renewal(name + "-renewed", 1)),
          signing);
    }

    void isTakenBy(Replica replica) {
      assertThat(replica.keys().take(key.id())).contains(key);
      assertThat(replica.renewals().take(renewal.id())).contains(renewal);
      assertThat(replica.signings().take(signing.id())).contains(signing);
    }

    void isNotTakenBy(Replica replica) {
      assertThat(replica.keys().take(key.id())).isEmpty();
      assertThat(replica.renewals().take(renewal.id())).isEmpty();
      assertThat(replica.signings().take(signing.id())).isEmpty();
      assertThat(replica.keys().takeAll(true)).doesNotContain(key);
      assertThat(replica.renewals().takeAll(true)).doesNotContain(renewal);
      assertThat(replica.signings().takeAll(true)).doesNotContain(signing.id());
    }

    void isTakenWithAllBy(Replica replica, boolean own) {
      assertThat(replica.keys().takeAll(own)).contains(key);
      assertThat(replica.renewals().takeAll(own)).contains(renewal);
      assertThat(replica.signings().takeAll(own)).contains(signing.id());
    }
  }

  static Stream<Named<Replicas>> databases() {
    AtomicLong now = new AtomicLong(Long.MAX_VALUE - 1);
    MemoryStores memory = new MemoryStores(now::get, GONE_AFTER);
    PGSimpleDataSource postgres = StoreContractTest.postgres();
    return Stream.of(
        Named.of("memory", new Replicas(memory::replica, time -> now.addAndGet(time.toNanos()))),
        Named.of(
            "PostgreSQL",
            new Replicas(
                name -> StoreContractTest.replica(postgres, name, GONE_AFTER),
                time -> pass(postgres, time))));
  }

  /** As if all that was seen had been seen so much earlier. */
  private static void pass(PGSimpleDataSource postgres, Duration time) {
    String earlier = " - interval '" + time.toMillis() + " ms'";
    try (Connection connection = postgres.getConnection();
        Statement statement = connection.createStatement()) {
      statement.executeUpdate(
          "update coordinator_replicas set seen_at = seen_at"
              + earlier
              + ", seen_since = seen_since"
              + earlier);
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  @ParameterizedTest
  @MethodSource("databases")
  void after_an_outage_for_all_no_replica_takes_what_another_works_on(Replicas database) {
    Replica here = database.named("here");
    Replica other = database.named("other");
    database.pass(OUTAGE, here, other);
    Work work = Work.of(other, "outage");

    database.pass(OUTAGE);
    work.isNotTakenBy(here);
    here.presence().seen();
    work.isNotTakenBy(here);
    // The other one comes back later.
    database.pass(GONE_AFTER.minusSeconds(30), here);
    work.isNotTakenBy(here);
    other.presence().seen();
    database.pass(OUTAGE, here, other);
    work.isNotTakenBy(here);
    work.isTakenBy(other);
  }

  @ParameterizedTest
  @MethodSource("databases")
  void a_replica_that_stays_away_after_an_outage_is_gone(Replicas database) {
    Replica here = database.named("patient");
    Replica killed = database.named("killed");
    database.pass(OUTAGE, here, killed);
    Work work = Work.of(killed, "killed");
    Work more = Work.of(killed, "killed-more");

    database.pass(OUTAGE);
    here.presence().seen();
    database.pass(GONE_AFTER.minusSeconds(30), here);
    work.isNotTakenBy(here);
    database.pass(Duration.ofMinutes(1), here);
    work.isTakenBy(here);
    more.isTakenWithAllBy(here, false);
  }

  @ParameterizedTest
  @MethodSource("databases")
  void what_no_other_replica_can_have_is_taken_after_an_outage_too(Replicas database) {
    Replica here = database.named("own");
    Replica leaving = database.named("leaving");
    database.pass(OUTAGE, here, leaving);
    Work own = Work.of(here, "own");
    Work left = Work.of(leaving, "left");
    Work leftToo = Work.of(leaving, "left-too");
    leaving.presence().leave();

    database.pass(OUTAGE);
    own.isTakenBy(here);
    own.isTakenWithAllBy(here, true);
    left.isTakenBy(here);
    leftToo.isTakenBy(here);
  }

  @ParameterizedTest
  @MethodSource("databases")
  void a_replica_that_has_started_takes_nothing_before_it_was_seen_for_long(Replicas database) {
    Replica started = database.named("started");
    Replica other = database.named("other-worker");
    other.presence().seen();
    Work work = Work.of(other, "start");
    database.pass(OUTAGE);
    work.isNotTakenBy(started);
    started.presence().seen();
    work.isNotTakenBy(started);
    database.pass(GONE_AFTER.plusSeconds(30), started);
    work.isTakenBy(started);
  }

  /** As a process that was suspended, whose statements the others overtake. */
  @ParameterizedTest
  @MethodSource("databases")
  void a_replica_that_is_not_seen_itself_takes_nothing(Replicas database) {
    Replica late = database.named("late");
    Replica other = database.named("lively");
    database.pass(OUTAGE, late, other);
    Work work = Work.of(other, "lively");
    database.pass(OUTAGE, other);
    database.pass(OUTAGE);
    work.isNotTakenBy(late);
    late.presence().seen();
    work.isNotTakenBy(late);
  }

  /** Both have missed heartbeats, the other one the first: it seems gone, and is not. */
  @ParameterizedTest
  @MethodSource("databases")
  void an_outage_that_is_shorter_than_gone_after_hides_the_other_one_too(Replicas database) {
    Replica here = database.named("later");
    Replica other = database.named("sooner");
    database.pass(OUTAGE, here, other);
    Work work = Work.of(other, "sooner");
    database.pass(GONE_AFTER.dividedBy(5), here);
    database.pass(GONE_AFTER.minusSeconds(30));
    here.presence().seen();
    work.isNotTakenBy(here);
  }

  @ParameterizedTest
  @MethodSource("databases")
  void a_clock_that_was_set_back_keeps_no_work_of_a_replica_that_is_gone(Replicas database) {
    Replica here = database.named("back");
    Replica killed = database.named("killed-before");
    Replica other = database.named("back-too");
    database.pass(OUTAGE, here, killed, other);
    Work gone = Work.of(killed, "killed-before");
    Work work = Work.of(other, "back-too");

    database.pass(Duration.ofHours(-1));
    gone.isNotTakenBy(here);
    here.presence().seen();
    other.presence().seen();
    gone.isNotTakenBy(here);
    database.pass(GONE_AFTER.plusSeconds(30), here, other);
    gone.isTakenBy(here);
    work.isNotTakenBy(here);
  }
}
