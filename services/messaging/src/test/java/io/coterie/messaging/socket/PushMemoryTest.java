package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;

class PushMemoryTest {
  private static final long SHARE = 100;
  private static final long MOST = SHARE * PushMemory.SHARES;
  private static final long PATIENCE = 1_000;

  private final List<String> resumed = new ArrayList<>();
  private final List<String> closed = new ArrayList<>();
  private final Deque<Runnable> later = new ArrayDeque<>();
  private long nanos;
  private final PushMemory memory =
      new PushMemory(MOST, PATIENCE, Runnable::run, later::add, () -> nanos);

  private PushMemory.Share open(String name) {
    return memory.open(() -> resumed.add(name), () -> closed.add(name));
  }

  /** Sockets that hold all the room together. */
  private List<PushMemory.Share> full() {
    List<PushMemory.Share> shares = new ArrayList<>();
    for (int i = 0; i < PushMemory.SHARES; i++) {
      PushMemory.Share share = open("holder " + i);
      assertThat(share.room()).isEqualTo(SHARE);
      share.take(SHARE);
      shares.add(share);
    }
    return shares;
  }

  private void patienceEnds() {
    nanos += PATIENCE;
    List<Runnable> due = List.copyOf(later);
    later.clear();
    due.forEach(Runnable::run);
  }

  @Test
  void a_socket_gets_its_share_and_no_more() {
    PushMemory.Share share = open("one");
    assertThat(share.room()).isEqualTo(SHARE);
    share.take(SHARE);
    assertThat(share.room()).isZero();
    assertThat(open("other").room()).isEqualTo(SHARE);
  }

  @Test
  void those_that_wait_for_room_go_on_in_their_order_as_soon_as_there_is_some() {
    List<PushMemory.Share> holders = full();
    PushMemory.Share first = open("first");
    PushMemory.Share second = open("second");
    assertThat(first.room()).isZero();
    assertThat(second.room()).isZero();
    assertThat(resumed).isEmpty();
    holders.getFirst().release(1);
    assertThat(resumed).containsExactly("first", "second");
    assertThat(closed).isEmpty();
    assertThat(first.room()).isEqualTo(SHARE);
  }

  @Test
  void who_reads_is_never_closed_however_long_others_wait() {
    List<PushMemory.Share> holders = full();
    PushMemory.Share waits = open("waits");
    for (int i = 0; i < 10; i++) {
      assertThat(waits.room()).isZero();
      for (PushMemory.Share holder : holders) {
        holder.take(1);
        holder.release(1);
      }
      nanos += PATIENCE / 2;
    }
    nanos -= PATIENCE / 2;
    List.copyOf(later).forEach(Runnable::run);
    assertThat(closed).isEmpty();
  }

  @Test
  void who_reads_nothing_is_closed_when_others_wait_for_its_room_and_not_before() {
    List<PushMemory.Share> holders = full();
    patienceEnds();
    patienceEnds();
    assertThat(closed).as("nobody waits").isEmpty();
    holders.subList(1, holders.size()).forEach(holder -> holder.release(1));
    holders.subList(1, holders.size()).forEach(holder -> holder.take(1));
    assertThat(open("waits").room()).isZero();
    nanos -= 1;
    patienceEnds();
    assertThat(closed).containsExactly("holder 0");
  }
}
