package io.coterie.messaging;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** With Redis, a client notices no difference. */
class RedisSocketTest extends SocketContract {
  private static RedisServer redis;
  private static TestService service;

  RedisSocketTest() {
    super(service);
  }

  @BeforeAll
  static void start() {
    redis = RedisServer.launch();
    service = TestService.start(redis.arguments().toArray(String[]::new));
  }

  @AfterAll
  static void stop() {
    if (service != null) {
      service.close();
      redis.close();
    }
  }
}
