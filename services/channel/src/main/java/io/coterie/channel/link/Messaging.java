package io.coterie.channel.link;

import com.google.protobuf.ByteString;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.keys.AccessKey;
import io.coterie.channel.keys.PreKeys;
import io.coterie.channel.link.Link.Response;
import io.coterie.channel.telemetry.ChannelMetrics.Mode;
import io.coterie.trust.Member;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.IdentityKey;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.ecc.ECPublicKey;
import org.signal.libsignal.protocol.kem.KEMPublicKey;
import org.signal.libsignal.protocol.state.KyberPreKeyRecord;
import org.signal.libsignal.protocol.state.PreKeyBundle;
import org.signal.libsignal.protocol.state.PreKeyRecord;
import org.signal.libsignal.protocol.state.SignedPreKeyRecord;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * The calls of the Signal server API that the channel makes, over the two sockets: those that need
 * the account on the authenticated one, those that must not name the caller on the other. A peer
 * whose access key is not known is reached over the authenticated one, by name.
 */
public final class Messaging implements PreKeys.Service {
  /** Pause before a request is repeated when the service did not say how long. */
  private static final Duration DEFAULT_RETRY_AFTER = Duration.ofMillis(200);

  private static final JsonMapper JSON = JsonMapper.builder().build();

  private final Link authenticated;
  private final Link anonymous;
  private final @Nullable Rest rest;
  private final ChannelConfig config;
  private final Executor pool;

  /** Bodies that wait to be sent again. */
  private final WaitingRoom waiting;

  /** Devices the service names in a 409 or 410. */
  public record DeviceProblem(@Nullable UUID account, List<Integer> missing, List<Integer> extra) {}

  /**
   * @param rest carries the messages of {@link Mode#NAMED_STORED}; null if there are none
   */
  public Messaging(
      Link authenticated,
      Link anonymous,
      @Nullable Rest rest,
      ChannelConfig config,
      Executor pool) {
    this.authenticated = authenticated;
    this.anonymous = anonymous;
    this.rest = rest;
    this.config = config;
    this.pool = pool;
    this.waiting = new WaitingRoom(config.limits().maxQueued());
  }

  /**
   * Sets the access key of the own account. Its other attributes are those of its enrolment.
   *
   * @param registrationId the account's
   */
  public CompletableFuture<Void> setAccessKey(int registrationId, AccessKey key) {
    ObjectNode attributes = attributes(registrationId, key);
    return call(
            authenticated,
            Mode.CONTROL,
            "PUT",
            "/v1/accounts/attributes",
            List.of("content-type:application/json"),
            JSON.writeValueAsBytes(attributes))
        .thenAccept(response -> requireOk(response, "access key"));
  }

  /** The attributes of a member's account: it is reached with its access key or by a name. */
  static ObjectNode attributes(int registrationId, AccessKey key) {
    ObjectNode attributes =
        JSON.createObjectNode()
            .put("fetchesMessages", true)
            .put("registrationId", registrationId)
            .put("unidentifiedAccessKey", base64(key.bytes()))
            .put("unrestrictedUnidentifiedAccess", false);
    attributes.putObject("capabilities").put("spqr", true);
    return attributes;
  }

  @Override
  public CompletableFuture<Void> uploadKeys(
      @Nullable SignedPreKeyRecord signed,
      @Nullable KyberPreKeyRecord lastResort,
      List<PreKeyRecord> oneTime,
      List<KyberPreKeyRecord> kyberOneTime) {
    try {
      ObjectNode body = JSON.createObjectNode();
      ArrayNode ec = body.putArray("preKeys");
      for (PreKeyRecord key : oneTime) {
        ec.addObject()
            .put("keyId", key.getId())
            .put("publicKey", base64(key.getKeyPair().getPublicKey().serialize()));
      }
      ArrayNode kyber = body.putArray("pqPreKeys");
      for (KyberPreKeyRecord key : kyberOneTime) {
        kyber.add(json(key));
      }
      if (signed != null) {
        body.set("signedPreKey", json(signed));
      }
      if (lastResort != null) {
        body.set("pqLastResortPreKey", json(lastResort));
      }
      return call(
              authenticated,
              Mode.CONTROL,
              "PUT",
              "/v2/keys?identity=aci",
              List.of("content-type:application/json"),
              JSON.writeValueAsBytes(body))
          .thenAccept(response -> requireOk(response, "upload of prekeys"));
    } catch (InvalidKeyException e) {
      throw new IllegalStateException("an own prekey is not readable", e);
    }
  }

  static ObjectNode json(SignedPreKeyRecord key) throws InvalidKeyException {
    return JSON.createObjectNode()
        .put("keyId", key.getId())
        .put("publicKey", base64(key.getKeyPair().getPublicKey().serialize()))
        .put("signature", base64(key.getSignature()));
  }

  static ObjectNode json(KyberPreKeyRecord key) throws InvalidKeyException {
    return JSON.createObjectNode()
        .put("keyId", key.getId())
        .put("publicKey", base64(key.getKeyPair().getPublicKey().serialize()))
        .put("signature", base64(key.getSignature()));
  }

  @Override
  public CompletableFuture<PreKeys.KeyCount> keyCount() {
    return call(authenticated, Mode.CONTROL, "GET", "/v2/keys?identity=aci", List.of(), null)
        .thenApply(
            response -> {
              requireOk(response, "count of prekeys");
              JsonNode body = parse(response.body(), "count of prekeys");
              return new PreKeys.KeyCount(
                  body.path("count").asInt(0), body.path("pqCount").asInt(0));
            });
  }

  public CompletableFuture<byte[]> senderCertificate() {
    return call(
            authenticated,
            Mode.CONTROL,
            "GET",
            "/v1/certificate/delivery?includeE164=false",
            List.of(),
            null)
        .thenApply(
            response -> {
              requireOk(response, "sender certificate");
              return bytes(
                  parse(response.body(), "sender certificate"),
                  "certificate",
                  "sender certificate");
            });
  }

  /**
   * The keys with which a session to that member can be opened.
   *
   * @param access the member's access key; without it the service is told who asks
   * @return fails with UNTRUSTED when they are not those of the pinned identity
   */
  public CompletableFuture<PreKeyBundle> fetchKeys(Recipient peer, @Nullable AccessKey access) {
    Member member = peer.member();
    return call(
            access == null ? authenticated : anonymous,
            Mode.CONTROL,
            "GET",
            "/v2/keys/" + member.aci() + "/" + member.deviceId(),
            access == null ? List.of() : List.of(header(access.bytes())),
            null)
        .thenApply(
            response -> {
              requireOk(response, "keys of " + member.name());
              return bundle(peer, parse(response.body(), "keys of " + member.name()));
            });
  }

  private static PreKeyBundle bundle(Recipient peer, JsonNode body) {
    String what = "keys of " + peer.member().name();
    try {
      IdentityKey identity = new IdentityKey(bytes(body, "identityKey", what));
      if (!identity.equals(peer.identity())) {
        throw new ChannelException(
            Cause.UNTRUSTED,
            peer.member().name()
                + ": the messaging service has another identity key than the roster");
      }
      for (JsonNode device : body.path("devices")) {
        if (device.path("deviceId").asInt(0) != peer.member().deviceId()) {
          continue;
        }
        JsonNode signed = device.path("signedPreKey");
        JsonNode kyber = device.path("pqPreKey");
        JsonNode oneTime = device.path("preKey");
        boolean hasOneTime = oneTime.isObject();
        return new PreKeyBundle(
            device.path("registrationId").asInt(-1),
            peer.member().deviceId(),
            hasOneTime ? oneTime.path("keyId").asInt(-1) : PreKeyBundle.NULL_PRE_KEY_ID,
            hasOneTime ? new ECPublicKey(bytes(oneTime, "publicKey", what)) : null,
            signed.path("keyId").asInt(-1),
            new ECPublicKey(bytes(signed, "publicKey", what)),
            bytes(signed, "signature", what),
            identity,
            kyber.path("keyId").asInt(-1),
            new KEMPublicKey(bytes(kyber, "publicKey", what)),
            bytes(kyber, "signature", what));
      }
    } catch (InvalidKeyException | RuntimeException e) {
      if (e instanceof ChannelException known) {
        throw known;
      }
      throw new ChannelException(Cause.UNAVAILABLE, what + ": not usable", e);
    }
    throw new ChannelException(
        Cause.NOT_ESTABLISHED, what + ": the pinned device is not registered");
  }

  /**
   * Sends one sealed message to one device. The answer's status is for the caller to judge.
   *
   * @param access the recipient's access key; without it the service is told who sends
   * @param answered runs when the service has answered for the first time, whatever it said
   */
  public CompletableFuture<Response> sendOne(
      Mode mode,
      Recipient to,
      @Nullable AccessKey access,
      int registrationId,
      byte[] sealed,
      SecureChannel.SendOptions options,
      Runnable answered) {
    byte[] body =
        ("{\"messages\":[{\"type\":6,\"destinationDeviceId\":"
                + to.member().deviceId()
                + ",\"destinationRegistrationId\":"
                + registrationId
                + ",\"content\":\""
                + base64(sealed)
                + "\"}],\"online\":"
                + options.online()
                + ",\"urgent\":false,\"timestamp\":"
                + System.currentTimeMillis()
                + "}")
            .getBytes(StandardCharsets.ISO_8859_1);
    String path = "/v1/messages/" + to.member().aci() + "?story=false";
    byte[] key = access == null ? null : access.bytes();
    List<String> headers = headers("application/json", key, options.traceparent());
    if (mode == Mode.NAMED_STORED) {
      Rest by = Objects.requireNonNull(rest, "there is no client for this mode");
      return repeated(
          List.of(to.member().aci()),
          body.length,
          answered,
          () -> by.request(mode, "PUT", path, headers, body));
    }
    Link link = access == null ? authenticated : anonymous;
    return repeated(
        List.of(to.member().aci()),
        body.length,
        answered,
        () -> link.request(mode, "PUT", path, headers, body));
  }

  /**
   * Sends one multi-recipient message. The answer's status is for the caller to judge.
   *
   * @param to accounts of all recipients
   * @param access their access keys
   * @param answered runs when the service has answered for the first time, whatever it said
   */
  public CompletableFuture<Response> sendMany(
      Mode mode,
      List<UUID> to,
      List<AccessKey> access,
      byte[] sealed,
      SecureChannel.SendOptions options,
      Runnable answered) {
    byte[] key = new byte[AccessKey.BYTES];
    for (AccessKey one : access) {
      byte[] bytes = one.bytes();
      for (int i = 0; i < key.length; i++) {
        key[i] ^= bytes[i];
      }
    }
    String path =
        "/v1/messages/multi_recipient?ts="
            + System.currentTimeMillis()
            + "&online="
            + options.online()
            + "&urgent=false&story=false";
    List<String> headers =
        headers("application/vnd.signal-messenger.mrm", key, options.traceparent());
    return repeated(
        to, sealed.length, answered, () -> anonymous.request(mode, "PUT", path, headers, sealed));
  }

  private static List<String> headers(
      String contentType, byte @Nullable [] accessKey, @Nullable String traceparent) {
    List<String> headers = new ArrayList<>(3);
    headers.add("content-type:" + contentType);
    if (accessKey != null) {
      headers.add(header(accessKey));
    }
    if (traceparent != null) {
      headers.add("traceparent:" + traceparent);
    }
    return headers;
  }

  private static String header(byte[] accessKey) {
    return "unidentified-access-key:" + base64(accessKey);
  }

  private CompletableFuture<Response> call(
      Link link,
      Mode mode,
      String verb,
      String path,
      List<String> headers,
      byte @Nullable [] body) {
    return repeated(
        List.of(),
        body == null ? 0 : body.length,
        () -> {},
        () -> link.request(mode, verb, path, headers, body));
  }

  /**
   * A request that is repeated after 429 and 503, as long as that fits into the time a request may
   * take.
   */
  private CompletableFuture<Response> repeated(
      List<UUID> to, int bytes, Runnable answered, Supplier<CompletableFuture<Response>> request) {
    long deadline = System.nanoTime() + config.timing().request().toNanos();
    return attempt(to, bytes, answered, request, deadline, 0);
  }

  private CompletableFuture<Response> attempt(
      List<UUID> to,
      int bytes,
      Runnable answered,
      Supplier<CompletableFuture<Response>> request,
      long deadline,
      int attempt) {
    return request
        .get()
        .thenCompose(
            response -> {
              answered.run();
              if (response.status() != 429 && response.status() != 503) {
                return CompletableFuture.completedFuture(response);
              }
              Duration pause = retryAfter(response, attempt);
              if (pause.compareTo(config.timing().maxRetryAfter()) > 0
                  || System.nanoTime() + pause.toNanos() - deadline > 0) {
                return CompletableFuture.completedFuture(response);
              }
              return later(
                      to,
                      bytes,
                      pause,
                      () -> attempt(to, bytes, answered, request, deadline, attempt + 1))
                  .orElseGet(() -> CompletableFuture.completedFuture(response));
            });
  }

  /**
   * Sends something again after a pause, if there is room for its body to wait for that long.
   *
   * @param to accounts that it waits for
   * @return empty if too much waits already, for all of them or altogether
   */
  public <T> Optional<CompletableFuture<T>> later(
      List<UUID> to, int bytes, Duration pause, Supplier<CompletableFuture<T>> again) {
    return waiting
        .take(to, bytes)
        .map(
            place ->
                CompletableFuture.supplyAsync(
                        () -> {
                          waiting.giveBack(place);
                          return again.get();
                        },
                        CompletableFuture.delayedExecutor(
                            pause.toNanos(), TimeUnit.NANOSECONDS, pool))
                    .thenCompose(sent -> sent));
  }

  private static Duration retryAfter(Response response, int attempt) {
    String header = response.header("retry-after");
    if (header != null && header.matches("\\d{1,9}")) {
      return Duration.ofSeconds(Long.parseLong(header));
    }
    return pause(attempt);
  }

  /** Pause before the next attempt, longer each time, with jitter. */
  public static Duration pause(int attempt) {
    long base = DEFAULT_RETRY_AFTER.toMillis() << Math.min(attempt, 6);
    return Duration.ofMillis(base / 2 + ThreadLocalRandom.current().nextLong(base / 2 + 1));
  }

  /**
   * The accounts that did not get a multi-recipient message.
   *
   * @param unknown they do not exist any more
   * @param full their queues are full
   */
  public record Undelivered(List<UUID> unknown, List<UUID> full) {}

  /** The accounts that a 200 of a send to many leaves out. */
  public static Undelivered undelivered(Response response) {
    if (response.body().isEmpty()) {
      return new Undelivered(List.of(), List.of());
    }
    JsonNode body = parse(response.body(), "broadcast");
    return new Undelivered(uuids(body.path("uuids404")), uuids(body.path("uuids429")));
  }

  private static List<UUID> uuids(JsonNode array) {
    List<UUID> accounts = new ArrayList<>();
    for (JsonNode id : array) {
      accounts.add(uuid(id.asString("")));
    }
    return accounts;
  }

  /** The devices that a 409 or 410 of a send to many names. */
  public static List<DeviceProblem> deviceProblems(Response response) {
    List<DeviceProblem> problems = new ArrayList<>();
    for (JsonNode entry : parse(response.body(), "broadcast")) {
      problems.add(problem(uuid(entry.path("uuid").asString("")), entry.path("devices")));
    }
    return problems;
  }

  /** The devices that a 409 or 410 of a send to one names. */
  public static DeviceProblem deviceProblem(Response response) {
    return problem(null, parse(response.body(), "send"));
  }

  private static DeviceProblem problem(@Nullable UUID account, JsonNode devices) {
    return new DeviceProblem(
        account, ints(devices.path("missingDevices")), ints(devices.path("extraDevices")));
  }

  private static List<Integer> ints(JsonNode array) {
    List<Integer> values = new ArrayList<>();
    for (JsonNode value : array) {
      values.add(value.asInt(0));
    }
    return values;
  }

  private static UUID uuid(String text) {
    try {
      return UUID.fromString(text);
    } catch (IllegalArgumentException e) {
      throw new ChannelException(
          Cause.UNAVAILABLE, "the messaging service answered with what is no account id");
    }
  }

  public static void requireOk(Response response, String what) {
    if (response.status() / 100 != 2) {
      throw ChannelException.ofStatus(response.status(), what);
    }
  }

  static JsonNode parse(ByteString body, String what) {
    try {
      return JSON.readTree(body.toByteArray());
    } catch (JacksonException e) {
      throw new ChannelException(
          Cause.UNAVAILABLE, what + ": the messaging service did not answer with JSON");
    }
  }

  private static byte[] bytes(JsonNode object, String field, String what) {
    try {
      return Base64.getDecoder().decode(object.path(field).asString("").strip());
    } catch (IllegalArgumentException e) {
      throw new ChannelException(Cause.UNAVAILABLE, what + ": " + field + " is not base64");
    }
  }

  static String base64(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }
}
