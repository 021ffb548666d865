package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;

class CallGateTest {
  private static final int AT_ONCE = 16;

  /** Runs nothing until it is told to. */
  private final Deque<Runnable> threads = new ArrayDeque<>();

  private final CallGate gate = new CallGate(threads::add);
  private final List<Integer> ran = new ArrayList<>();

  private void call(int number) {
    assertThat(gate.begin()).isTrue();
    gate.runBlocking(
        () -> {
          ran.add(number);
          gate.end();
        });
  }

  @Test
  void more_calls_than_may_run_wait_and_nobody_waits_for_them() {
    for (int i = 0; i < AT_ONCE + 3; i++) {
      call(i);
    }
    assertThat(threads).hasSize(AT_ONCE);
    threads.removeFirst().run();
    assertThat(ran).containsExactly(0, AT_ONCE, AT_ONCE + 1, AT_ONCE + 2);
    call(100);
    assertThat(threads).as("one may run again").hasSize(AT_ONCE);
    threads.forEach(Runnable::run);
    gate.shut();
    assertThat(gate.isEmptied()).isTrue();
    assertThat(ran).hasSize(AT_ONCE + 4);
  }

  @Test
  void calls_of_a_closed_connection_that_wait_never_run() {
    for (int i = 0; i < AT_ONCE + 3; i++) {
      call(i);
    }
    gate.close();
    threads.forEach(Runnable::run);
    assertThat(ran).hasSize(AT_ONCE);
    assertThat(gate.begin()).isFalse();
  }
}
