package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Reply;
import io.coterie.messaging.TestClient.Transport;
import io.coterie.messaging.certificate.SenderCertificates.CertificateFiles;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.signal.libsignal.metadata.certificate.CertificateValidator;
import org.signal.libsignal.metadata.certificate.SenderCertificate;
import org.signal.libsignal.protocol.ecc.ECPublicKey;
import tools.jackson.databind.JsonNode;

class AccountTest {
  private final TestService service = TestService.shared();
  private final TestClient client = new TestClient(service);
  private final Party party = client.party();

  @ParameterizedTest
  @EnumSource
  void tells_an_account_who_it_is(Via via) {
    JsonNode me = via.open(client, party).call("GET", "/v1/accounts/whoami").json();
    assertThat(me.get("uuid").asString()).isEqualTo(party.aci.toString());
    assertThat(me.get("pni").asString()).isEqualTo(party.pni.toString());
    assertThat(me.get("number").asString()).isEqualTo(party.number);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "/v1/accounts/whoami",
        "/v1/devices",
        "/v1/certificate/delivery",
        "/v2/keys",
        "/v1/config",
        "/v2/config"
      })
  void refuses_who_is_not_authenticated(String path) throws Exception {
    assertThat(client.rest(null).call("GET", path).status()).isEqualTo(401);
    assertThat(client.connect(null).call("GET", path).status()).isEqualTo(401);
    for (String authorization :
        new String[] {
          TestClient.basic(party.aci + ".1", "another password"),
          TestClient.basic(party.aci + ".2", party.password),
          TestClient.basic(party.aci + ".128", party.password),
          TestClient.basic(party.number, party.password),
          TestClient.basic("00000000-0000-0000-0000-000000000000", party.password),
          "Basic " + "A".repeat(2000),
          "Digest x"
        }) {
      assertThat(client.rest(authorization).call("GET", path).status()).isEqualTo(401);
    }
    assertThat(
            client
                .rest(TestClient.basic(party.aci.toString(), party.password))
                .call("GET", path)
                .status())
        .as("no suffix means device 1")
        .isEqualTo(200);
  }

  @ParameterizedTest
  @EnumSource
  void issues_sender_certificates_that_libsignal_accepts(Via via) throws Exception {
    for (boolean withNumber : new boolean[] {true, false}) {
      Reply reply =
          via.open(client, party).call("GET", "/v1/certificate/delivery?includeE164=" + withNumber);
      SenderCertificate certificate =
          new SenderCertificate(
              Base64.getDecoder().decode(reply.json().get("certificate").asString()));
      ECPublicKey root =
          new ECPublicKey(
              Base64.getDecoder()
                  .decode(
                      Files.readString(CertificateFiles.in(service.folder()).trustRoot()).strip()));
      new CertificateValidator(root).validate(certificate, System.currentTimeMillis());
      assertThat(certificate.getSenderUuid()).isEqualTo(party.aci.toString());
      assertThat(certificate.getSenderDeviceId()).isEqualTo(1);
      assertThat(certificate.getKey()).isEqualTo(party.identity.getPublicKey().getPublicKey());
      assertThat(certificate.getSenderE164().isPresent()).isEqualTo(withNumber);
      assertThat(Instant.ofEpochMilli(certificate.getExpiration()))
          .isBetween(
              service.clock().instant().plus(Duration.ofHours(23)),
              service.clock().instant().plus(Duration.ofHours(25)));
    }
  }

  private Map<String, Object> attributes() {
    return new TreeMap<>(
        Map.of(
            "fetchesMessages",
            true,
            "registrationId",
            party.registrationId,
            "unidentifiedAccessKey",
            TestClient.base64(party.accessKey)));
  }

  @ParameterizedTest
  @EnumSource
  void applies_changed_attributes_at_once(Via via) {
    Party reader = client.party();
    String keys = "/v2/keys/" + party.aci + "/*";
    Map<String, String> oldKey =
        Map.of("Unidentified-Access-Key", TestClient.base64(party.accessKey));
    assertThat(client.rest(null).call("GET", keys, new byte[0], oldKey).status()).isEqualTo(200);
    Map<String, Object> attributes = attributes();
    byte[] newKey = new byte[16];
    attributes.put("unidentifiedAccessKey", TestClient.base64(newKey));
    attributes.put("registrationId", 77);
    assertThat(via.open(client, party).json("PUT", "/v1/accounts/attributes", attributes).status())
        .isEqualTo(204);
    assertThat(client.rest(null).call("GET", keys, new byte[0], oldKey).status()).isEqualTo(401);
    assertThat(
            client
                .rest(null)
                .call(
                    "GET",
                    keys,
                    new byte[0],
                    Map.of("Unidentified-Access-Key", TestClient.base64(newKey)))
                .status())
        .isEqualTo(200);
    assertThat(
            reader
                .rest()
                .call("GET", keys)
                .json()
                .get("devices")
                .get(0)
                .get("registrationId")
                .asInt())
        .isEqualTo(77);
    attributes.put("unrestrictedUnidentifiedAccess", true);
    via.open(client, party).json("PUT", "/v1/accounts/attributes", attributes);
    assertThat(client.rest(null).call("GET", keys, new byte[0], oldKey).status())
        .as("unrestricted")
        .isEqualTo(200);
    attributes.put("registrationId", 0);
    assertThat(via.open(client, party).json("PUT", "/v1/accounts/attributes", attributes).status())
        .isEqualTo(422);
  }

  /** The typed client of libsignal writes the key as numbers, and the path with a slash behind. */
  @ParameterizedTest
  @EnumSource
  void takes_attributes_as_libsignal_writes_them(Via via) {
    Map<String, Object> attributes = attributes();
    List<Integer> numbers = new ArrayList<>();
    byte[] newKey = new byte[16];
    for (int i = 0; i < newKey.length; i++) {
      newKey[i] = (byte) (i * 17);
      numbers.add(i * 17);
    }
    attributes.put("unidentifiedAccessKey", numbers);
    Transport own = via.open(client, party);
    assertThat(own.json("PUT", "/v1/accounts/attributes/", attributes).status()).isEqualTo(204);
    assertThat(
            client
                .rest(null)
                .call(
                    "GET",
                    "/v2/keys/" + party.aci + "/*",
                    new byte[0],
                    Map.of("Unidentified-Access-Key", TestClient.base64(newKey)))
                .status())
        .isEqualTo(200);
    for (Object wrong :
        List.of(
            List.of(256), List.of(-1), List.of(1.5), List.of("1"), List.of(List.of(1)), true, 5)) {
      attributes.put("unidentifiedAccessKey", wrong);
      assertThat(own.json("PUT", "/v1/accounts/attributes", attributes).status())
          .as("%s", wrong)
          .isEqualTo(400);
    }
    attributes.put("unidentifiedAccessKey", numbers.subList(0, 15));
    assertThat(own.json("PUT", "/v1/accounts/attributes", attributes).status()).isEqualTo(422);
  }

  @ParameterizedTest
  @EnumSource
  void lists_devices_with_the_fields_of_both_clients(Via via) throws Exception {
    JsonNode device =
        via.open(client, party).call("GET", "/v1/devices").json().get("devices").get(0);
    assertThat(device.get("registrationId").asInt()).isEqualTo(party.registrationId);
    byte[] created =
        party
            .identity
            .getPrivateKey()
            .open(
                Base64.getDecoder().decode(device.get("createdAtCiphertext").asString()),
                "deviceCreatedAt",
                ByteBuffer.allocate(5).put((byte) 1).putInt(party.registrationId).array());
    assertThat(ByteBuffer.wrap(created).getLong()).isEqualTo(device.get("created").asLong());
  }

  @ParameterizedTest
  @EnumSource
  void lists_devices_and_never_removes_the_primary(Via via) {
    Transport transport = via.open(client, party);
    JsonNode device = transport.call("GET", "/v1/devices").json().get("devices").get(0);
    assertThat(device.get("id").asInt()).isEqualTo(1);
    assertThat(device.get("created").asLong()).isPositive();
    assertThat(device.get("lastSeen").asLong() % Duration.ofDays(1).toMillis()).isZero();
    assertThat(transport.call("DELETE", "/v1/devices/1").status()).isEqualTo(403);
    assertThat(transport.call("DELETE", "/v1/devices/2").status()).isEqualTo(404);
    assertThat(transport.call("DELETE", "/v1/devices/128").status()).isEqualTo(422);
    assertThat(transport.call("DELETE", "/v1/devices/x").status()).isEqualTo(422);
  }

  /**
   * Linking is not offered; a second device gets into the database as a link would put it there.
   */
  private void addDevice(int id) {
    service.execute(
        "INSERT INTO device SELECT aci, %d, password_salt, password_hash, registration_id,"
                .formatted(id)
            + " pni_registration_id, name, fetches_messages, capabilities, created_at,"
            + " last_seen_at FROM device WHERE aci = '%s'".formatted(party.aci));
    // Any change of the account makes the service read it again.
    party.rest().json("PUT", "/v1/devices/capabilities", Map.of());
  }

  @ParameterizedTest
  @EnumSource
  void removes_another_device_and_ends_its_connection(Via via) {
    addDevice(2);
    String second = TestClient.basic(party.aci + ".2", party.password);
    TestClient.Socket socket = client.connect(second).drained();
    assertThat(client.rest(second).call("DELETE", "/v1/devices/1").status()).isEqualTo(401);
    assertThat(via.open(client, party).call("DELETE", "/v1/devices/2").status()).isEqualTo(204);
    assertThat(socket.closeCode()).isEqualTo(4401);
    assertThat(client.rest(second).call("GET", "/v1/devices").status()).isEqualTo(401);
  }

  @Test
  void sends_to_own_other_devices_and_says_when_that_is_needed() {
    addDevice(2);
    Party other = client.party();
    Reply toOther =
        party
            .rest()
            .json(
                "PUT",
                "/v1/messages/" + other.aci,
                TestClient.messages(true, TestClient.message(other, TestClient.bytes("x"))));
    assertThat(toOther.json().get("needsSync").asBoolean()).isTrue();
    try (TestClient.Socket second =
        client.connect(TestClient.basic(party.aci + ".2", party.password)).drained()) {
      Reply sync =
          party
              .rest()
              .json(
                  "PUT",
                  "/v1/messages/" + party.aci,
                  TestClient.messages(
                      true,
                      TestClient.message(2, party.registrationId, TestClient.bytes("to myself"))));
      assertThat(sync.status()).as(sync.text()).isEqualTo(200);
      assertThat(sync.json().get("needsSync").asBoolean()).isFalse();
      assertThat(second.next().envelope().getContent().toStringUtf8()).isEqualTo("to myself");
    }
    assertThat(
            party
                .rest()
                .json("PUT", "/v1/messages/PNI:" + party.pni, TestClient.messages(true))
                .status())
        .isEqualTo(403);
  }

  @ParameterizedTest
  @EnumSource
  void deletes_its_own_account_with_all_that_belongs_to_it(Via via) {
    Party other = client.party();
    other
        .rest()
        .json(
            "PUT",
            "/v1/messages/" + party.aci,
            TestClient.messages(false, TestClient.message(party, TestClient.bytes("x"))));
    assertThat(via.open(client, party).call("DELETE", "/v1/accounts/me").status()).isEqualTo(204);
    assertThat(party.rest().call("GET", "/v1/accounts/whoami").status()).isEqualTo(401);
    assertThat(other.rest().call("GET", "/v2/keys/" + party.aci + "/*").status()).isEqualTo(404);
    for (String table : List.of("device", "repeated_prekey", "stored_message")) {
      assertThat(
              service.count("SELECT count(*) FROM %s WHERE aci = '%s'".formatted(table, party.aci)))
          .as(table)
          .isZero();
    }
    Party again = client.sameNumber(party);
    assertThat(again.register(service.enrol(again.number)).status()).isEqualTo(200);
    assertThat(again.aci).isNotEqualTo(party.aci);
  }

  @Test
  void closes_the_sockets_of_a_deleted_account() {
    TestClient.Socket socket = party.connect().drained();
    assertThat(party.rest().call("DELETE", "/v1/accounts/me").status()).isEqualTo(204);
    assertThat(socket.closeCode()).isEqualTo(4401);
  }

  @ParameterizedTest
  @EnumSource
  void takes_capabilities(Via via) {
    Transport transport = via.open(client, party);
    assertThat(transport.json("PUT", "/v1/devices/capabilities", Map.of("spqr", true)).status())
        .isEqualTo(204);
    assertThat(
            transport
                .json("PUT", "/v1/devices/capabilities", Map.of("c".repeat(65), true))
                .status())
        .isEqualTo(422);
  }

  /** Access keys need not be derived from anything. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 127, 255})
  void takes_any_sixteen_bytes_as_an_access_key(int value) {
    byte[] key = new byte[16];
    Arrays.fill(key, (byte) value);
    Map<String, Object> attributes =
        Map.of(
            "fetchesMessages",
            true,
            "registrationId",
            party.registrationId,
            "unidentifiedAccessKey",
            TestClient.base64(key));
    assertThat(party.rest().json("PUT", "/v1/accounts/attributes", attributes).status())
        .isEqualTo(204);
    Map<String, String> right = Map.of("Unidentified-Access-Key", TestClient.base64(key));
    String keys = "/v2/keys/" + party.aci + "/*";
    assertThat(client.rest(null).call("GET", keys, new byte[0], right).status()).isEqualTo(200);
    key[15] ^= 1;
    Map<String, String> wrong = Map.of("Unidentified-Access-Key", TestClient.base64(key));
    assertThat(client.rest(null).call("GET", keys, new byte[0], wrong).status()).isEqualTo(401);
  }

  @ParameterizedTest
  @EnumSource
  void answers_a_path_with_a_slash_at_its_end_like_one_without(Via via) {
    Transport transport = via.open(client, party);
    for (String path : List.of("/v1/accounts/whoami", "/v1/devices", "/v2/keys", "/v1/keepalive")) {
      assertThat(transport.call("GET", path + "/").status()).as(path).isEqualTo(200);
      assertThat(transport.call("GET", path + "//").status()).as(path).isNotEqualTo(200);
    }
    assertThat(transport.call("DELETE", "/v1/devices/1/").status()).isEqualTo(403);
  }

  @ParameterizedTest
  @EnumSource
  void answers_keepalive_and_config(Via via) {
    assertThat(via.open(client, (String) null).call("GET", "/v1/keepalive").status())
        .isEqualTo(200);
    assertThat(via.open(client, party).call("GET", "/v1/keepalive").status()).isEqualTo(200);
    assertThat(via.open(client, party).call("GET", "/v1/config").json().get("config").isArray())
        .isTrue();
  }

  @ParameterizedTest
  @EnumSource
  void sends_the_second_version_of_config_once_to_a_client_that_keeps_its_tag(Via via) {
    Transport transport = via.open(client, party);
    Reply first = transport.call("GET", "/v2/config");
    assertThat(first.text()).isEqualTo("{\"config\":{}}");
    String tag = first.headers().get("ETag");
    Reply again =
        transport.call("GET", "/v2/config", new byte[0], Map.of("If-None-Match", "\"x\", " + tag));
    assertThat(again.status()).isEqualTo(304);
    assertThat(again.headers()).containsEntry("ETag", tag);
    assertThat(again.body()).isEmpty();
    Reply other =
        transport.call("GET", "/v2/config", new byte[0], Map.of("If-None-Match", "\"x\""));
    assertThat(other.status()).isEqualTo(200);
  }

  @ParameterizedTest
  @EnumSource
  void knows_what_it_does_not_know(Via via) {
    Transport transport = via.open(client, party);
    assertThat(transport.call("GET", "/v1/profile/x").status()).isEqualTo(404);
    assertThat(transport.call("GET", "/").status()).isEqualTo(404);
    assertThat(transport.call("POST", "/v1/accounts/whoami").status()).isEqualTo(405);
    assertThat(transport.call("GET", "/v1/certificate/delivery?includeE164=maybe").status())
        .isEqualTo(400);
    assertThat(transport.call("PUT", "/v1/accounts/attributes").status()).isEqualTo(415);
  }
}
