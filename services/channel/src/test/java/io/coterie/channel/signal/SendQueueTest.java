package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.channel.ChannelException;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.channel.wire.Frame;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The pool runs when a test says so: until then the queue is busy. */
class SendQueueTest {
  private static final SendOptions ONLINE = SendOptions.online(null);
  private static final String TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  private static final int MAX_BYTES = 2048;

  private final ArrayDeque<Runnable> pool = new ArrayDeque<>();
  private final SendQueue<String> queue = new SendQueue<>(pool::add, MAX_BYTES);
  private final List<String> left = new ArrayList<>();
  private final List<Integer> counted = new ArrayList<>();
  private CompletableFuture<Void> answer = CompletableFuture.completedFuture(null);

  private final SendQueue.Sender<String> sender =
      new SendQueue.Sender<>() {
        @Override
        public CompletableFuture<Void> send(String to, byte[] frame, SendOptions options) {
          left.add(to + (options.online() ? ": " : " stored: ") + text(frame));
          return answer;
        }

        @Override
        public void count(String to, int bodies) {
          counted.add(bodies);
        }
      };

  private static String text(byte[] frame) {
    try {
      return switch (Frame.decode(frame)) {
        case Frame.Body(boolean broadcast, byte[] data) -> (broadcast ? "*" : "") + ascii(data);
        case Frame.Batch(boolean broadcast, List<Frame.Part> parts) ->
            (broadcast ? "*" : "")
                + String.join(
                    "+",
                    parts.stream()
                        .map(part -> ascii(part.data()) + (part.traceparent() == null ? "" : "~"))
                        .toList());
        case Frame.Heartbeat() -> "heartbeat";
        default -> throw new AssertionError("another kind of frame");
      };
    } catch (Frame.MalformedException e) {
      throw new AssertionError(e);
    }
  }

  private static String ascii(byte[] data) {
    return new String(data, StandardCharsets.US_ASCII);
  }

  private CompletableFuture<Void> body(String to, String text) {
    return queue.body(to, true, bytes(text), ONLINE, sender);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  private void run() {
    while (!pool.isEmpty()) {
      pool.remove().run();
    }
  }

  @Test
  void bodyThatFindsNobodyWaitingLeavesAlone() {
    body("all", "a");
    run();
    body("all", "b");
    run();
    assertThat(left).containsExactly("all: *a", "all: *b");
    assertThat(counted).containsExactly(1, 1);
  }

  @Test
  void bodiesThatWaitForTheSameRecipientsLeaveTogether() {
    body("all", "a");
    queue.body("all", true, bytes("b"), SendOptions.online(TRACE), sender);
    body("all", "c");
    run();
    assertThat(left).containsExactly("all: *a+b~+c");
    assertThat(counted).containsExactly(3);
  }

  @Test
  void nothingIsOvertaken() {
    body("all", "a");
    body("some", "b");
    body("all", "c");
    body("all", "d");
    queue.frames("all", List.of(Frame.heartbeat()), ONLINE, sender);
    body("all", "e");
    queue.body("all", false, bytes("f"), ONLINE, sender);
    queue.body("all", false, bytes("g"), SendOptions.stored(null), sender);
    run();
    assertThat(left)
        .containsExactly(
            "all: *a",
            "some: *b",
            "all: *c+d",
            "all: heartbeat",
            "all: *e",
            "all: f",
            "all stored: g");
  }

  @Test
  void messageHasABoundInBytesAndInBodies() {
    for (int i = 0; i < 4; i++) {
      body("all", "x".repeat(700));
    }
    run();
    assertThat(counted).containsExactly(2, 2);
    counted.clear();
    for (int i = 0; i < Frame.MAX_BATCH + 1; i++) {
      queue.body("all", true, new byte[0], ONLINE, sender);
    }
    new SendQueue<String>(Runnable::run, 1).body("all", true, bytes("long"), ONLINE, sender);
    run();
    assertThat(counted).as("the longest body leaves at once, alone").startsWith(1);
    assertThat(counted.subList(1, counted.size())).allMatch(bodies -> bodies < Frame.MAX_BATCH);
  }

  @Test
  void allThatLeftTogetherEndAlike() {
    answer = new CompletableFuture<>();
    CompletableFuture<Void> first = body("all", "a");
    CompletableFuture<Void> second = body("all", "b");
    run();
    assertThat(first).isNotDone();
    answer.completeExceptionally(new ChannelException(ChannelException.Cause.UNAVAILABLE, "gone"));
    for (CompletableFuture<Void> sent : List.of(first, second)) {
      assertThat(sent)
          .failsWithin(Duration.ZERO)
          .withThrowableThat()
          .havingCause()
          .isInstanceOf(ChannelException.class)
          .withMessage("gone");
    }
  }

  @Test
  void bodiesAreWipedWhenTheyLeaveAndAnErrorEndsThemAndNoOthers() {
    byte[] wiped = bytes("secret");
    queue.body("all", true, wiped, ONLINE, sender);
    run();
    assertThat(wiped).containsOnly(0);
    byte[] failing = bytes("secret");
    SendQueue.Sender<String> broken =
        new SendQueue.Sender<>() {
          @Override
          public CompletableFuture<Void> send(String to, byte[] frame, SendOptions options) {
            throw new StackOverflowError("of libsignal");
          }

          @Override
          public void count(String to, int bodies) {}
        };
    CompletableFuture<Void> sent = queue.body("all", true, failing, ONLINE, broken);
    run();
    assertThat(sent).isCompletedExceptionally();
    assertThat(failing).containsOnly(0);
    assertThat(body("all", "after")).isNotDone();
    run();
    assertThat(left).endsWith("all: *after");
  }
}
