package io.coterie.messaging;

/** One replica. */
class SocketTest extends SocketContract {
  SocketTest() {
    super(TestService.shared());
  }
}
