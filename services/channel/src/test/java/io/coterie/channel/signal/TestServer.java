package io.coterie.channel.signal;

import com.google.protobuf.ByteString;
import io.coterie.channel.ChannelAccount;
import io.coterie.channel.link.Enrolment;
import io.coterie.channel.link.PinnedTls;
import io.coterie.proto.signal.Envelope;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.StringWriter;
import java.math.BigInteger;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.stream.Collectors;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.signal.libsignal.metadata.certificate.ServerCertificate;
import org.signal.libsignal.protocol.SealedSenderMultiRecipientMessage;
import org.signal.libsignal.protocol.ServiceId;
import org.signal.libsignal.protocol.ecc.ECKeyPair;
import org.signal.libsignal.protocol.ecc.ECPublicKey;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * A messaging service for tests: the calls of the Signal server API that the channel uses, over
 * real TLS sockets, with state in memory, and with handles to make it misbehave. One request of a
 * connection is handled after the other.
 */
public final class TestServer implements AutoCloseable {
  static final JsonMapper JSON = JsonMapper.builder().build();
  private static final int SERVER_CERTIFICATE_ID = 4711;

  /** An answer to a request. */
  record Answer(int status, List<String> headers, byte[] body) {
    static Answer of(int status) {
      return new Answer(status, List.of(), new byte[0]);
    }

    static Answer json(int status, JsonNode body) {
      return new Answer(
          status, List.of("content-type: application/json"), JSON.writeValueAsBytes(body));
    }
  }

  /** A request, over either kind of connection. */
  record Request(
      String verb, String path, Map<String, String> headers, byte[] body, Optional<UUID> account) {
    boolean is(String verb, String prefix) {
      return this.verb.equals(verb) && path.startsWith(prefix);
    }
  }

  /** A message that is dropped if nobody fetches it in ten seconds. */
  private record Online(Envelope envelope, String traceparent, long sinceNanos) {}

  static final class Account {
    final UUID aci;
    final String password;
    byte[] identityKey;
    volatile byte[] accessKey;
    int registrationId;
    JsonNode signedPreKey;
    JsonNode lastResort;
    final ArrayDeque<JsonNode> preKeys = new ArrayDeque<>();
    final ArrayDeque<JsonNode> kyberPreKeys = new ArrayDeque<>();
    final ArrayDeque<Envelope> stored = new ArrayDeque<>();
    final ArrayDeque<Online> online = new ArrayDeque<>();

    /** How many more messages to many find the queue full. */
    final AtomicInteger full = new AtomicInteger();

    final List<Integer> devices = new ArrayList<>(List.of(1));
    volatile Connection connection;

    Account(UUID aci, String password, JsonNode request) {
      this.aci = aci;
      this.password = password;
      this.identityKey = decode(request, "aciIdentityKey");
      this.signedPreKey = request.path("aciSignedPreKey");
      this.lastResort = request.path("aciPqLastResortPreKey");
      JsonNode attributes = request.path("accountAttributes");
      this.registrationId = attributes.path("registrationId").asInt();
      this.accessKey = decode(attributes, "unidentifiedAccessKey");
    }
  }

  private final ECKeyPair trustRoot;
  private final ECKeyPair serverKey = ECKeyPair.generate();
  private final ServerCertificate serverCertificate;
  private final SSLContext tls;
  private final String caPem;
  private final int port;
  private volatile SSLServerSocket listening;
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();

  final Map<UUID, Account> accounts = new ConcurrentHashMap<>();
  final Map<String, String> tokens = new ConcurrentHashMap<>();

  /** Requests by verb and first two segments of the path. */
  final Map<String, AtomicInteger> counts = new ConcurrentHashMap<>();

  /** How long the sender certificates are valid that are issued from here on. */
  volatile Duration certificateLifetime = Duration.ofDays(1);

  /** Asked before a request is handled; an answer from it replaces the handling. */
  volatile Function<Request, Optional<Answer>> intercept = request -> Optional.empty();

  /** The envelopes that are pushed for one: none, itself, something else, several. */
  volatile Function<Envelope, List<Envelope>> tap = List::of;

  TestServer() throws Exception {
    this(ECKeyPair.generate());
  }

  TestServer(ECKeyPair trustRoot) throws Exception {
    this.trustRoot = trustRoot;
    this.serverCertificate =
        new ServerCertificate(
            trustRoot.getPrivateKey(), SERVER_CERTIFICATE_ID, serverKey.getPublicKey());
    KeyPair ca = ecKeys();
    KeyPair server = ecKeys();
    X509Certificate caCertificate = certificate("CN=test CA", ca, "CN=test CA", ca, true);
    X509Certificate certificate = certificate("CN=localhost", server, "CN=test CA", ca, false);
    StringWriter pem = new StringWriter();
    try (JcaPEMWriter writer = new JcaPEMWriter(pem)) {
      writer.writeObject(caCertificate);
    }
    caPem = pem.toString();
    KeyStore keys = KeyStore.getInstance("PKCS12");
    keys.load(null, null);
    keys.setKeyEntry(
        "server", server.getPrivate(), new char[0], new X509Certificate[] {certificate});
    KeyManagerFactory managers = KeyManagerFactory.getInstance("PKIX");
    managers.init(keys, new char[0]);
    tls = SSLContext.getInstance("TLSv1.3");
    tls.init(managers.getKeyManagers(), null, null);
    port = listen(0);
  }

  static KeyPair ecKeys() throws Exception {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(new ECGenParameterSpec("secp256r1"));
    return generator.generateKeyPair();
  }

  static X509Certificate certificate(
      String subject, KeyPair keys, String issuer, KeyPair issuerKeys, boolean ca)
      throws Exception {
    JcaX509v3CertificateBuilder builder =
        new JcaX509v3CertificateBuilder(
            new X500Name(issuer),
            BigInteger.valueOf(System.nanoTime()),
            Date.from(Instant.now().minusSeconds(60)),
            Date.from(Instant.now().plus(Duration.ofDays(1))),
            new X500Name(subject),
            keys.getPublic());
    builder.addExtension(Extension.basicConstraints, true, new BasicConstraints(ca));
    if (!ca) {
      builder.addExtension(
          Extension.subjectAlternativeName,
          false,
          new GeneralNames(new GeneralName(GeneralName.dNSName, "localhost")));
    }
    return new JcaX509CertificateConverter()
        .getCertificate(
            builder.build(
                new JcaContentSignerBuilder("SHA256withECDSA").build(issuerKeys.getPrivate())));
  }

  private int listen(int wanted) throws IOException {
    SSLServerSocket socket = (SSLServerSocket) tls.getServerSocketFactory().createServerSocket();
    socket.setReuseAddress(true);
    socket.setEnabledProtocols(new String[] {"TLSv1.3"});
    socket.bind(new InetSocketAddress("localhost", wanted), 128);
    listening = socket;
    Thread.ofPlatform()
        .daemon()
        .name("test-server")
        .start(
            () -> {
              while (!socket.isClosed()) {
                try {
                  SSLSocket client = (SSLSocket) socket.accept();
                  client.setTcpNoDelay(true);
                  open.add(client);
                  Thread.ofPlatform().daemon().start(() -> serve(client));
                } catch (IOException e) {
                  // Closed, or a handshake that failed.
                }
              }
            });
    return socket.getLocalPort();
  }

  URI uri() {
    return URI.create("https://localhost:" + port);
  }

  String caPem() {
    return caPem;
  }

  SSLContext pinned() {
    return PinnedTls.context(caPem, null);
  }

  byte[] trustRootPublic() {
    return trustRoot.getPublicKey().serialize();
  }

  ECKeyPair trustRoot() {
    return trustRoot;
  }

  /** Allows one registration of that number. */
  String issueToken(String number) {
    String token = Base64.getEncoder().encodeToString((number + UUID.randomUUID()).getBytes());
    tokens.put(number, token);
    return token;
  }

  ChannelAccount enrol(String number) {
    return Enrolment.enrol(uri(), caPem, null, number, issueToken(number));
  }

  /** Breaks all connections and stops listening; accounts and stored messages stay. */
  void stop() throws IOException {
    listening.close();
    for (Socket socket : open) {
      socket.close();
    }
    open.clear();
    accounts.values().forEach(account -> account.connection = null);
  }

  /** Listens again, on the same port. */
  void restart() throws IOException {
    listen(port);
  }

  int count(String key) {
    AtomicInteger count = counts.get(key);
    return count == null ? 0 : count.get();
  }

  @Override
  public void close() throws IOException {
    stop();
  }

  // Connections

  final class Connection {
    private final Socket socket;
    private final OutputStream out;
    private final AtomicLong ids = new AtomicLong();
    private final Map<Long, Envelope> unacknowledged = new ConcurrentHashMap<>();
    final Optional<Account> account;

    Connection(Socket socket, OutputStream out, Optional<Account> account) {
      this.socket = socket;
      this.out = out;
      this.account = account;
    }

    /** Writes one WebSocket frame. */
    synchronized void frame(int first, byte[] payload) {
      try {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(payload.length + 10);
        DataOutputStream data = new DataOutputStream(bytes);
        data.writeByte(first);
        if (payload.length < 126) {
          data.writeByte(payload.length);
        } else if (payload.length < 65536) {
          data.writeByte(126);
          data.writeShort(payload.length);
        } else {
          data.writeByte(127);
          data.writeLong(payload.length);
        }
        data.write(payload);
        out.write(bytes.toByteArray());
        out.flush();
      } catch (IOException e) {
        close();
      }
    }

    /** Writes bytes that need not be a frame. */
    synchronized void raw(byte[] bytes) {
      try {
        out.write(bytes);
        out.flush();
      } catch (IOException e) {
        close();
      }
    }

    void message(WebSocketMessage message) {
      frame(0x82, message.toByteArray());
    }

    void push(Envelope envelope, String traceparent) {
      for (Envelope pushed : tap.apply(envelope)) {
        long id = ids.incrementAndGet();
        unacknowledged.put(id, envelope);
        WebSocketRequestMessage.Builder request =
            WebSocketRequestMessage.newBuilder()
                .setVerb("PUT")
                .setPath("/api/v1/message")
                .setId(id)
                .setBody(pushed.toByteString())
                .addHeaders("X-Signal-Key: false");
        if (traceparent != null) {
          request.addHeaders("traceparent: " + traceparent);
        }
        message(
            WebSocketMessage.newBuilder()
                .setType(WebSocketMessage.Type.REQUEST)
                .setRequest(request)
                .build());
      }
    }

    void close(int code) {
      frame(0x88, new byte[] {(byte) (code >>> 8), (byte) code});
      close();
    }

    void close() {
      try {
        socket.close();
      } catch (IOException e) {
        // Closing anyway.
      }
    }
  }

  private void serve(Socket socket) {
    try (socket) {
      DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
      OutputStream out = socket.getOutputStream();
      String[] start = line(in).split(" ");
      Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
      for (String line = line(in); !line.isEmpty(); line = line(in)) {
        int colon = line.indexOf(':');
        headers.put(line.substring(0, colon).strip(), line.substring(colon + 1).strip());
      }
      if ("websocket".equalsIgnoreCase(headers.get("Upgrade"))) {
        webSocket(socket, in, out, start[1], headers);
      } else {
        byte[] body = in.readNBytes(Integer.parseInt(headers.getOrDefault("Content-Length", "0")));
        String authorization = headers.get("Authorization");
        Optional<Account> account =
            authorization == null || start[1].startsWith("/v1/registration")
                ? Optional.empty()
                : authenticate(authorization);
        Request request =
            new Request(start[0], start[1], headers, body, account.map(known -> known.aci));
        Answer answer = handle(request, headers);
        if (answer.status == 0) {
          return;
        }
        out.write(
            ("HTTP/1.1 "
                    + answer.status
                    + " x\r\nConnection: close\r\nContent-Type: application/json"
                    + answer.headers.stream()
                        .filter(header -> !header.startsWith("content-type"))
                        .map(header -> "\r\n" + header)
                        .collect(Collectors.joining())
                    + "\r\nContent-Length: "
                    + answer.body.length
                    + "\r\n\r\n")
                .getBytes(StandardCharsets.US_ASCII));
        out.write(answer.body);
        out.flush();
      }
    } catch (EOFException e) {
      // The other side has closed.
    } catch (Exception e) {
      if (!socket.isClosed() && !(e instanceof IOException)) {
        e.printStackTrace();
      }
    } finally {
      open.remove(socket);
    }
  }

  private static String line(InputStream in) throws IOException {
    StringBuilder line = new StringBuilder();
    for (int b = in.read(); b != '\n'; b = in.read()) {
      if (b < 0) {
        throw new EOFException();
      }
      if (b != '\r') {
        line.append((char) b);
      }
    }
    return line.toString();
  }

  private void webSocket(
      Socket socket, DataInputStream in, OutputStream out, String path, Map<String, String> headers)
      throws Exception {
    Request upgrade = new Request("GET", path, headers, new byte[0], Optional.empty());
    Optional<Answer> instead = intercept.apply(upgrade);
    Optional<Account> account = Optional.empty();
    String authorization = headers.get("Authorization");
    if (authorization != null) {
      account = authenticate(authorization);
      if (account.isEmpty() && instead.isEmpty()) {
        instead = Optional.of(Answer.of(403));
      }
    }
    if (instead.isPresent()) {
      out.write(("HTTP/1.1 " + instead.get().status + " no\r\n\r\n").getBytes());
      out.flush();
      return;
    }
    String accept =
        Base64.getEncoder()
            .encodeToString(
                MessageDigest.getInstance("SHA-1")
                    .digest(
                        (headers.get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
                            .getBytes()));
    out.write(
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: "
                + accept
                + "\r\n\r\n")
            .getBytes());
    out.flush();
    Connection connection = new Connection(socket, out, account);
    if (account.isPresent()) {
      Account a = account.get();
      synchronized (a) {
        Connection older = a.connection;
        a.connection = connection;
        if (older != null) {
          older.close(4409);
        }
        a.stored.forEach(envelope -> connection.push(envelope, null));
        for (Online message = a.online.poll(); message != null; message = a.online.poll()) {
          if (System.nanoTime() - message.sinceNanos < Duration.ofSeconds(10).toNanos()) {
            connection.push(message.envelope, message.traceparent);
          }
        }
        connection.message(
            WebSocketMessage.newBuilder()
                .setType(WebSocketMessage.Type.REQUEST)
                .setRequest(
                    WebSocketRequestMessage.newBuilder()
                        .setVerb("PUT")
                        .setPath("/api/v1/queue/empty")
                        .setId(connection.ids.incrementAndGet()))
                .build());
      }
    }
    try {
      while (true) {
        read(in, connection);
      }
    } finally {
      account.ifPresent(
          a -> {
            synchronized (a) {
              if (a.connection == connection) {
                a.connection = null;
              }
            }
          });
    }
  }

  private void read(DataInputStream in, Connection connection) throws IOException {
    int opcode = in.readUnsignedByte() & 0x0F;
    long length = in.readUnsignedByte() & 0x7F;
    if (length == 126) {
      length = in.readUnsignedShort();
    } else if (length == 127) {
      length = in.readLong();
    }
    byte[] mask = in.readNBytes(4);
    byte[] payload = in.readNBytes((int) length);
    for (int i = 0; i < payload.length; i++) {
      payload[i] ^= mask[i & 3];
    }
    if (opcode == 8) {
      throw new EOFException();
    }
    if (opcode != 2) {
      return;
    }
    WebSocketMessage message = WebSocketMessage.parseFrom(payload);
    if (message.getType() == WebSocketMessage.Type.RESPONSE) {
      Envelope done = connection.unacknowledged.remove(message.getResponse().getId());
      connection.account.ifPresent(
          a -> {
            synchronized (a) {
              if (message.getResponse().getStatus() == 200) {
                a.stored.remove(done);
              }
            }
          });
      return;
    }
    WebSocketRequestMessage request = message.getRequest();
    Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    for (String header : request.getHeadersList()) {
      int colon = header.indexOf(':');
      headers.put(header.substring(0, colon).strip(), header.substring(colon + 1).strip());
    }
    Answer answer =
        handle(
            new Request(
                request.getVerb(),
                request.getPath(),
                headers,
                request.getBody().toByteArray(),
                connection.account.map(a -> a.aci)),
            headers);
    if (answer.status == 0) {
      return;
    }
    connection.message(
        WebSocketMessage.newBuilder()
            .setType(WebSocketMessage.Type.RESPONSE)
            .setResponse(
                WebSocketResponseMessage.newBuilder()
                    .setId(request.getId())
                    .setStatus(answer.status)
                    .addAllHeaders(answer.headers)
                    .setBody(ByteString.copyFrom(answer.body)))
            .build());
  }

  private Optional<Account> authenticate(String authorization) {
    String[] parts =
        new String(Base64.getDecoder().decode(authorization.substring("Basic ".length())))
            .split(":", 2);
    Account account = accounts.get(UUID.fromString(parts[0].split("\\.")[0]));
    return account != null && account.password.equals(parts[1])
        ? Optional.of(account)
        : Optional.empty();
  }

  // The API

  private Answer handle(Request request, Map<String, String> headers) {
    String[] segments = request.path.split("[/?]");
    counts
        .computeIfAbsent(
            request.verb
                + " "
                + segments[2]
                + (segments.length > 3 && segments[3].equals("multi_recipient") ? "/many" : ""),
            key -> new AtomicInteger())
        .incrementAndGet();
    Optional<Answer> instead = intercept.apply(request);
    if (instead.isPresent()) {
      return instead.get();
    }
    try {
      if (request.is("POST", "/v1/registration")) {
        return register(request, headers.get("Authorization"));
      } else if (request.is("GET", "/v1/keepalive")) {
        return Answer.of(200);
      } else if (request.is("PUT", "/v2/keys")) {
        return upload(request);
      } else if (request.is("GET", "/v2/keys?") && request.account.isPresent()) {
        Account account = accounts.get(request.account.get());
        synchronized (account) {
          return Answer.json(
              200,
              JSON.createObjectNode()
                  .put("count", account.preKeys.size())
                  .put("pqCount", account.kyberPreKeys.size()));
        }
      } else if (request.is("GET", "/v2/keys/")) {
        return keys(request, segments[3]);
      } else if (request.is("PUT", "/v1/accounts/attributes")) {
        return attributes(request);
      } else if (request.is("GET", "/v1/certificate/delivery")) {
        return certificate(request);
      } else if (request.is("PUT", "/v1/messages/multi_recipient")) {
        return sendMany(request);
      } else if (request.is("PUT", "/v1/messages/")) {
        return sendOne(request, segments[3]);
      }
      return Answer.of(404);
    } catch (Exception e) {
      e.printStackTrace();
      return Answer.of(400);
    }
  }

  private Answer register(Request request, String authorization) {
    String[] parts =
        new String(Base64.getDecoder().decode(authorization.substring("Basic ".length())))
            .split(":", 2);
    JsonNode body = JSON.readTree(request.body);
    String token = tokens.get(parts[0]);
    if (token == null || !token.equals(body.path("recoveryPassword").asString())) {
      return Answer.of(403);
    }
    tokens.remove(parts[0]);
    Account account = new Account(UUID.randomUUID(), parts[1], body);
    accounts.put(account.aci, account);
    return Answer.json(
        200,
        JSON.createObjectNode()
            .put("uuid", account.aci.toString())
            .put("pni", UUID.randomUUID().toString())
            .put("number", parts[0]));
  }

  private Answer upload(Request request) throws Exception {
    Account account = accounts.get(request.account.orElseThrow());
    JsonNode body = JSON.readTree(request.body);
    ECPublicKey identity = new ECPublicKey(account.identityKey);
    synchronized (account) {
      for (String field : List.of("signedPreKey", "pqLastResortPreKey")) {
        JsonNode key = body.path(field);
        if (key.isObject()
            && !identity.verifySignature(decode(key, "publicKey"), decode(key, "signature"))) {
          return Answer.of(422);
        }
      }
      if (body.path("signedPreKey").isObject()) {
        account.signedPreKey = body.path("signedPreKey");
      }
      if (body.path("pqLastResortPreKey").isObject()) {
        account.lastResort = body.path("pqLastResortPreKey");
      }
      account.preKeys.clear();
      body.path("preKeys").forEach(account.preKeys::add);
      account.kyberPreKeys.clear();
      body.path("pqPreKeys").forEach(account.kyberPreKeys::add);
      if (account.preKeys.size() > 100 || account.kyberPreKeys.size() > 100) {
        return Answer.of(422);
      }
    }
    return Answer.of(200);
  }

  private Answer attributes(Request request) {
    Account account = accounts.get(request.account.orElseThrow());
    JsonNode body = JSON.readTree(request.body);
    if (body.path("registrationId").asInt() != account.registrationId
        || !body.path("fetchesMessages").asBoolean()
        || body.path("unrestrictedUnidentifiedAccess").asBoolean()) {
      return Answer.of(422);
    }
    account.accessKey = decode(body, "unidentifiedAccessKey");
    return Answer.of(204);
  }

  /** A sender who names itself reaches every account, any other needs the access key. */
  private static boolean opens(Request request, Account account) {
    String key = request.headers.get("unidentified-access-key");
    return request.account.isPresent()
        || (key != null
            && MessageDigest.isEqual(account.accessKey, Base64.getDecoder().decode(key)));
  }

  private Answer keys(Request request, String target) {
    Account account = accounts.get(UUID.fromString(target));
    if (account == null) {
      return Answer.of(404);
    }
    if (!opens(request, account)) {
      return Answer.of(401);
    }
    ObjectNode answer = JSON.createObjectNode();
    synchronized (account) {
      answer.put("identityKey", Base64.getEncoder().encodeToString(account.identityKey));
      ObjectNode device = answer.putArray("devices").addObject();
      device.put("deviceId", 1).put("registrationId", account.registrationId);
      device.set("signedPreKey", account.signedPreKey);
      JsonNode oneTime = account.preKeys.poll();
      if (oneTime != null) {
        device.set("preKey", oneTime);
      }
      JsonNode kyber = account.kyberPreKeys.poll();
      device.set("pqPreKey", kyber == null ? account.lastResort : kyber);
    }
    return Answer.json(200, answer);
  }

  private Answer certificate(Request request) throws Exception {
    Account account = accounts.get(request.account.orElseThrow());
    byte[] certificate =
        serverCertificate
            .issue(
                serverKey.getPrivateKey(),
                account.aci.toString(),
                Optional.empty(),
                1,
                new ECPublicKey(account.identityKey),
                System.currentTimeMillis() + certificateLifetime.toMillis())
            .getSerialized();
    return Answer.json(
        200,
        JSON.createObjectNode()
            .put("certificate", Base64.getEncoder().encodeToString(certificate)));
  }

  private Answer sendOne(Request request, String target) {
    Account account = accounts.get(UUID.fromString(target));
    if (account == null) {
      return Answer.of(404);
    }
    if (!opens(request, account)) {
      return Answer.of(401);
    }
    JsonNode body = JSON.readTree(request.body);
    JsonNode message = body.path("messages").get(0);
    if (message.path("destinationRegistrationId").asInt() != account.registrationId) {
      ObjectNode stale = JSON.createObjectNode();
      stale.putArray("staleDevices").add(1);
      return Answer.json(410, stale);
    }
    if (account.devices.size() > 1) {
      ObjectNode mismatch = JSON.createObjectNode();
      mismatch.putArray("missingDevices").add(account.devices.get(1));
      mismatch.putArray("extraDevices");
      return Answer.json(409, mismatch);
    }
    byte[] content = decode(message, "content");
    if (content.length > 96 << 10) {
      return Answer.of(413);
    }
    deliver(account, content, body.path("online").asBoolean(), request.headers.get("traceparent"));
    return Answer.json(200, JSON.createObjectNode().put("needsSync", false));
  }

  private Answer sendMany(Request request) throws Exception {
    if (request.headers.containsKey("authorization") || request.account.isPresent()) {
      return Answer.of(400);
    }
    SealedSenderMultiRecipientMessage message =
        SealedSenderMultiRecipientMessage.parse(request.body);
    byte[] key =
        Base64.getDecoder().decode(request.headers.getOrDefault("unidentified-access-key", ""));
    ArrayNode stale = JSON.createArrayNode();
    ArrayNode mismatched = JSON.createArrayNode();
    for (Map.Entry<ServiceId, SealedSenderMultiRecipientMessage.Recipient> entry :
        message.getRecipients().entrySet()) {
      Account account = accounts.get(entry.getKey().getRawUUID());
      if (account == null) {
        return Answer.of(404);
      }
      for (int i = 0; i < key.length; i++) {
        key[i] ^= account.accessKey[i];
      }
      for (var device : entry.getValue().getDevicesAndRegistrationIds().toList()) {
        if (device.getSecond() != account.registrationId) {
          ObjectNode one = stale.addObject().put("uuid", account.aci.toString());
          one.putObject("devices").putArray("staleDevices").add(1);
        }
      }
      if (account.devices.size() > 1) {
        ObjectNode devices =
            mismatched.addObject().put("uuid", account.aci.toString()).putObject("devices");
        devices.putArray("missingDevices").add(account.devices.get(1));
        devices.putArray("extraDevices");
      }
    }
    if (!MessageDigest.isEqual(key, new byte[16])) {
      return Answer.of(401);
    }
    if (!mismatched.isEmpty()) {
      return Answer.json(409, mismatched);
    }
    if (!stale.isEmpty()) {
      return Answer.json(410, stale);
    }
    ArrayNode full = JSON.createArrayNode();
    for (var recipient : message.getRecipients().entrySet()) {
      byte[] content = message.messageForRecipient(recipient.getValue());
      if (content.length > 96 << 10) {
        return Answer.of(413);
      }
      Account account = accounts.get(recipient.getKey().getRawUUID());
      if (account.full.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
        full.add(account.aci.toString());
        continue;
      }
      deliver(
          account,
          content,
          request.path.toLowerCase(Locale.ROOT).contains("online=true"),
          request.headers.get("traceparent"));
    }
    ObjectNode answer = JSON.createObjectNode();
    answer.putArray("uuids404");
    if (full.size() == message.getRecipients().size()) {
      return Answer.of(429);
    }
    if (!full.isEmpty()) {
      answer.set("uuids429", full);
    }
    return Answer.json(200, answer);
  }

  /** Queues a sealed message for an account. */
  void deliver(Account account, byte[] content, boolean online, String traceparent) {
    deliver(
        account,
        Envelope.newBuilder()
            .setType(Envelope.Type.UNIDENTIFIED_SENDER)
            .setContent(ByteString.copyFrom(content))
            .setServerTimestamp(System.currentTimeMillis())
            .setGuid(UUID.randomUUID().toString())
            .setEphemeral(online)
            .build(),
        online,
        traceparent);
  }

  void deliver(Account account, Envelope envelope, boolean online, String traceparent) {
    synchronized (account) {
      if (!online) {
        account.stored.add(envelope);
      }
      Connection connection = account.connection;
      if (connection != null) {
        connection.push(envelope, traceparent);
      } else if (online) {
        account.online.add(new Online(envelope, traceparent, System.nanoTime()));
      }
    }
  }

  private static byte[] decode(JsonNode node, String field) {
    return Base64.getDecoder().decode(node.path(field).asString(""));
  }
}
