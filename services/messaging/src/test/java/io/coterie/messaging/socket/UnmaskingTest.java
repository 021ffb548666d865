package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient;
import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Socket;
import io.coterie.messaging.TestService;
import java.util.Random;
import org.junit.jupiter.api.Test;

class UnmaskingTest {
  private static final long SEED = 20_26;

  @Test
  void the_container_keeps_the_state_of_a_frame_where_it_is_looked_for() {
    assertThat(Unmasking.isAvailable()).isTrue();
  }

  /** Around the sizes of a long, of the container's buffer and of a record of TLS. */
  @Test
  void messages_of_all_sizes_arrive_as_they_were_sent() {
    TestClient client = new TestClient(TestService.shared());
    Party to = client.party();
    Random random = new Random(SEED);
    try (Socket sender = client.party().connect().drained();
        Socket receiver = to.connect().drained()) {
      for (int around : new int[] {24, 125, 8_192, 16_384, 60_000}) {
        for (int size = around - 9; size <= around + 9; size++) {
          byte[] content = new byte[size];
          random.nextBytes(content);
          assertThat(
                  sender
                      .json(
                          "PUT",
                          "/v1/messages/" + to.aci,
                          TestClient.messages(true, TestClient.message(to, content)))
                      .status())
              .isEqualTo(200);
          assertThat(receiver.next().envelope().getContent().toByteArray()).isEqualTo(content);
        }
      }
    }
  }
}
