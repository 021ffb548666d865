package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Reply;
import io.coterie.messaging.TestClient.Socket;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.FieldSource;

class RegistrationTest {
  private final TestService service = TestService.shared();
  private final TestClient client = new TestClient(service);

  @ParameterizedTest
  @EnumSource
  void creates_an_account_with_the_fields_clients_read(Via via) {
    Party party = client.newParty();
    Reply reply =
        via.open(client, (String) null)
            .json(
                "POST",
                "/v1/registration",
                party.registration(service.enrol(party.number)),
                Map.of("Authorization", TestClient.basic(party.number, party.password)));
    assertThat(reply.status()).isEqualTo(200);
    assertThat(UUID.fromString(reply.json().get("uuid").asString())).isNotNull();
    assertThat(UUID.fromString(reply.json().get("pni").asString())).isNotNull();
    assertThat(reply.json().get("number").asString()).isEqualTo(party.number);
    assertThat(reply.json().get("storageCapable").isBoolean()).isTrue();
    assertThat(reply.headers()).containsKey("X-Signal-Timestamp");
  }

  @Test
  void refuses_a_token_that_is_wrong_unknown_or_of_another_number() {
    Party party = client.newParty();
    byte[] token = service.enrol(party.number);
    byte[] wrong = token.clone();
    wrong[0] ^= 1;
    assertThat(party.register(wrong).status()).isEqualTo(403);
    assertThat(client.newParty().register(token).status()).isEqualTo(403);
    assertThat(party.register(new byte[0]).status()).isEqualTo(403);
    assertThat(party.register(new byte[1000]).status()).isEqualTo(403);
    assertThat(party.register(token).status()).as("the token is still unused").isEqualTo(200);
  }

  @Test
  void uses_a_token_once_but_repeats_the_answer_to_the_very_same_request() {
    Party party = client.newParty();
    byte[] token = service.enrol(party.number);
    Map<String, Object> request = party.registration(token);
    Reply first = party.register(request);
    party.rest().json("PUT", "/v2/keys", Map.of("preKeys", List.of(TestClient.oneTimeKey(1))));
    Reply again = party.register(request);
    assertThat(again.status()).isEqualTo(200);
    assertThat(again.json().get("uuid")).isEqualTo(first.json().get("uuid"));
    assertThat(party.rest().call("GET", "/v2/keys").json().get("count").asInt())
        .as("nothing has changed")
        .isEqualTo(1);
    assertThat(client.sameNumber(party).register(token).status())
        .as("another identity and password")
        .isEqualTo(403);
    assertThat(party.rest().call("GET", "/v1/accounts/whoami").status()).isEqualTo(200);
  }

  @Test
  void gives_a_number_that_registers_again_its_old_ids_and_nothing_else() {
    Party sender = client.party();
    Party old = client.party();
    Socket socket = old.connect().drained();
    old.rest().json("PUT", "/v2/keys", Map.of("preKeys", List.of(TestClient.oneTimeKey(1))));
    Party renewed = client.sameNumber(old);
    Reply reply = renewed.register(service.enrol(old.number));
    assertThat(reply.status()).isEqualTo(200);
    assertThat(reply.json().get("reregistration").asBoolean()).isTrue();
    assertThat(renewed.aci).isEqualTo(old.aci);
    assertThat(renewed.pni).isEqualTo(old.pni);
    assertThat(socket.closeCode()).isEqualTo(4401);
    assertThat(old.rest().call("GET", "/v1/accounts/whoami").status()).isEqualTo(401);
    assertThat(renewed.rest().call("GET", "/v2/keys").json().get("count").asInt()).isZero();
    Reply keys = sender.rest().call("GET", "/v2/keys/" + old.aci + "/*");
    assertThat(keys.json().get("identityKey").asString())
        .isEqualTo(TestClient.base64(renewed.identity.getPublicKey().serialize()));
  }

  @Test
  void drops_stored_messages_when_a_number_registers_again() {
    Party sender = client.party();
    Party old = client.party();
    sender
        .rest()
        .json(
            "PUT",
            "/v1/messages/" + old.aci,
            TestClient.messages(false, TestClient.message(old, TestClient.bytes("for the old"))));
    Party renewed = client.sameNumber(old);
    renewed.register(service.enrol(old.number));
    try (Socket socket = renewed.connect().drained()) {
      assertThat(socket.pushed).isEmpty();
    }
  }

  @Test
  void registers_once_when_many_ask_at_once() {
    Party first = client.newParty();
    byte[] token = service.enrol(first.number);
    List<CompletableFuture<Integer>> replies =
        IntStream.range(0, 8)
            .mapToObj(
                i ->
                    CompletableFuture.supplyAsync(
                        () -> client.sameNumber(first).register(token).status()))
            .toList();
    assertThat(replies.stream().map(CompletableFuture::join)).containsOnlyOnce(200).contains(403);
    assertThat(
            service.count(
                "SELECT count(*) FROM account WHERE number = '%s'".formatted(first.number)))
        .isEqualTo(1);
  }

  @Test
  void registers_one_after_another_when_two_tokens_race() {
    Party first = client.newParty();
    List<byte[]> tokens = List.of(service.enrol(first.number), service.enrol(first.number));
    List<Integer> replies =
        tokens.stream()
            .map(
                token ->
                    CompletableFuture.supplyAsync(
                        () -> client.sameNumber(first).register(token).status()))
            .toList()
            .stream()
            .map(CompletableFuture::join)
            .toList();
    assertThat(replies).containsExactly(200, 200);
  }

  private record Change(String name, int status, Consumer<Map<String, Object>> apply) {
    @Override
    public String toString() {
      return name;
    }
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> attributes(Map<String, Object> request) {
    return (Map<String, Object>) request.get("accountAttributes");
  }

  static final List<Arguments> CHANGES =
      List.of(
              new Change("no token and no session", 422, r -> r.remove("recoveryPassword")),
              new Change("token and session", 422, r -> r.put("sessionId", "abc")),
              new Change(
                  "unverified session",
                  401,
                  r -> {
                    r.remove("recoveryPassword");
                    r.put("sessionId", "abc");
                  }),
              new Change("token not base64", 400, r -> r.put("recoveryPassword", "***")),
              new Change("no attributes", 422, r -> r.remove("accountAttributes")),
              new Change("registration id 0", 422, r -> attributes(r).put("registrationId", 0)),
              new Change(
                  "registration id above 14 bits",
                  422,
                  r -> attributes(r).put("registrationId", 0x4000)),
              new Change("long name", 422, r -> attributes(r).put("name", "n".repeat(226))),
              new Change(
                  "access key of 15 bytes",
                  422,
                  r -> attributes(r).put("unidentifiedAccessKey", TestClient.base64(new byte[15]))),
              new Change(
                  "too many capabilities",
                  422,
                  r -> {
                    Map<String, Object> many = new HashMap<>();
                    IntStream.range(0, 65).forEach(i -> many.put("c" + i, true));
                    attributes(r).put("capabilities", many);
                  }),
              new Change("no identity key", 422, r -> r.remove("aciIdentityKey")),
              new Change(
                  "identity key is no point",
                  422,
                  r -> r.put("aciIdentityKey", TestClient.base64(new byte[33]))),
              new Change("no signed prekey", 422, r -> r.remove("aciSignedPreKey")),
              new Change("no last-resort prekey", 422, r -> r.remove("pniPqLastResortPreKey")),
              new Change(
                  "prekey signed by another identity",
                  422,
                  r -> r.put("aciSignedPreKey", r.get("pniSignedPreKey"))),
              new Change(
                  "KEM key in the place of an EC key",
                  422,
                  r -> r.put("aciSignedPreKey", r.get("aciPqLastResortPreKey"))))
          .stream()
          .map(c -> Arguments.of(c))
          .toList();

  @ParameterizedTest
  @FieldSource("CHANGES")
  void refuses_a_request_that_is_not_acceptable_and_keeps_the_token(Change change) {
    Party party = client.newParty();
    byte[] token = service.enrol(party.number);
    Map<String, Object> request = party.registration(token);
    change.apply().accept(request);
    assertThat(party.register(request).status()).isEqualTo(change.status());
    assertThat(party.register(token).status()).isEqualTo(200);
  }

  @Test
  void refuses_bad_credentials() {
    Party party = client.newParty();
    Map<String, Object> request = party.registration(service.enrol(party.number));
    for (String authorization :
        List.of(
            "Basic ***", "Bearer x", "Basic " + TestClient.base64(TestClient.bytes("nocolon")))) {
      assertThat(
              client
                  .rest(null)
                  .json("POST", "/v1/registration", request, Map.of("Authorization", authorization))
                  .status())
          .isEqualTo(401);
    }
    assertThat(client.rest(null).json("POST", "/v1/registration", request).status()).isEqualTo(401);
    for (String user :
        List.of("15550001", "+0155500000", "+1", "+1555000000a", "+1555000000000000")) {
      assertThat(
              client
                  .rest(TestClient.basic(user, party.password))
                  .json("POST", "/v1/registration", request)
                  .status())
          .as(user)
          .isEqualTo(422);
    }
    for (String password : List.of("short", "p".repeat(257))) {
      assertThat(
              client
                  .rest(TestClient.basic(party.number, password))
                  .json("POST", "/v1/registration", request)
                  .status())
          .isEqualTo(422);
    }
  }

  @Test
  void limits_attempts_for_a_number() {
    Party party = client.newParty();
    Reply reply = party.register(new byte[16]);
    for (int i = 0; i < 20 && reply.status() == 403; i++) {
      reply = party.register(new byte[16]);
    }
    assertThat(reply.status()).isEqualTo(429);
    assertThat(Integer.parseInt(reply.headers().get("Retry-After"))).isPositive();
    assertThat(client.newParty().register(new byte[16]).status())
        .as("other numbers are not held up")
        .isEqualTo(403);
  }

  @Test
  void attempts_of_others_keep_no_party_from_registering_its_number() {
    Party party = client.newParty();
    TestClient elsewhere = client.at(InetAddress.ofLiteral("127.0.0.2"));
    Reply reply = elsewhere.party(party.number).register(new byte[16]);
    for (int i = 0; i < 20 && reply.status() == 403; i++) {
      reply = elsewhere.party(party.number).register(new byte[16]);
    }
    assertThat(reply.status()).isEqualTo(429);
    assertThat(party.register(service.enrol(party.number)).status()).isEqualTo(200);
  }

  @ParameterizedTest
  @EnumSource
  void says_that_numbers_are_not_verified_by_a_code(Via via) {
    TestClient.Transport transport = via.open(client, (String) null);
    Reply reply =
        transport.json("POST", "/v1/verification/session", Map.of("number", "+15550000001"));
    assertThat(reply.status()).isEqualTo(403);
    assertThat(reply.json().get("message").asString()).contains("one-time token");
    assertThat(transport.call("GET", "/v1/verification/session/x").status()).isEqualTo(404);
    assertThat(transport.json("PATCH", "/v1/verification/session/x", Map.of()).status())
        .isEqualTo(404);
    assertThat(transport.json("POST", "/v1/verification/session/x/code", Map.of()).status())
        .isEqualTo(404);
    assertThat(transport.json("PUT", "/v1/verification/session/x/code", Map.of()).status())
        .isEqualTo(404);
  }
}
