package io.coterie.channel.link;

import com.google.protobuf.ByteString;
import io.coterie.channel.ChannelAccount;
import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.ClientCertificate;
import io.coterie.channel.keys.AccessKey;
import io.coterie.channel.keys.PreKeys;
import io.coterie.trust.Member;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Base64;
import java.util.UUID;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.util.KeyHelper;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * Makes an account at the messaging service: once for each member, before the roster is written.
 *
 * <p>This is the one call over REST: without an account there is no WebSocket.
 */
public final class Enrolment {
  private static final Duration CONNECT = Duration.ofSeconds(5);
  private static final Duration ANSWER = Duration.ofSeconds(20);

  /** The same request is repeated when the answer is lost; the service gives the same answer. */
  private static final int ATTEMPTS = 3;

  private static final int PASSWORD_BYTES = 24;
  private static final int MAX_ANSWER_BYTES = 64 << 10;

  /** Ids of the prekeys an account is born with; each process uploads its own before they count. */
  private static final int FIRST_KEY_ID = 1;

  private static final JsonMapper JSON = JsonMapper.builder().build();

  private Enrolment() {}

  /**
   * Registers a number with a fresh identity. Blocks. Nothing is stored: the caller keeps the
   * account, sealed, before it does anything else.
   *
   * @param messaging base URI of the messaging service
   * @param caPem the authority of its certificate
   * @param client shown to whoever asks for a certificate; null for none
   * @param number E.164; a name, nothing is sent to it
   * @param oneTimeToken base64, issued by the operator for this number; used up by success
   * @throws ChannelException UNAUTHENTICATED when the token is wrong or used, UNAVAILABLE when the
   *     service cannot be reached, RATE_LIMITED, INTERNAL
   */
  public static ChannelAccount enrol(
      URI messaging,
      String caPem,
      @Nullable ClientCertificate client,
      String number,
      String oneTimeToken) {
    IdentityKeyPair identity = IdentityKeyPair.generate();
    int registrationId = KeyHelper.generateRegistrationId(false);
    byte[] random = new byte[PASSWORD_BYTES];
    new SecureRandom().nextBytes(random);
    byte[] password = Base64.getUrlEncoder().withoutPadding().encode(random);
    byte[] body = body(identity, registrationId, oneTimeToken.strip());
    HttpRequest request =
        HttpRequest.newBuilder(messaging.resolve("/v1/registration"))
            .timeout(ANSWER)
            .header("Content-Type", "application/json")
            .header("Authorization", authorization(number, password))
            .POST(HttpRequest.BodyPublishers.ofByteArray(body))
            .build();
    HttpResponse<byte[]> response = exchange(PinnedTls.context(caPem, client), request);
    if (response.statusCode() != 200) {
      throw ChannelException.ofStatus(response.statusCode(), "enrolment of " + number);
    }
    JsonNode answer = Messaging.parse(ByteString.copyFrom(response.body()), "enrolment");
    try {
      return new ChannelAccount(
          UUID.fromString(answer.path("uuid").asString("")),
          1,
          password,
          registrationId,
          identity.serialize());
    } catch (IllegalArgumentException e) {
      throw new ChannelException(
          Cause.UNAVAILABLE, "enrolment: the messaging service answered without an account id");
    }
  }

  private static HttpResponse<byte[]> exchange(SSLContext tls, HttpRequest request) {
    try (HttpClient client =
        HttpClient.newBuilder()
            .sslContext(tls)
            .sslParameters(PinnedTls.parameters())
            .connectTimeout(CONNECT)
            .version(HttpClient.Version.HTTP_1_1)
            .build()) {
      for (int attempt = 1; ; attempt++) {
        try {
          return client.send(request, Rest.answer(MAX_ANSWER_BYTES));
        } catch (IOException e) {
          if (attempt == ATTEMPTS) {
            throw new ChannelException(
                Cause.UNAVAILABLE, "enrolment: the messaging service cannot be reached", e);
          }
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ChannelException(Cause.CLOSED, "enrolment was interrupted");
    }
  }

  private static byte[] body(IdentityKeyPair identity, int registrationId, String token) {
    // The phone-number identity of the API has no use here: it gets keys that nobody keeps.
    IdentityKeyPair pni = IdentityKeyPair.generate();
    try {
      ObjectNode body = JSON.createObjectNode();
      body.put("recoveryPassword", token).put("skipDeviceTransfer", true);
      // The channel sets another, once its members are known; until then nobody has it.
      ObjectNode attributes = Messaging.attributes(registrationId, AccessKey.random());
      attributes.put("pniRegistrationId", KeyHelper.generateRegistrationId(false));
      body.set("accountAttributes", attributes);
      body.put("aciIdentityKey", Messaging.base64(identity.getPublicKey().serialize()))
          .put("pniIdentityKey", Messaging.base64(pni.getPublicKey().serialize()));
      body.set(
          "aciSignedPreKey",
          Messaging.json(PreKeys.signed(FIRST_KEY_ID, identity.getPrivateKey())));
      body.set(
          "pniSignedPreKey", Messaging.json(PreKeys.signed(FIRST_KEY_ID, pni.getPrivateKey())));
      body.set(
          "aciPqLastResortPreKey",
          Messaging.json(PreKeys.kyber(FIRST_KEY_ID, identity.getPrivateKey())));
      body.set(
          "pniPqLastResortPreKey",
          Messaging.json(PreKeys.kyber(FIRST_KEY_ID, pni.getPrivateKey())));
      return JSON.writeValueAsBytes(body);
    } catch (InvalidKeyException e) {
      throw new IllegalStateException("an own prekey is not readable", e);
    }
  }

  private static String authorization(String number, byte[] password) {
    byte[] user = (number + ":").getBytes(StandardCharsets.US_ASCII);
    byte[] credentials = java.util.Arrays.copyOf(user, user.length + password.length);
    System.arraycopy(password, 0, credentials, user.length, password.length);
    return "Basic " + Base64.getEncoder().encodeToString(credentials);
  }

  /**
   * The entry that others must pin for this account.
   *
   * @param evidenceKey Ed25519 public key, 32 bytes; empty for a coordinator
   */
  public static Member member(
      ChannelAccount account,
      String name,
      Member.Role role,
      int partyId,
      String region,
      byte[] evidenceKey) {
    try {
      return new Member(
          name,
          role,
          partyId,
          region,
          account.aci(),
          account.deviceId(),
          new IdentityKeyPair(account.identityKeyPair()).getPublicKey().serialize(),
          evidenceKey);
    } catch (InvalidKeyException e) {
      throw new IllegalArgumentException("the identity key pair of the account is damaged", e);
    }
  }
}
