package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.messaging.api.ApiException;
import io.coterie.messaging.limit.Source;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class HttpBodyTest {
  private final ConnectionMemory memory = new ConnectionMemory(1_000, Runnable::run);
  private final List<String> closed = new ArrayList<>();
  private int paid;
  private final ConnectionMemory.Account other =
      memory.open(new Source.OfNetwork("other"), () -> closed.add("other"));

  private HttpBody body(int most) {
    return new HttpBody(memory, new Source.OfNetwork("own"), most, () -> paid++);
  }

  private static int status(ApiException refusal) {
    return refusal.response().status();
  }

  @Test
  void counts_from_its_first_byte_until_it_is_closed() throws Exception {
    byte[] sent = new byte[600];
    try (HttpBody body = body(600)) {
      assertThat(body.read(new ByteArrayInputStream(sent))).isEqualTo(sent);
      other.take(400);
      assertThat(closed).as("there is room for both").isEmpty();
    }
    other.take(600);
    assertThat(closed).as("nothing is left of it").isEmpty();
    other.take(1);
    assertThat(closed).containsExactly("other");
  }

  @Test
  void gives_way_while_it_comes_in_when_it_is_the_largest() {
    InputStream rest =
        new InputStream() {
          @Override
          public int read() {
            // Others need the memory before the end has come.
            other.take(500);
            return -1;
          }
        };
    try (HttpBody body = body(1_000)) {
      assertThatThrownBy(
              () ->
                  body.read(new SequenceInputStream(new ByteArrayInputStream(new byte[600]), rest)))
          .isInstanceOfSatisfying(ApiException.class, e -> assertThat(status(e)).isEqualTo(503));
    }
    assertThat(closed).isEmpty();
  }

  @Test
  void without_an_end_is_read_only_until_it_gives_way() {
    InputStream endless =
        new InputStream() {
          @Override
          public int read() {
            return 0;
          }

          @Override
          public int read(byte[] part, int offset, int length) {
            if (paid > 100) {
              throw new AssertionError("it is read on");
            }
            return 1;
          }
        };
    try (HttpBody body = body(1_000_000)) {
      assertThatThrownBy(() -> body.read(endless))
          .isInstanceOfSatisfying(ApiException.class, e -> assertThat(status(e)).isEqualTo(503));
    }
  }

  @Test
  void pays_for_each_part_before_it_reads_the_next() throws Exception {
    List<Integer> before = new ArrayList<>();
    InputStream parts =
        new InputStream() {
          @Override
          public int read() {
            throw new AssertionError("parts are read");
          }

          @Override
          public int read(byte[] part, int offset, int length) {
            before.add(paid);
            return paid < 3 ? 7 : -1;
          }
        };
    try (HttpBody body = body(600)) {
      assertThat(body.read(parts)).hasSize(21);
    }
    assertThat(before).containsExactly(0, 1, 2, 3);
  }

  @Test
  void is_refused_when_it_is_too_large() {
    try (HttpBody body = body(600)) {
      assertThatThrownBy(() -> body.read(new ByteArrayInputStream(new byte[601])))
          .isInstanceOfSatisfying(ApiException.class, e -> assertThat(status(e)).isEqualTo(413));
    }
    other.take(1_000);
    assertThat(closed).isEmpty();
  }

  @Test
  void is_nothing_any_more_when_its_client_goes_away() {
    InputStream broken =
        new SequenceInputStream(
            new ByteArrayInputStream(new byte[600]),
            new InputStream() {
              @Override
              public int read() throws IOException {
                throw new IOException("reset");
              }
            });
    try (HttpBody body = body(1_000)) {
      assertThatThrownBy(() -> body.read(broken)).isInstanceOf(IOException.class);
    }
    other.take(1_000);
    assertThat(closed).isEmpty();
  }
}
