package io.coterie.messaging;

import io.coterie.proto.signal.Envelope;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.IntSupplier;
import javax.net.ssl.SSLContext;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.ecc.ECKeyPair;
import org.signal.libsignal.protocol.kem.KEMKeyPair;
import org.signal.libsignal.protocol.kem.KEMKeyType;
import org.signal.libsignal.protocol.util.KeyHelper;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** A hand-written client that can also say what no real client would. */
public final class TestClient {
  private static final JsonMapper JSON = new JsonMapper();
  private static final AtomicLong NUMBERS = new AtomicLong(15550000000L);
  public static final Duration PATIENCE = Duration.ofSeconds(60);

  private final TestService service;
  private final IntSupplier port;
  private final HttpClient http;

  /** That its requests have, names and values by turns. */
  private final List<String> ownHeaders;

  public TestClient(TestService service) {
    this(service, service::port);
  }

  /** Speaks to a replica of the service that listens elsewhere. */
  public TestClient(TestService service, IntSupplier port) {
    this(service, port, HttpClient.newBuilder().sslContext(service.trust()).build(), List.of());
  }

  private TestClient(
      TestService service, IntSupplier port, HttpClient http, List<String> ownHeaders) {
    this.service = service;
    this.port = port;
    this.http = http;
    this.ownHeaders = ownHeaders;
  }

  /** The same client at another address of this machine. */
  public TestClient at(InetAddress address) {
    return at(address, service.trust());
  }

  /** The same client at another address of this machine, with a certificate perhaps. */
  public TestClient at(InetAddress address, SSLContext tls) {
    return new TestClient(
        service,
        port,
        HttpClient.newBuilder().sslContext(tls).localAddress(address).build(),
        ownHeaders);
  }

  /** The same client, over the same connections, whose requests have further headers. */
  public TestClient saying(String... headers) {
    List<String> all = new ArrayList<>(ownHeaders);
    all.addAll(List.of(headers));
    return new TestClient(service, port, http, all);
  }

  URI uri(String path) {
    return URI.create("https://localhost:" + port.getAsInt() + path);
  }

  URI socketUri() {
    return URI.create("wss://localhost:" + port.getAsInt() + "/v1/websocket/");
  }

  /** An answer, by whichever transport. */
  public record Reply(int status, Map<String, String> headers, byte[] body) {
    public JsonNode json() {
      return JSON.readTree(body);
    }

    public String text() {
      return new String(body, StandardCharsets.UTF_8);
    }
  }

  /** How calls are made: over REST, or inside a WebSocket. */
  public interface Transport {
    Reply call(String verb, String path, byte[] body, Map<String, String> headers);

    default Reply call(String verb, String path) {
      return call(verb, path, new byte[0], Map.of());
    }

    default Reply json(String verb, String path, Object body) {
      return json(verb, path, body, Map.of());
    }

    default Reply json(String verb, String path, Object body, Map<String, String> headers) {
      Map<String, String> all = new HashMap<>(headers);
      all.put("Content-Type", "application/json");
      byte[] bytes = body instanceof byte[] raw ? raw : JSON.writeValueAsBytes(body);
      return call(verb, path, bytes, all);
    }
  }

  public static String nextNumber() {
    return "+" + NUMBERS.incrementAndGet();
  }

  public static String base64(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }

  /** A device that has keys and credentials. */
  public final class Party {
    public final String number;
    public final String password = UUID.randomUUID().toString();
    public final IdentityKeyPair identity = IdentityKeyPair.generate();
    public final IdentityKeyPair pniIdentity = IdentityKeyPair.generate();
    public final int registrationId = KeyHelper.generateRegistrationId(false);
    public final byte[] accessKey =
        UUID.randomUUID().toString().substring(0, 16).getBytes(StandardCharsets.US_ASCII);
    public UUID aci;
    public UUID pni;

    Party(String number) {
      this.number = number;
    }

    public Map<String, Object> registration(byte[] token) {
      Map<String, Object> attributes = new TreeMap<>();
      attributes.put("fetchesMessages", true);
      attributes.put("registrationId", registrationId);
      attributes.put("pniRegistrationId", registrationId);
      attributes.put("capabilities", Map.of("spqr", true, "storage", false));
      attributes.put("unidentifiedAccessKey", base64(accessKey));
      attributes.put("unrestrictedUnidentifiedAccess", false);
      Map<String, Object> body = new TreeMap<>();
      body.put("recoveryPassword", base64(token));
      body.put("accountAttributes", attributes);
      body.put("skipDeviceTransfer", true);
      body.put("aciIdentityKey", base64(identity.getPublicKey().serialize()));
      body.put("pniIdentityKey", base64(pniIdentity.getPublicKey().serialize()));
      body.put("aciSignedPreKey", signedKey(identity, 1));
      body.put("pniSignedPreKey", signedKey(pniIdentity, 2));
      body.put("aciPqLastResortPreKey", kemKey(identity, 3));
      body.put("pniPqLastResortPreKey", kemKey(pniIdentity, 4));
      return body;
    }

    public Reply register(byte[] token) {
      return register(registration(token));
    }

    public Reply register(Object body) {
      Reply reply =
          TestClient.this
              .rest(null)
              .json(
                  "POST",
                  "/v1/registration",
                  body,
                  Map.of("Authorization", basic(number, password)));
      if (reply.status() == 200) {
        aci = UUID.fromString(reply.json().get("uuid").asString());
        pni = UUID.fromString(reply.json().get("pni").asString());
      }
      return reply;
    }

    public String authorization() {
      return basic(aci + ".1", password);
    }

    public Transport rest() {
      return TestClient.this.rest(authorization());
    }

    public Socket connect() {
      return TestClient.this.connect(authorization());
    }
  }

  public static Map<String, Object> signedKey(IdentityKeyPair identity, int id) {
    byte[] key = ECKeyPair.generate().getPublicKey().serialize();
    return Map.of(
        "keyId", id,
        "publicKey", base64(key),
        "signature", base64(identity.getPrivateKey().calculateSignature(key)));
  }

  public static Map<String, Object> kemKey(IdentityKeyPair identity, int id) {
    byte[] key = KEMKeyPair.generate(KEMKeyType.KYBER_1024).getPublicKey().serialize();
    return Map.of(
        "keyId", id,
        "publicKey", base64(key),
        "signature", base64(identity.getPrivateKey().calculateSignature(key)));
  }

  public static Map<String, Object> oneTimeKey(int id) {
    return Map.of(
        "keyId", id, "publicKey", base64(ECKeyPair.generate().getPublicKey().serialize()));
  }

  public static String basic(String user, String password) {
    return "Basic " + base64((user + ":" + password).getBytes(StandardCharsets.UTF_8));
  }

  public Party newParty() {
    return new Party(nextNumber());
  }

  /** A party that is to register that number. */
  public Party party(String number) {
    return new Party(number);
  }

  public static String sha256Hex(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }

  public Party sameNumber(Party other) {
    return new Party(other.number);
  }

  /** A registered party. */
  public Party party() {
    Party party = newParty();
    Reply reply = party.register(service.enrol(party.number));
    if (reply.status() != 200) {
      throw new AssertionError("registration: " + reply.status() + " " + reply.text());
    }
    return party;
  }

  /**
   * @param authorization null for none
   */
  public Transport rest(String authorization) {
    return rest(authorization, HttpRequest.BodyPublishers::ofByteArray);
  }

  /** Like {@link #rest}, but says nothing about the length of the body. */
  public Transport chunked(String authorization) {
    return rest(
        authorization,
        body -> HttpRequest.BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(body)));
  }

  private Transport rest(
      String authorization, Function<byte[], HttpRequest.BodyPublisher> publisher) {
    return (verb, path, body, headers) -> {
      HttpRequest.Builder request =
          HttpRequest.newBuilder(uri(path)).timeout(PATIENCE).method(verb, publisher.apply(body));
      headers.forEach(request::header);
      for (int i = 0; i < ownHeaders.size(); i += 2) {
        request.header(ownHeaders.get(i), ownHeaders.get(i + 1));
      }
      if (authorization != null && !headers.containsKey("Authorization")) {
        request.header("Authorization", authorization);
      }
      try {
        HttpResponse<byte[]> response =
            http.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
        Map<String, String> replyHeaders = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        response
            .headers()
            .map()
            .forEach((name, values) -> replyHeaders.put(name, values.getFirst()));
        return new Reply(response.statusCode(), replyHeaders, response.body());
      } catch (IOException | InterruptedException e) {
        throw new AssertionError(verb + " " + path, e);
      }
    };
  }

  public Socket connect(String authorization) {
    return new Socket(authorization, true);
  }

  /** Connects without acknowledging anything by itself. */
  public Socket connectSilent(String authorization) {
    return new Socket(authorization, false);
  }

  /** A pushed message. */
  public record Pushed(long id, Envelope envelope, List<String> headers) {}

  /** A WebSocket with Signal's framing. */
  public final class Socket implements Transport, AutoCloseable {
    /**
     * Complete before the first message comes in: the listener may run before the constructor ends.
     */
    private final CompletableFuture<WebSocket> open = new CompletableFuture<>();

    private final WebSocket socket;
    private final boolean acknowledge;
    private final AtomicLong nextId = new AtomicLong(1);
    private final Map<Long, CompletableFuture<Reply>> calls = new ConcurrentHashMap<>();
    private CompletionStage<?> lastSend = CompletableFuture.completedStage(null);
    public final BlockingQueue<Pushed> pushed = new LinkedBlockingQueue<>();
    public final CompletableFuture<Void> queueEmpty = new CompletableFuture<>();
    public final CompletableFuture<Integer> closed = new CompletableFuture<>();
    public volatile boolean reading = true;

    Socket(String authorization, boolean acknowledge) {
      this.acknowledge = acknowledge;
      WebSocket.Builder builder = http.newWebSocketBuilder().connectTimeout(PATIENCE);
      if (authorization != null) {
        builder.header("Authorization", authorization);
      }
      for (int i = 0; i < ownHeaders.size(); i += 2) {
        builder.header(ownHeaders.get(i), ownHeaders.get(i + 1));
      }
      this.socket = builder.buildAsync(socketUri(), new Listener()).join();
    }

    private final class Listener implements WebSocket.Listener {
      private final ByteArrayOutputStream parts = new ByteArrayOutputStream();

      @Override
      public void onOpen(WebSocket webSocket) {
        open.complete(webSocket);
        webSocket.request(1);
      }

      @Override
      public CompletionStage<?> onBinary(WebSocket webSocket, ByteBuffer data, boolean last) {
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        parts.writeBytes(bytes);
        if (last) {
          byte[] message = parts.toByteArray();
          parts.reset();
          received(message);
        }
        if (reading) {
          webSocket.request(1);
        }
        return null;
      }

      @Override
      public CompletionStage<?> onClose(WebSocket webSocket, int status, String reason) {
        ended(status);
        return null;
      }

      @Override
      public void onError(WebSocket webSocket, Throwable error) {
        ended(1006);
      }
    }

    /** No call is answered any more. */
    private void ended(int status) {
      closed.complete(status);
      calls.values().forEach(this::refuse);
    }

    private void refuse(CompletableFuture<Reply> call) {
      call.completeExceptionally(new IOException("closed with " + closed.join()));
    }

    private void received(byte[] bytes) {
      try {
        WebSocketMessage message = WebSocketMessage.parseFrom(bytes);
        if (message.getType() == WebSocketMessage.Type.RESPONSE) {
          WebSocketResponseMessage response = message.getResponse();
          Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
          for (String header : response.getHeadersList()) {
            headers.put(
                header.substring(0, header.indexOf(':')),
                header.substring(header.indexOf(':') + 1).strip());
          }
          Optional.ofNullable(calls.remove(response.getId()))
              .ifPresent(
                  f ->
                      f.complete(
                          new Reply(
                              response.getStatus(), headers, response.getBody().toByteArray())));
          return;
        }
        WebSocketRequestMessage request = message.getRequest();
        if (acknowledge) {
          respond(request.getId(), 200);
        }
        if (request.getPath().equals("/api/v1/queue/empty")) {
          queueEmpty.complete(null);
        } else {
          pushed.add(
              new Pushed(
                  request.getId(),
                  Envelope.parseFrom(request.getBody()),
                  new ArrayList<>(request.getHeadersList())));
        }
      } catch (IOException e) {
        throw new AssertionError(e);
      }
    }

    public void respond(long id, int status) {
      sendRaw(
          WebSocketMessage.newBuilder()
              .setType(WebSocketMessage.Type.RESPONSE)
              .setResponse(
                  WebSocketResponseMessage.newBuilder()
                      .setId(id)
                      .setStatus(status)
                      .setMessage("OK"))
              .build()
              .toByteArray());
    }

    public void acknowledge(Pushed message) {
      respond(message.id(), 200);
    }

    /** Sends a whole WebSocket message; they go out in the order of the calls. */
    public synchronized void sendRaw(byte[] bytes) {
      lastSend = lastSend.thenCompose(x -> open.join().sendBinary(ByteBuffer.wrap(bytes), true));
    }

    public WebSocket raw() {
      return socket;
    }

    public CompletableFuture<Reply> callAsync(
        String verb, String path, byte[] body, Map<String, String> headers) {
      long id = nextId.getAndIncrement();
      CompletableFuture<Reply> reply = new CompletableFuture<>();
      calls.put(id, reply);
      if (closed.isDone()) {
        refuse(reply);
      }
      WebSocketRequestMessage.Builder request =
          WebSocketRequestMessage.newBuilder()
              .setId(id)
              .setVerb(verb)
              .setPath(path)
              .setBody(com.google.protobuf.ByteString.copyFrom(body));
      headers.forEach((name, value) -> request.addHeaders(name + ":" + value));
      sendRaw(
          WebSocketMessage.newBuilder()
              .setType(WebSocketMessage.Type.REQUEST)
              .setRequest(request)
              .build()
              .toByteArray());
      return reply.orTimeout(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }

    @Override
    public Reply call(String verb, String path, byte[] body, Map<String, String> headers) {
      return callAsync(verb, path, body, headers).join();
    }

    public Pushed next() {
      try {
        Pushed message = pushed.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        if (message == null) {
          throw new AssertionError("nothing was pushed");
        }
        return message;
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }

    public Socket drained() {
      CompletableFuture.anyOf(queueEmpty, closed)
          .orTimeout(PATIENCE.toSeconds(), TimeUnit.SECONDS)
          .join();
      if (!queueEmpty.isDone()) {
        throw new AssertionError("closed with " + closed.join());
      }
      return this;
    }

    public int closeCode() {
      return closed.orTimeout(PATIENCE.toSeconds(), TimeUnit.SECONDS).join();
    }

    @Override
    public void close() {
      synchronized (this) {
        lastSend = lastSend.thenCompose(x -> socket.sendClose(1000, ""));
      }
      closeCode();
    }

    public void abort() {
      socket.abort();
    }
  }

  // ---- bodies ----

  public static Map<String, Object> message(Party to, byte[] content) {
    return message(1, to.registrationId, content);
  }

  public static Map<String, Object> message(int device, int registrationId, byte[] content) {
    return new TreeMap<>(
        Map.of(
            "type",
            1,
            "destinationDeviceId",
            device,
            "destinationRegistrationId",
            registrationId,
            "content",
            base64(content)));
  }

  @SafeVarargs
  public static Map<String, Object> messages(boolean online, Map<String, Object>... messages) {
    return new TreeMap<>(
        Map.of(
            "messages",
            Arrays.asList(messages),
            "online",
            online,
            "urgent",
            true,
            "timestamp",
            System.currentTimeMillis()));
  }

  /** A recipient of a multi-recipient message: one of its devices, as the sender knows it. */
  public record Recipient(UUID aci, int device, int registrationId) {
    public static Recipient of(Party party) {
      return new Recipient(party.aci, 1, party.registrationId);
    }
  }

  /**
   * A multi-recipient message of the form that libsignal writes, with {@code content} where the
   * ciphertext would be: the service cannot tell the difference.
   */
  public static byte[] multiRecipient(byte[] content, Recipient... recipients) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(0x23);
    out.write(recipients.length);
    for (Recipient recipient : recipients) {
      out.write(0);
      out.writeBytes(
          ByteBuffer.allocate(16)
              .putLong(recipient.aci().getMostSignificantBits())
              .putLong(recipient.aci().getLeastSignificantBits())
              .array());
      out.write(recipient.device());
      out.write(recipient.registrationId() >> 8);
      out.write(recipient.registrationId());
      out.writeBytes(new byte[32 + 16]);
    }
    out.writeBytes(new byte[32]);
    out.writeBytes(content);
    return out.toByteArray();
  }

  public static Map<String, String> multiRecipientHeaders(Party... recipients) {
    byte[] combined = new byte[16];
    for (Party party : recipients) {
      for (int i = 0; i < combined.length; i++) {
        combined[i] ^= party.accessKey[i];
      }
    }
    return Map.of(
        "Content-Type",
        "application/vnd.signal-messenger.mrm",
        "Unidentified-Access-Key",
        base64(combined));
  }

  public static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
