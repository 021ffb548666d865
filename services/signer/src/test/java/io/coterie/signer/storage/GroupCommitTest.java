package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GroupCommitTest {
  @TempDir Path folder;
  private final List<Integer> batches = new CopyOnWriteArrayList<>();
  private final List<String> rollbacks = new CopyOnWriteArrayList<>();
  private final CountDownLatch gate = new CountDownLatch(1);
  private GroupCommit writer;

  @BeforeEach
  void open() throws SQLException {
    writer =
        new GroupCommit(
            new CommitThread("test"),
            Database.writer(folder.resolve("test.db")),
            new GroupCommit.Listener() {
              @Override
              public void committed(int writes, long nanos) {
                batches.add(writes);
              }

              @Override
              public void rolledBack() {
                rollbacks.add("rolled back");
              }
            });
  }

  @AfterEach
  void close() {
    writer.close();
  }

  private static GroupCommit.Write<Boolean> put(String name) {
    return db ->
        db.update(
                "INSERT INTO party_secret (name, sealed, public) VALUES (?, ?, ?)",
                name,
                new byte[1],
                new byte[0])
            == 1;
  }

  private CompletableFuture<Boolean> submit(GroupCommit.Write<Boolean> write) {
    return writer.submit(write).toCompletableFuture();
  }

  /** Keeps the writer busy, so that what follows comes together. */
  private void hold() {
    writer.submit(
        _ -> {
          try {
            gate.await();
          } catch (InterruptedException e) {
            throw new IllegalStateException(e);
          }
          return true;
        });
  }

  private List<String> names() throws SQLException {
    try (Database reader = Database.reader(folder.resolve("test.db"));
        ResultSet rows =
            reader.statement("SELECT name FROM party_secret ORDER BY name").executeQuery()) {
      List<String> names = new ArrayList<>();
      while (rows.next()) {
        names.add(rows.getString(1));
      }
      return names;
    }
  }

  @Test
  void what_waits_together_is_one_transaction() throws Exception {
    hold();
    List<CompletableFuture<Boolean>> all = new ArrayList<>();
    for (int n = 0; n < 100; n++) {
      all.add(submit(put("n" + n)));
    }
    assertThat(all).noneMatch(CompletableFuture::isDone);
    assertThat(names()).isEmpty();
    gate.countDown();
    CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)).join();
    assertThat(names()).hasSize(100);
    assertThat(batches.stream().mapToInt(b -> b).sum()).isEqualTo(101);
    assertThat(batches.size()).isLessThanOrEqualTo(2);
  }

  @Test
  void bad_write_fails_alone_and_the_others_are_kept() throws Exception {
    hold();
    CompletableFuture<Boolean> first = submit(put("a"));
    CompletableFuture<Boolean> bad = submit(db -> db.update("INSERT INTO no_table VALUES (1)") > 0);
    CompletableFuture<Boolean> twice = submit(put("a"));
    CompletableFuture<Boolean> last = submit(put("b"));
    gate.countDown();
    assertThat(first.join()).isTrue();
    assertThat(last.join()).isTrue();
    assertThatThrownBy(bad::join)
        .isInstanceOf(CompletionException.class)
        .hasCauseInstanceOf(StoreException.class);
    assertThatThrownBy(twice::join).hasCauseInstanceOf(StoreException.class);
    assertThat(names()).containsExactly("a", "b");
    assertThat(rollbacks).isNotEmpty();
  }

  @Test
  void half_done_write_leaves_nothing() throws Exception {
    CompletableFuture<Boolean> half =
        submit(
            db -> {
              put("a").run(db);
              throw new SQLException("in the middle");
            });
    assertThatThrownBy(half::join).hasCauseInstanceOf(StoreException.class);
    assertThat(names()).isEmpty();
    assertThat(submit(put("b")).join()).isTrue();
    assertThat(names()).containsExactly("b");
  }

  /** SQLite undoes the transaction by itself then, and the driver does not know of it. */
  @Test
  void a_full_disk_fails_writes_and_leaves_nothing_of_them_and_there_are_transactions_afterwards()
      throws Exception {
    long pages = get(writer.submit(db -> db.count("PRAGMA page_count")));
    get(writer.submit(db -> db.count("PRAGMA max_page_count = " + (pages + 64))));
    int kept = 0;
    while (written(large("large " + kept))) {
      kept++;
    }
    assertThat(kept).isBetween(1, 64);
    for (int i = 0; i < 3; i++) {
      assertThat(written(large("more " + i))).isFalse();
      assertThat(
              written(
                  db -> {
                    put("half").run(db);
                    return large("whole").run(db);
                  }))
          .isFalse();
    }
    assertThat(names()).hasSize(kept).doesNotContain("half");

    get(writer.submit(db -> db.count("PRAGMA max_page_count = " + (pages + 1024))));
    assertThat(written(large("more 0"))).isTrue();
    assertThat(
            written(
                db -> {
                  put("half").run(db);
                  throw new SQLException("another error");
                }))
        .isFalse();
    assertThat(written(put("small"))).isTrue();
    assertThat(names()).hasSize(kept + 2).contains("more 0", "small");
  }

  private static GroupCommit.Write<Boolean> large(String name) {
    return db ->
        db.update(
                "INSERT INTO party_secret (name, sealed, public) VALUES (?, ?, ?)",
                name,
                new byte[16 << 10],
                new byte[0])
            == 1;
  }

  private static <T> T get(CompletionStage<T> stage) {
    return stage.toCompletableFuture().join();
  }

  private boolean written(GroupCommit.Write<Boolean> write) {
    try {
      return get(writer.submit(write));
    } catch (CompletionException e) {
      return false;
    }
  }

  /** Its session would never run, although it is claimed for ever. */
  @Test
  void a_write_is_done_also_if_no_transaction_can_be_begun_after_it() throws Exception {
    CompletableFuture<Boolean> claim =
        submit(
            db -> {
              boolean put = put("claim").run(db);
              // SQLite commits what is written already, and begins nothing that writes.
              db.update("PRAGMA query_only = ON");
              return put;
            });
    assertThat(claim.join()).isTrue();
    assertThat(names()).containsExactly("claim");
    assertThat(batches).containsExactly(1);
    assertThat(rollbacks).isEmpty();
    assertThat(written(put("next"))).isFalse();
    assertThat(written(put("after"))).isFalse();
    assertThat(names()).as("nothing is written without a transaction").containsExactly("claim");
  }

  @Test
  void an_error_in_the_middle_of_a_write_leaves_nothing_either() throws Exception {
    CompletableFuture<Boolean> half =
        submit(
            db -> {
              put("a").run(db);
              throw new StackOverflowError("in the middle");
            });
    assertThatThrownBy(() -> half.get(50, TimeUnit.SECONDS))
        .hasCauseInstanceOf(StoreException.class)
        .hasRootCauseInstanceOf(StackOverflowError.class);
    assertThat(submit(put("b")).join()).isTrue();
    assertThat(names()).containsExactly("b");
  }

  @Test
  void lazy_write_comes_without_company_too() {
    long began = System.nanoTime();
    writer.submitLazily(put("lazy"));
    io.coterie.signer.Installation.until("it is written", () -> batches.contains(1));
    assertThat(System.nanoTime() - began).isGreaterThan(GroupCommit.LINGER.toNanos() / 2);
  }

  @Test
  void urgent_write_takes_lazy_ones_along() throws Exception {
    writer.submitLazily(put("a"));
    writer.submitLazily(put("b"));
    submit(put("c")).join();
    assertThat(names()).containsExactly("a", "b", "c");
  }

  @Test
  void close_writes_what_waits_and_then_refuses() throws Exception {
    hold();
    CompletableFuture<Boolean> waiting = submit(put("a"));
    writer.submitLazily(put("b"));
    gate.countDown();
    writer.close();
    assertThat(waiting.join()).isTrue();
    assertThat(names()).containsExactly("a", "b");
    assertThatThrownBy(submit(put("c"))::join).hasCauseInstanceOf(StoreException.class);
  }

  @Test
  void however_many_writes_wait_a_vital_one_is_taken() throws Exception {
    hold();
    List<CompletableFuture<Boolean>> flood = new ArrayList<>();
    CompletableFuture<Boolean> next = submit(_ -> true);
    while (!next.isDone()) {
      flood.add(next);
      next = submit(_ -> true);
    }
    assertThatThrownBy(next::join).hasCauseInstanceOf(StoreException.class);
    // The write that holds the writer may still have been among those that wait.
    assertThat(flood).hasSizeGreaterThanOrEqualTo(GroupCommit.MAX_WAITING - 1);
    CompletableFuture<Boolean> vital = writer.submitVital(put("a")).toCompletableFuture();
    CompletableFuture<Boolean> erasing = writer.submitErasing(put("b")).toCompletableFuture();
    gate.countDown();
    assertThat(vital.join()).isTrue();
    assertThat(erasing.join()).isTrue();
    assertThat(flood).allMatch(CompletableFuture::join);
    assertThat(names()).containsExactly("a", "b");
  }
}
