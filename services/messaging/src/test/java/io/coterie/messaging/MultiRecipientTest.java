package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Reply;
import io.coterie.messaging.TestClient.Socket;
import io.coterie.messaging.TestClient.Transport;
import io.coterie.proto.signal.Envelope;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class MultiRecipientTest {
  private static final String PATH =
      "/v1/messages/multi_recipient?ts=1234&urgent=false&story=false";
  private static final String ONLINE = PATH + "&online=true";
  private static final byte[] CONTENT = TestClient.bytes("to all");

  private final TestService service = TestService.shared();
  private final TestClient client = new TestClient(service);
  private final Party a = client.party();
  private final Party b = client.party();
  private final Recipient toA = Recipient.of(a);
  private final Recipient toB = Recipient.of(b);

  private Reply send(Via via, String path, Map<String, String> headers, Recipient... to) {
    return via.open(client, (String) null)
        .call("PUT", path, TestClient.multiRecipient(CONTENT, to), headers);
  }

  @ParameterizedTest
  @CsvSource({"REST, true", "REST, false", "SOCKET, true", "SOCKET, false"})
  void reaches_every_recipient_with_one_request(Via via, boolean online) {
    try (Socket socketA = a.connect().drained();
        Socket socketB = b.connect().drained()) {
      Reply reply =
          send(via, PATH + "&online=" + online, TestClient.multiRecipientHeaders(a, b), toA, toB);
      assertThat(reply.status()).as(reply.text()).isEqualTo(200);
      assertThat(reply.text()).isEqualTo("{\"uuids404\":[]}");
      Envelope forA = socketA.next().envelope();
      Envelope forB = socketB.next().envelope();
      assertThat(forA.getGuid()).isNotEqualTo(forB.getGuid());
      for (Envelope envelope : List.of(forA, forB)) {
        assertThat(envelope.getType()).isEqualTo(Envelope.Type.UNIDENTIFIED_SENDER);
        assertThat(envelope.getContent().toStringUtf8()).endsWith("to all");
        assertThat(envelope.getContent().size())
            .as("version, key and tag of this recipient, shared key, content")
            .isEqualTo(1 + 32 + 16 + 32 + CONTENT.length);
        assertThat(envelope.getClientTimestamp()).isEqualTo(1234);
        assertThat(envelope.getEphemeral()).isEqualTo(online);
        assertThat(envelope.getUrgent()).isFalse();
        assertThat(envelope.hasSource() || envelope.hasSourceServiceId()).isFalse();
      }
      assertThat(forA.getDestination()).isEqualTo(a.aci.toString());
    }
  }

  @Test
  void stores_the_body_once_and_forgets_it_with_the_last_acknowledgement() {
    long bodies = service.count("SELECT count(*) FROM shared_body");
    assertThat(
            send(Via.REST, PATH + "&online=false", TestClient.multiRecipientHeaders(a, b), toA, toB)
                .status())
        .isEqualTo(200);
    assertThat(service.count("SELECT count(*) FROM shared_body")).isEqualTo(bodies + 1);
    assertThat(
            service.count(
                "SELECT count(*) FROM stored_message WHERE aci IN ('%s', '%s')"
                    .formatted(a.aci, b.aci)))
        .isEqualTo(2);
    try (Socket socketA = a.connect();
        Socket socketB = b.connect()) {
      assertThat(socketA.next().envelope().getContent().toStringUtf8()).endsWith("to all");
      assertThat(socketB.next().envelope().getContent().toStringUtf8()).endsWith("to all");
    }
    Awaitility.await()
        .until(
            () ->
                service.count(
                        "SELECT count(*) FROM stored_message WHERE aci IN ('%s', '%s')"
                            .formatted(a.aci, b.aci))
                    == 0);
    service
        .context()
        .getBean(io.coterie.messaging.storage.PostgresMessageQueue.class)
        .sweepStored();
    assertThat(service.count("SELECT count(*) FROM shared_body")).isEqualTo(bodies);
  }

  @ParameterizedTest
  @EnumSource
  void checks_the_combined_access_key(Via via) {
    assertThat(send(via, ONLINE, TestClient.multiRecipientHeaders(a), toA, toB).status())
        .isEqualTo(401);
    assertThat(
            send(via, ONLINE, Map.of("Content-Type", "application/vnd.signal-messenger.mrm"), toA)
                .status())
        .isEqualTo(401);
    Party open = client.party();
    Map<String, Object> attributes =
        Map.of(
            "fetchesMessages", true,
            "registrationId", open.registrationId,
            "unrestrictedUnidentifiedAccess", true);
    open.rest().json("PUT", "/v1/accounts/attributes", attributes);
    assertThat(
            send(via, ONLINE, TestClient.multiRecipientHeaders(a), toA, Recipient.of(open))
                .status())
        .as("only the restricted ones count")
        .isEqualTo(200);
    assertThat(send(via, ONLINE, TestClient.multiRecipientHeaders(), Recipient.of(open)).status())
        .as("all unrestricted: sixteen zero bytes")
        .isEqualTo(200);
    Party closed = client.party();
    closed
        .rest()
        .json(
            "PUT",
            "/v1/accounts/attributes",
            Map.of("fetchesMessages", true, "registrationId", closed.registrationId));
    assertThat(
            send(via, ONLINE, TestClient.multiRecipientHeaders(a), toA, Recipient.of(closed))
                .status())
        .as("has no access key")
        .isEqualTo(401);
  }

  /** Both identities of an account have one access key: combined, it is all zeros. */
  @ParameterizedTest
  @EnumSource
  void refuses_an_account_that_is_named_by_both_its_identities(Via via) {
    byte[] body =
        TestClient.multiRecipient(CONTENT, toA, new Recipient(a.pni, 1, a.registrationId));
    int secondKind = 2 + 17 + 1 + 2 + 32 + 16;
    body[secondKind] = 1;
    assertThat(
            via.open(client, (String) null)
                .call("PUT", ONLINE, body, TestClient.multiRecipientHeaders())
                .status())
        .isEqualTo(401);
  }

  /** Counted twice, the key of the account would cancel itself. */
  @ParameterizedTest
  @EnumSource
  void refuses_an_account_that_is_named_twice(Via via) {
    Recipient second = new Recipient(a.aci, 2, a.registrationId);
    assertThat(send(via, ONLINE, TestClient.multiRecipientHeaders(), toA, second).status())
        .isEqualTo(401);
    assertThat(send(via, ONLINE, TestClient.multiRecipientHeaders(), toA, toB, toA).status())
        .as("a device twice is not even a message")
        .isEqualTo(400);
  }

  @ParameterizedTest
  @EnumSource
  void refuses_a_sender_that_names_itself(Via via) {
    Map<String, String> headers = TestClient.multiRecipientHeaders(b);
    byte[] body = TestClient.multiRecipient(CONTENT, toB);
    assertThat(via.open(client, a).call("PUT", ONLINE, body, headers).status()).isEqualTo(400);
  }

  @ParameterizedTest
  @EnumSource
  void accepts_no_group_token_because_there_is_no_group_service(Via via) {
    Map<String, String> headers = new HashMap<>(TestClient.multiRecipientHeaders(a));
    headers.put("Group-Send-Token", "AAAA");
    assertThat(send(via, ONLINE, headers, toA).status()).isEqualTo(400);
    headers.remove("Unidentified-Access-Key");
    assertThat(send(via, ONLINE, headers, toA).status()).isEqualTo(401);
  }

  @ParameterizedTest
  @EnumSource
  void reports_an_unknown_recipient(Via via) {
    Recipient unknown = new Recipient(UUID.randomUUID(), 1, 5);
    assertThat(send(via, ONLINE, TestClient.multiRecipientHeaders(a), toA, unknown).status())
        .isEqualTo(404);
  }

  @ParameterizedTest
  @EnumSource
  void names_deleted_accounts_to_a_sender_that_knew_their_keys(Via via) {
    assertThat(b.rest().call("DELETE", "/v1/accounts/me").status()).isEqualTo(204);
    try (Socket socketA = a.connect().drained()) {
      Reply reply = send(via, ONLINE, TestClient.multiRecipientHeaders(a, b), toA, toB);
      assertThat(reply.status()).isEqualTo(200);
      assertThat(reply.text()).isEqualTo("{\"uuids404\":[\"" + b.aci + "\"]}");
      assertThat(socketA.next().envelope().getContent().toStringUtf8()).endsWith("to all");
    }
    assertThat(send(via, ONLINE, TestClient.multiRecipientHeaders(a), toA, toB).status())
        .as("without the key of the deleted account")
        .isEqualTo(401);
  }

  @ParameterizedTest
  @EnumSource
  void queues_for_nobody_when_a_device_does_not_match(Via via) {
    Map<String, String> headers = TestClient.multiRecipientHeaders(a, b);
    Recipient staleB = new Recipient(b.aci, 1, b.registrationId ^ 1);
    Recipient extraB = new Recipient(b.aci, 2, 9);
    Recipient staleA = new Recipient(a.aci, 1, a.registrationId ^ 1);
    try (Socket socketA = a.connect().drained()) {
      Reply stale = send(via, ONLINE, headers, toA, staleB);
      assertThat(stale.status()).isEqualTo(410);
      assertThat(stale.text())
          .isEqualTo("[{\"uuid\":\"" + b.aci + "\",\"devices\":{\"staleDevices\":[1]}}]");
      Reply mismatch = send(via, ONLINE, headers, toA, extraB);
      assertThat(mismatch.status()).isEqualTo(409);
      assertThat(mismatch.text())
          .isEqualTo(
              "[{\"uuid\":\""
                  + b.aci
                  + "\",\"devices\":{\"missingDevices\":[1],\"extraDevices\":[2]}}]");
      assertThat(send(via, ONLINE, headers, staleA, extraB).status())
          .as("409 comes first")
          .isEqualTo(409);
      byte[] marker = TestClient.multiRecipient(TestClient.bytes("marker"), toA);
      assertThat(
              via.open(client, (String) null)
                  .call("PUT", ONLINE, marker, TestClient.multiRecipientHeaders(a))
                  .status())
          .isEqualTo(200);
      assertThat(socketA.next().envelope().getContent().toStringUtf8()).endsWith("marker");
    }
  }

  /** They are many bytes that no recipient gets. */
  @ParameterizedTest
  @EnumSource
  void refuses_recipients_without_devices(Via via) {
    byte[] one = TestClient.multiRecipient(CONTENT, toA);
    byte[] withExcluded =
        ByteBuffer.allocate(one.length + 18)
            .put(one[0])
            .put((byte) 2)
            .put((byte) 0)
            .putLong(b.aci.getMostSignificantBits())
            .putLong(b.aci.getLeastSignificantBits())
            .put((byte) 0)
            .put(one, 2, one.length - 2)
            .array();
    Map<String, String> headers = TestClient.multiRecipientHeaders(a);
    Transport anonymous = via.open(client, (String) null);
    assertThat(anonymous.call("PUT", ONLINE, one, headers).status()).isEqualTo(200);
    assertThat(anonymous.call("PUT", ONLINE, withExcluded, headers).status()).isEqualTo(400);
  }

  @ParameterizedTest
  @EnumSource
  void refuses_what_is_not_a_multi_recipient_message(Via via) {
    Transport anonymous = via.open(client, (String) null);
    Map<String, String> headers = TestClient.multiRecipientHeaders(a);
    byte[] good = TestClient.multiRecipient(CONTENT, toA);
    byte[] otherVersion = good.clone();
    otherVersion[0] = 0x7F;
    byte[] noRecipients = TestClient.multiRecipient(CONTENT);
    byte[] twice = TestClient.multiRecipient(CONTENT, toA, toA);
    byte[] manyRecipients = good.clone();
    manyRecipients[1] = 0x7F;
    for (byte[] body :
        List.of(
            new byte[0],
            new byte[1],
            otherVersion,
            noRecipients,
            twice,
            manyRecipients,
            Arrays.copyOf(good, 20))) {
      assertThat(anonymous.call("PUT", ONLINE, body, headers).status()).isEqualTo(400);
    }
    assertThat(anonymous.call("PUT", "/v1/messages/multi_recipient", good, headers).status())
        .as("no timestamp")
        .isEqualTo(400);
    assertThat(anonymous.call("PUT", "/v1/messages/multi_recipient?ts=-1", good, headers).status())
        .isEqualTo(400);
    assertThat(
            anonymous
                .call("PUT", "/v1/messages/multi_recipient?ts=9999999999999999", good, headers)
                .status())
        .isEqualTo(400);
    Map<String, String> json = new HashMap<>(headers);
    json.put("Content-Type", "application/json");
    assertThat(anonymous.call("PUT", ONLINE, good, json).status()).isEqualTo(415);
    byte[] large = TestClient.multiRecipient(new byte[96 * 1024], toA);
    assertThat(anonymous.call("PUT", ONLINE, large, headers).status()).isEqualTo(413);
  }
}
