package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import org.junit.jupiter.api.Test;

class FirstLightTest {
  @Test
  void registers_sends_and_receives() {
    try (TestService service = TestService.start()) {
      TestClient client = new TestClient(service);
      Party a = client.party();
      Party b = client.party();
      System.out.println(a.rest().call("GET", "/v1/accounts/whoami").text());
      System.out.println(a.rest().call("GET", "/v1/certificate/delivery").text());
      System.out.println(a.rest().call("GET", "/v2/keys/" + b.aci + "/*").text());
      try (TestClient.Socket socket = b.connect()) {
        socket.drained();
        var reply =
            a.rest()
                .json(
                    "PUT",
                    "/v1/messages/" + b.aci,
                    TestClient.messages(true, TestClient.message(b, TestClient.bytes("hello"))));
        assertThat(reply.status()).as(reply.text()).isEqualTo(200);
        assertThat(socket.next().envelope().getContent().toStringUtf8()).isEqualTo("hello");
        reply =
            a.rest()
                .json(
                    "PUT",
                    "/v1/messages/" + b.aci,
                    TestClient.messages(false, TestClient.message(b, TestClient.bytes("stored"))));
        assertThat(reply.status()).as(reply.text()).isEqualTo(200);
        assertThat(socket.next().envelope().getContent().toStringUtf8()).isEqualTo("stored");
        for (String online : new String[] {"true", "false"}) {
          reply =
              client
                  .rest(null)
                  .call(
                      "PUT",
                      "/v1/messages/multi_recipient?ts=1&urgent=false&story=false&online=" + online,
                      TestClient.multiRecipient(
                          TestClient.bytes("to all"),
                          TestClient.Recipient.of(a),
                          TestClient.Recipient.of(b)),
                      TestClient.multiRecipientHeaders(a, b));
          assertThat(reply.status()).as(reply.text()).isEqualTo(200);
          assertThat(socket.next().envelope().getContent().toStringUtf8()).endsWith("to all");
        }
      }
    }
  }
}
