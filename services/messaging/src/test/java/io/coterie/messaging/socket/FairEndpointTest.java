package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class FairEndpointTest {
  @Test
  void no_channel_is_used_again_however_large_the_heap_is() {
    assertThat(new FairEndpoint().getSocketProperties().getBufferPool()).isZero();
  }
}
