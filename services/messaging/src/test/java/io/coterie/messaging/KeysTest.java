package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Reply;
import io.coterie.messaging.TestClient.Transport;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import tools.jackson.databind.JsonNode;

class KeysTest {
  private final TestService service = TestService.shared();
  private final TestClient client = new TestClient(service);
  private final Party owner = client.party();
  private final Party reader = client.party();

  private Map<String, Object> upload(int count) {
    Map<String, Object> body = new TreeMap<>();
    body.put(
        "preKeys",
        IntStream.range(0, count).mapToObj(i -> TestClient.oneTimeKey(100 + i)).toList());
    body.put(
        "pqPreKeys",
        IntStream.range(0, count)
            .mapToObj(i -> TestClient.kemKey(owner.identity, 200 + i))
            .toList());
    body.put("signedPreKey", TestClient.signedKey(owner.identity, 10));
    body.put("pqLastResortPreKey", TestClient.kemKey(owner.identity, 20));
    return body;
  }

  private String path(String device) {
    return "/v2/keys/" + owner.aci + "/" + device;
  }

  @ParameterizedTest
  @EnumSource
  void uploads_counts_and_hands_out_in_order_then_the_last_resort(Via via) {
    Transport transport = via.open(client, owner);
    assertThat(transport.json("PUT", "/v2/keys?identity=aci", upload(2)).status()).isEqualTo(200);
    JsonNode counts = transport.call("GET", "/v2/keys?identity=aci").json();
    assertThat(counts.get("count").asInt()).isEqualTo(2);
    assertThat(counts.get("pqCount").asInt()).isEqualTo(2);
    Transport fetch = via.open(client, reader);
    for (int i = 0; i < 3; i++) {
      JsonNode reply = fetch.call("GET", path(i == 0 ? "*" : "1")).json();
      assertThat(reply.get("identityKey").asString())
          .isEqualTo(TestClient.base64(owner.identity.getPublicKey().serialize()));
      JsonNode device = reply.get("devices").get(0);
      assertThat(device.get("deviceId").asInt()).isEqualTo(1);
      assertThat(device.get("registrationId").asInt()).isEqualTo(owner.registrationId);
      assertThat(device.get("signedPreKey").get("keyId").asInt()).isEqualTo(10);
      assertThat(device.get("signedPreKey").get("signature").asString()).isNotEmpty();
      if (i < 2) {
        assertThat(device.get("preKey").get("keyId").asInt()).isEqualTo(100 + i);
        assertThat(device.get("pqPreKey").get("keyId").asInt()).isEqualTo(200 + i);
      } else {
        assertThat(device.get("preKey").isNull()).isTrue();
        assertThat(device.get("pqPreKey").get("keyId").asInt()).isEqualTo(20);
      }
    }
  }

  @Test
  void replaces_only_the_kinds_an_upload_has() {
    owner.rest().json("PUT", "/v2/keys", upload(3));
    owner.rest().json("PUT", "/v2/keys", Map.of("preKeys", List.of(TestClient.oneTimeKey(1))));
    JsonNode counts = owner.rest().call("GET", "/v2/keys").json();
    assertThat(counts.get("count").asInt()).isEqualTo(1);
    assertThat(counts.get("pqCount").asInt()).isEqualTo(3);
  }

  @Test
  void never_hands_out_a_one_time_key_twice() {
    owner.rest().json("PUT", "/v2/keys", upload(40));
    List<CompletableFuture<JsonNode>> fetches = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      fetches.add(
          CompletableFuture.supplyAsync(
              () -> reader.rest().call("GET", path("1")).json().get("devices").get(0)));
    }
    List<Integer> ec = new ArrayList<>();
    List<Integer> kem = new ArrayList<>();
    for (CompletableFuture<JsonNode> fetch : fetches) {
      JsonNode device = fetch.join();
      if (!device.get("preKey").isNull()) {
        ec.add(device.get("preKey").get("keyId").asInt());
      }
      if (device.get("pqPreKey").get("keyId").asInt() != 20) {
        kem.add(device.get("pqPreKey").get("keyId").asInt());
      }
    }
    assertThat(ec).hasSize(40).doesNotHaveDuplicates();
    assertThat(kem).hasSize(40).doesNotHaveDuplicates();
  }

  @ParameterizedTest
  @EnumSource
  void keeps_the_two_identities_apart(Via via) {
    Transport transport = via.open(client, owner);
    transport.json("PUT", "/v2/keys?identity=aci", upload(1));
    Map<String, Object> pni = new TreeMap<>();
    pni.put("preKeys", List.of(TestClient.oneTimeKey(500)));
    pni.put("signedPreKey", TestClient.signedKey(owner.pniIdentity, 510));
    assertThat(transport.json("PUT", "/v2/keys?identity=pni", pni).status()).isEqualTo(200);
    assertThat(
            transport
                .json(
                    "PUT", "/v2/keys?identity=aci", Map.of("signedPreKey", pni.get("signedPreKey")))
                .status())
        .as("signed by the other identity")
        .isEqualTo(422);
    JsonNode reply = reader.rest().call("GET", "/v2/keys/PNI:" + owner.pni + "/*").json();
    assertThat(reply.get("identityKey").asString())
        .isEqualTo(TestClient.base64(owner.pniIdentity.getPublicKey().serialize()));
    assertThat(reply.get("devices").get(0).get("preKey").get("keyId").asInt()).isEqualTo(500);
    assertThat(transport.call("GET", "/v2/keys").json().get("count").asInt()).isEqualTo(1);
    assertThat(transport.call("GET", "/v2/keys?identity=other").status()).isEqualTo(400);
  }

  @ParameterizedTest
  @EnumSource
  void opens_keys_to_whom_the_owner_lets(Via via) {
    Transport anonymous = via.open(client, (String) null);
    String path = path("*");
    assertThat(anonymous.call("GET", path).status()).isEqualTo(401);
    assertThat(withKey(anonymous, path, owner.accessKey).status()).isEqualTo(200);
    assertThat(withKey(anonymous, path, new byte[16]).status()).isEqualTo(401);
    assertThat(withKey(anonymous, path, new byte[15]).status()).isEqualTo(401);
    assertThat(
            anonymous
                .call("GET", path, new byte[0], Map.of("Unidentified-Access-Key", "***"))
                .status())
        .isEqualTo(401);
    String unknown = "/v2/keys/" + UUID.randomUUID() + "/*";
    assertThat(withKey(anonymous, unknown, owner.accessKey).status())
        .as("an anonymous caller does not learn who exists")
        .isEqualTo(401);
    assertThat(withKey(anonymous, path("2"), owner.accessKey).status())
        .as("nor which devices there are")
        .isEqualTo(401);
    assertThat(withKey(anonymous, "/v2/keys/PNI:" + owner.pni + "/*", owner.accessKey).status())
        .as("access keys are for account identities")
        .isEqualTo(401);
    Transport named = via.open(client, reader);
    assertThat(named.call("GET", unknown).status()).isEqualTo(404);
    assertThat(named.call("GET", path("2")).status()).isEqualTo(404);
    assertThat(named.call("GET", path("0")).status()).isEqualTo(422);
    assertThat(named.call("GET", path("one")).status()).isEqualTo(422);
    assertThat(named.call("GET", "/v2/keys/nobody/*").status()).isEqualTo(422);
    assertThat(named.call("GET", "/v2/keys/1-1-1-1-1/*").status()).isEqualTo(422);
  }

  private static Reply withKey(Transport transport, String path, byte[] key) {
    return transport.call(
        "GET", path, new byte[0], Map.of("Unidentified-Access-Key", TestClient.base64(key)));
  }

  @ParameterizedTest
  @EnumSource
  void accepts_no_group_token_because_there_is_no_group_service(Via via) {
    Map<String, String> token = Map.of("Group-Send-Token", TestClient.base64(new byte[100]));
    assertThat(via.open(client, (String) null).call("GET", path("*"), new byte[0], token).status())
        .isEqualTo(401);
    assertThat(via.open(client, reader).call("GET", path("*"), new byte[0], token).status())
        .as("never together with another authorization")
        .isEqualTo(400);
  }

  @ParameterizedTest
  @EnumSource
  void checks_whether_both_sides_have_the_same_repeated_keys(Via via) throws Exception {
    Transport transport = via.open(client, owner);
    Map<String, Object> upload = upload(0);
    transport.json("PUT", "/v2/keys", upload);
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    digest.update(owner.identity.getPublicKey().serialize());
    for (String name : List.of("signedPreKey", "pqLastResortPreKey")) {
      Map<?, ?> key = (Map<?, ?>) upload.get(name);
      digest.update(ByteBuffer.allocate(8).putLong((int) key.get("keyId")).array());
      digest.update(Base64.getDecoder().decode((String) key.get("publicKey")));
    }
    byte[] expected = digest.digest();
    for (String identity : List.of("aci", "ACI")) {
      Map<String, Object> body =
          Map.of("identityType", identity, "digest", TestClient.base64(expected));
      assertThat(transport.json("POST", "/v2/keys/check", body).status()).isEqualTo(200);
    }
    expected[0] ^= 1;
    assertThat(
            transport
                .json(
                    "POST",
                    "/v2/keys/check",
                    Map.of("identityType", "aci", "digest", TestClient.base64(expected)))
                .status())
        .isEqualTo(409);
    assertThat(transport.json("POST", "/v2/keys/check", Map.of("identityType", "aci")).status())
        .isEqualTo(422);
  }

  @ParameterizedTest
  @EnumSource
  void refuses_keys_that_are_not_acceptable_and_stores_nothing_of_them(Via via) {
    Transport transport = via.open(client, owner);
    transport.json("PUT", "/v2/keys", upload(1));
    List<Map<String, Object>> uploads = new ArrayList<>();
    uploads.add(
        Map.of("preKeys", IntStream.range(0, 101).mapToObj(TestClient::oneTimeKey).toList()));
    uploads.add(Map.of("preKeys", List.of(TestClient.oneTimeKey(5), TestClient.oneTimeKey(5))));
    uploads.add(Map.of("preKeys", List.of(Map.of("keyId", 5))));
    uploads.add(
        Map.of(
            "preKeys",
            List.of(Map.of("keyId", -1, "publicKey", TestClient.oneTimeKey(5).get("publicKey")))));
    uploads.add(
        Map.of(
            "preKeys", List.of(Map.of("keyId", 5, "publicKey", TestClient.base64(new byte[33])))));
    uploads.add(Map.of("pqPreKeys", List.of(TestClient.oneTimeKey(5))));
    uploads.add(Map.of("pqPreKeys", List.of(TestClient.kemKey(reader.identity, 5))));
    uploads.add(Map.of("signedPreKey", TestClient.oneTimeKey(5)));
    uploads.add(
        Map.of(
            "preKeys", List.of(TestClient.oneTimeKey(7)),
            "signedPreKey", TestClient.signedKey(reader.identity, 5)));
    for (Map<String, Object> upload : uploads) {
      assertThat(transport.json("PUT", "/v2/keys", upload).status()).isEqualTo(422);
    }
    JsonNode device = reader.rest().call("GET", path("1")).json().get("devices").get(0);
    assertThat(device.get("preKey").get("keyId").asInt()).isEqualTo(100);
    assertThat(device.get("signedPreKey").get("keyId").asInt()).isEqualTo(10);
  }
}
