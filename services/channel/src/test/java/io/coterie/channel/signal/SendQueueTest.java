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
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** The pool runs when a test says so: until then the queue is busy. */
class SendQueueTest {
  private static final SendOptions ONLINE = SendOptions.online(null);
  private static final String TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  private static final int MAX_BYTES = 2048;

  private final AtomicLong now = new AtomicLong();
  private final ArrayDeque<Runnable> pool = new ArrayDeque<>();
  private SendQueue<String> queue = new SendQueue<>(pool::add, MAX_BYTES, now::get);
  private final List<AnswerTimes.Question> answers = new ArrayList<>();
  private boolean answering = true;
  private final List<String> left = new ArrayList<>();
  private final List<Integer> counted = new ArrayList<>();
  private CompletableFuture<Void> answer = CompletableFuture.completedFuture(null);

  private final SendQueue.Sender<String> sender =
      new SendQueue.Sender<>() {
        @Override
        public CompletableFuture<Void> send(
            String to, byte[] frame, SendOptions options, AnswerTimes.Question question) {
          if (answering) {
            question.answered();
          } else {
            answers.add(question);
          }
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

  /** The service usually answers within 10 ms, and is late after 21. */
  private void usuallyAnswersWithinTenMilliseconds() {
    usuallyAnswersWithin(10);
  }

  private void usuallyAnswersWithin(long millis) {
    answering = false;
    answer = new CompletableFuture<>();
    body("all", "first");
    run();
    pass(millis);
    answers.removeFirst().answered();
    run();
    left.clear();
  }

  private void pass(long millis) {
    now.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
  }

  @Test
  void bodiesWaitWhileAnAnswerIsLateAndLeaveTogetherWhenItComes() {
    usuallyAnswersWithinTenMilliseconds();
    body("all", "a");
    run();
    pass(21);
    body("all", "b");
    run();
    assertThat(left).as("not late yet").containsExactly("all: *a", "all: *b");
    pass(1);
    body("all", "c");
    body("all", "d");
    body("some", "e");
    run();
    assertThat(left).hasSize(2);
    answers.removeFirst().answered();
    run();
    assertThat(left).as("of b none is late").endsWith("all: *c+d", "some: *e");
  }

  @Test
  void onAShortLineBodiesWaitForEachAnswer() {
    usuallyAnswersWithin(2);
    body("all", "a");
    run();
    body("all", "b");
    run();
    body("all", "c");
    run();
    assertThat(left).as("the answer to a is out").containsExactly("all: *a");
    answers.removeFirst().answered();
    run();
    assertThat(left).containsExactly("all: *a", "all: *b+c");
    body("all", "d");
    run();
    assertThat(left).as("the answer to b and c is out").hasSize(2);
    answers.removeFirst().answered();
    run();
    assertThat(left).endsWith("all: *d");
  }

  @Test
  void framesDoNotWaitForALateAnswerAndNeitherDoesWhatIsBeforeThem() {
    usuallyAnswersWithinTenMilliseconds();
    body("all", "a");
    run();
    pass(100);
    body("all", "b");
    run();
    queue.frames("all", List.of(Frame.heartbeat()), ONLINE, sender);
    body("all", "c");
    run();
    assertThat(left).containsExactly("all: *a", "all: *b", "all: heartbeat");
    answers.forEach(AnswerTimes.Question::answered);
    run();
    assertThat(left).endsWith("all: *c");
  }

  @Test
  void fullMessageDoesNotWaitForALateAnswer() {
    queue = new SendQueue<>(pool::add, 1 << 20, now::get);
    usuallyAnswersWithinTenMilliseconds();
    body("all", "a");
    run();
    pass(100);
    for (int i = 0; i < Frame.MAX_BATCH - 1; i++) {
      queue.body("all", true, new byte[0], ONLINE, sender);
    }
    run();
    assertThat(left).hasSize(1);
    queue.body("all", true, new byte[0], ONLINE, sender);
    run();
    assertThat(left).hasSizeGreaterThan(1);
  }

  @Test
  void failureIsAnAnswerToo() {
    usuallyAnswersWithinTenMilliseconds();
    body("all", "a");
    run();
    pass(100);
    body("all", "b");
    run();
    assertThat(left).containsExactly("all: *a");
    answer.completeExceptionally(new ChannelException(ChannelException.Cause.UNAVAILABLE, "gone"));
    run();
    assertThat(left).containsExactly("all: *a", "all: *b");
  }

  /** Of a message that was lost no answer comes; others show that the service is there. */
  @Test
  void laterAnswerLetsAllLeaveToo() {
    usuallyAnswersWithinTenMilliseconds();
    body("all", "lost");
    run();
    pass(5);
    body("all", "a");
    run();
    pass(100);
    body("all", "b");
    run();
    assertThat(left).doesNotContain("all: *b");
    answers.removeLast().answered();
    run();
    assertThat(left).endsWith("all: *b");
    answers.removeFirst().answered();
    body("all", "c");
    run();
    assertThat(left).endsWith("all: *c");
  }

  /** It would make every later answer late. */
  @Test
  void whatFailsAtOnceSaysNothingAboutTheTimeOfAnswers() {
    usuallyAnswersWithinTenMilliseconds();
    answer = CompletableFuture.failedFuture(new IllegalStateException("no certificate"));
    body("all", "failed");
    run();
    answer = new CompletableFuture<>();
    answers.clear();
    body("all", "a");
    run();
    pass(10);
    body("all", "b");
    run();
    assertThat(left).endsWith("all: *b");
  }

  @Test
  void afterALongPauseNoAnswerIsLateUntilOneHasCome() {
    usuallyAnswersWithinTenMilliseconds();
    pass(3 * TimeUnit.NANOSECONDS.toMillis(AnswerTimes.PERIOD_NANOS));
    body("all", "a");
    run();
    pass(100);
    body("all", "b");
    run();
    assertThat(left).endsWith("all: *b");
  }

  @Test
  void asManyBytesAsAMessageHoldsDoNotWait() {
    usuallyAnswersWithinTenMilliseconds();
    body("all", "a");
    run();
    pass(100);
    body("all", "x".repeat(1500));
    run();
    assertThat(left).hasSize(1);
    body("all", "y".repeat(1500));
    run();
    assertThat(left).hasSizeGreaterThan(1);
  }

  @Test
  void lineThatHasBecomeLongerIsTheUsualOneAfterAWhile() {
    usuallyAnswersWithinTenMilliseconds();
    for (int i = 0; i < 3; i++) {
      pass(TimeUnit.NANOSECONDS.toMillis(AnswerTimes.PERIOD_NANOS));
      body("all", "a");
      run();
      pass(80);
      answers.removeLast().answered();
      run();
    }
    left.clear();
    body("all", "b");
    run();
    pass(100);
    body("all", "c");
    run();
    assertThat(left).containsExactly("all: *b", "all: *c");
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
    new SendQueue<String>(Runnable::run, 1, now::get)
        .body("all", true, bytes("long"), ONLINE, sender);
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
    AtomicReference<byte[]> broken = new AtomicReference<>();
    SendQueue.Sender<String> failingSender =
        new SendQueue.Sender<>() {
          @Override
          public CompletableFuture<Void> send(
              String to, byte[] frame, SendOptions options, AnswerTimes.Question question) {
            broken.set(frame);
            throw new StackOverflowError("of libsignal");
          }

          @Override
          public void count(String to, int bodies) {}
        };
    CompletableFuture<Void> sent = queue.body("all", true, failing, ONLINE, failingSender);
    run();
    assertThat(sent).isCompletedExceptionally();
    assertThat(failing).containsOnly(0);
    assertThat(broken.get()).containsOnly(0);
    assertThat(body("all", "after")).isNotDone();
    run();
    assertThat(left).endsWith("all: *after");
  }
}
