package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.google.protobuf.ByteString;
import io.coterie.channel.ChannelAccount;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SendMode;
import io.coterie.channel.keys.ProtocolStore;
import io.coterie.channel.link.Enrolment;
import io.coterie.channel.link.Link;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.channel.telemetry.ChannelMetrics.Rejection;
import io.coterie.channel.wire.Frame;
import io.coterie.proto.signal.Envelope;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.trust.Member;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.signal.libsignal.metadata.SealedSessionCipher;
import org.signal.libsignal.metadata.certificate.SenderCertificate;
import org.signal.libsignal.metadata.certificate.ServerCertificate;
import org.signal.libsignal.metadata.protocol.UnidentifiedSenderMessageContent;
import org.signal.libsignal.protocol.IdentityKey;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.SessionBuilder;
import org.signal.libsignal.protocol.SessionCipher;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.ecc.ECKeyPair;
import org.signal.libsignal.protocol.ecc.ECPublicKey;
import org.signal.libsignal.protocol.groups.GroupCipher;
import org.signal.libsignal.protocol.groups.GroupSessionBuilder;
import org.signal.libsignal.protocol.kem.KEMPublicKey;
import org.signal.libsignal.protocol.message.CiphertextMessage;
import org.signal.libsignal.protocol.state.PreKeyBundle;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** The service, a stranger, or the wire is hostile: nothing gets through, and nothing breaks. */
class HostileTest extends ServerFixture {
  private static final Duration PATIENCE = Duration.ofSeconds(TestGroup.PATIENCE_SECONDS);
  private static final SecureChannel.SendOptions ONLINE = SecureChannel.SendOptions.online(null);

  // Identities

  /** Someone with libsignal, an identity, and a certificate of his choice. */
  private final class Attacker {
    final IdentityKeyPair identity = IdentityKeyPair.generate();
    final ProtocolStore store = new ProtocolStore(identity, 77);

    SenderCertificate certificate(ECKeyPair root, UUID account, ECPublicKey key, Duration lifetime)
        throws Exception {
      ECKeyPair intermediate = ECKeyPair.generate();
      return new ServerCertificate(root.getPrivateKey(), 99, intermediate.getPublicKey())
          .issue(
              intermediate.getPrivateKey(),
              account.toString(),
              Optional.empty(),
              1,
              key,
              System.currentTimeMillis() + lifetime.toMillis());
    }

    /** A sealed first message to the victim that carries a body. */
    byte[] sealed(
        TestServer.Account victim, UUID as, SenderCertificate certificate, boolean broadcast)
        throws Exception {
      SignalProtocolAddress address = new SignalProtocolAddress(victim.aci.toString(), 1);
      store.pin(address, new IdentityKey(victim.identityKey));
      JsonNode kyber = victim.lastResort;
      new SessionBuilder(store, address)
          .process(
              new PreKeyBundle(
                  victim.registrationId,
                  1,
                  PreKeyBundle.NULL_PRE_KEY_ID,
                  null,
                  victim.signedPreKey.path("keyId").asInt(),
                  new ECPublicKey(bytes(victim.signedPreKey, "publicKey")),
                  bytes(victim.signedPreKey, "signature"),
                  new IdentityKey(victim.identityKey),
                  kyber.path("keyId").asInt(),
                  new KEMPublicKey(bytes(kyber, "publicKey")),
                  bytes(kyber, "signature")));
      byte[] body = Frame.body(false, "evil".getBytes(StandardCharsets.UTF_8));
      CiphertextMessage message;
      if (broadcast) {
        SignalProtocolAddress self = new SignalProtocolAddress(as.toString(), 1);
        UUID distribution = UUID.randomUUID();
        new GroupSessionBuilder(store).create(self, distribution);
        message = new GroupCipher(store, self).encrypt(distribution, body);
      } else {
        message = new SessionCipher(store, address).encrypt(body);
      }
      return new SealedSessionCipher(store, as, null, 1)
          .encrypt(
              address,
              new UnidentifiedSenderMessageContent(message, certificate, 0, Optional.empty()));
    }

    private static byte[] bytes(JsonNode node, String field) {
      return Base64.getDecoder().decode(node.path(field).asString());
    }
  }

  private enum Forgery {
    /** All in order, but nobody pinned this account. */
    STRANGER(Rejection.STRANGER),
    /** The service lends its root to an attacker who claims to be a member. */
    MEMBER_WITH_OTHER_KEY(Rejection.IDENTITY),
    /** The same, with a broadcast under the attacker's sender key. */
    BROADCAST_WITH_OTHER_KEY(Rejection.IDENTITY),
    /** A member's name and key, but not under the pinned root. */
    OTHER_ROOT(Rejection.CERTIFICATE),
    /** A member's name and the attacker's key, not under the pinned root. */
    OTHER_ROOT_AND_KEY(Rejection.CERTIFICATE),
    EXPIRED(Rejection.CERTIFICATE),
    /** The member's true key in the certificate; the attacker does not have its private half. */
    MEMBER_KEY_NOT_OWNED(Rejection.MALFORMED);

    final Rejection expected;

    Forgery(Rejection expected) {
      this.expected = expected;
    }
  }

  @ParameterizedTest
  @EnumSource(Forgery.class)
  void forgedSenderIsRefused(Forgery forgery) throws Exception {
    try (TestGroup group = TestGroup.started(server, 2)) {
      TestGroup.TestMember victim = group.member(0);
      Member member = group.member(1).entry();
      Attacker attacker = new Attacker();
      ECPublicKey own = attacker.identity.getPublicKey().getPublicKey();
      ECPublicKey members = new ECPublicKey(member.identityKey());
      Duration day = Duration.ofDays(1);
      UUID as = forgery == Forgery.STRANGER ? UUID.randomUUID() : member.aci();
      SenderCertificate certificate =
          switch (forgery) {
            case STRANGER, MEMBER_WITH_OTHER_KEY, BROADCAST_WITH_OTHER_KEY ->
                attacker.certificate(server.trustRoot(), as, own, day);
            case OTHER_ROOT_AND_KEY -> attacker.certificate(ECKeyPair.generate(), as, own, day);
            case OTHER_ROOT -> attacker.certificate(ECKeyPair.generate(), as, own, day);
            case EXPIRED -> attacker.certificate(server.trustRoot(), as, own, day.negated());
            case MEMBER_KEY_NOT_OWNED -> attacker.certificate(server.trustRoot(), as, members, day);
          };
      double before = victim.rejected(forgery.expected);
      TestServer.Account account = server.accounts.get(victim.entry().aci());
      server.deliver(
          account,
          attacker.sealed(account, as, certificate, forgery == Forgery.BROADCAST_WITH_OTHER_KEY),
          false,
          null);
      await().atMost(PATIENCE).until(() -> victim.rejected(forgery.expected) == before + 1);
      await().atMost(PATIENCE).until(account.stored::isEmpty);
      assertThat(victim.received).isEmpty();
      group.member(1).send(victim, "true");
      await().atMost(PATIENCE).until(() -> victim.texts().equals(List.of("true")));
    }
  }

  @Test
  void keysOfAnotherIdentityAreRefused() throws Exception {
    try (TestGroup group =
        new TestGroup(server, 2, config -> config.withTiming(Timings.impatient()))) {
      TestServer.Account second = server.accounts.get(group.member(1).entry().aci());
      byte[] pinned = second.identityKey;
      second.identityKey = IdentityKeyPair.generate().getPublicKey().serialize();
      group.member(0).start();
      // On a busy machine the time of a send may be up before the keys came.
      await()
          .atMost(PATIENCE)
          .untilAsserted(
              () ->
                  assertThat(
                          group
                              .member(0)
                              .channel
                              .send(group.member(1).entry(), new byte[3], ONLINE)
                              .toCompletableFuture())
                      .failsWithin(PATIENCE)
                      .withThrowableThat()
                      .havingRootCause()
                      .isInstanceOfSatisfying(
                          ChannelException.class,
                          e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.UNTRUSTED)));
      assertThat(server.count("PUT messages")).isZero();
      // The truth comes out: everything heals.
      second.identityKey = pinned;
      group.member(1).start();
      group.awaitEstablished();
    }
  }

  @Test
  void ownCertificateUnderAnotherRootIsNotUsed() throws Exception {
    ECKeyPair other = ECKeyPair.generate();
    try (TestGroup group =
        new TestGroup(
            server,
            2,
            config ->
                ChannelConfig.of(
                        config.messaging(), config.caPem(), other.getPublicKey().serialize())
                    .withTiming(Timings.impatient()))) {
      group.all.forEach(TestGroup.TestMember::start);
      assertThatThrownBy(() -> group.member(0).broadcast("never"))
          .hasRootCauseInstanceOf(ChannelException.class);
      assertThat(server.count("PUT messages")).isZero();
    }
  }

  /** The service answers no request for a new one, so nothing shows that the old one is over. */
  @Test
  void expiredOwnCertificateIsNotUsed() throws Exception {
    server.certificateLifetime = Duration.ofSeconds(4);
    try (TestGroup group = TestGroup.started(server, 2)) {
      long expired = System.currentTimeMillis() + server.certificateLifetime.toMillis();
      server.intercept =
          request ->
              request.is("GET", "/v1/certificate/delivery")
                  ? Optional.of(TestServer.Answer.of(0))
                  : Optional.empty();
      int asked = server.count("GET certificate");
      await().atMost(PATIENCE).until(() -> server.count("GET certificate") >= asked + 2);
      await().atMost(PATIENCE).until(() -> System.currentTimeMillis() > expired);
      assertThatThrownBy(() -> group.member(0).send(group.member(1), "never"))
          .cause()
          .isInstanceOfSatisfying(
              ChannelException.class,
              e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.UNAVAILABLE));
    }
  }

  @Test
  void accountMustBeTheOneInTheRoster() throws Exception {
    try (TestGroup group = new TestGroup(server, 2, UnaryOperator.identity())) {
      ChannelConfig config =
          ChannelConfig.of(server.uri(), server.caPem(), server.trustRootPublic());
      ChannelAccount own = group.accounts.getFirst();
      ChannelAccount otherKey =
          new ChannelAccount(
              own.aci(),
              1,
              own.password(),
              own.registrationId(),
              IdentityKeyPair.generate().serialize());
      ChannelAccount stranger = server.enrol("+15559999999");
      for (ChannelAccount account : List.of(otherKey, stranger)) {
        assertThatThrownBy(
                () ->
                    SignalChannel.open(
                        config,
                        account,
                        group.roster,
                        new io.micrometer.core.instrument.simple.SimpleMeterRegistry()))
            .isInstanceOf(IllegalArgumentException.class);
      }
    }
  }

  // Bytes on the wire

  private Envelope sealed(byte[] content) {
    return Envelope.newBuilder()
        .setType(Envelope.Type.UNIDENTIFIED_SENDER)
        .setContent(ByteString.copyFrom(content))
        .build();
  }

  /** Every bit of a sealed message, pairwise and group, is flipped: none gets through changed. */
  @Test
  void flippedBitsAreRefused() throws Exception {
    try (TestGroup group = TestGroup.started(server, 2)) {
      TestGroup.TestMember victim = group.member(0);
      TestServer.Account account = server.accounts.get(victim.entry().aci());
      for (boolean pairwise : new boolean[] {true, false}) {
        List<Envelope> originals = new ArrayList<>();
        server.tap =
            envelope -> {
              synchronized (originals) {
                originals.add(envelope);
              }
              return List.of();
            };
        if (pairwise) {
          group.member(1).send(victim, "precious");
        } else {
          group.member(1).broadcast("precious");
        }
        await()
            .atMost(PATIENCE)
            .until(
                () -> {
                  synchronized (originals) {
                    return !originals.isEmpty();
                  }
                });
        server.tap = List::of;
        // Key exchange in the background may have been caught too: all of it is played back.
        List<byte[]> caught = new ArrayList<>();
        synchronized (originals) {
          originals.forEach(envelope -> caught.add(envelope.getContent().toByteArray()));
        }
        for (byte[] content : caught) {
          for (int i = 0; i < content.length; i += 7) {
            byte[] flipped = content.clone();
            flipped[i] ^= (byte) (1 << (i % 8));
            server.deliver(account, sealed(flipped), true, null);
          }
          server.deliver(account, sealed(content), true, null);
        }
        await().atMost(PATIENCE).until(() -> victim.texts().contains("precious"));
        assertThat(victim.texts()).containsExactly("precious");
        victim.received.clear();
      }
      group.member(1).broadcast("after");
      await().atMost(PATIENCE).until(() -> victim.texts().contains("after"));
    }
  }

  @Test
  void duplicatesAreDeliveredOnce() throws Exception {
    try (TestGroup group = TestGroup.started(server, 2)) {
      server.tap = envelope -> List.of(envelope, envelope, envelope);
      group.member(1).broadcast("g");
      group.member(1).send(group.member(0), "p");
      TestGroup.TestMember victim = group.member(0);
      await().atMost(PATIENCE).until(() -> victim.rejected(Rejection.DUPLICATE) >= 4);
      assertThat(victim.texts()).containsExactly("g", "p");
    }
  }

  /** A message whose acknowledgement the service lost comes again, after a reconnect. */
  @Test
  void storedMessageDeliveredAgainIsNotHandedOnAgain() throws Exception {
    try (TestGroup group = TestGroup.started(server, 2)) {
      TestGroup.TestMember victim = group.member(0);
      TestServer.Account account = server.accounts.get(victim.entry().aci());
      List<Envelope> seen = new ArrayList<>();
      server.tap =
          envelope -> {
            seen.add(envelope);
            return List.of(envelope);
          };
      group
          .member(1)
          .channel
          .broadcast(
              group.roster.members(),
              "once".getBytes(StandardCharsets.UTF_8),
              SecureChannel.SendOptions.stored(null));
      await().atMost(PATIENCE).until(() -> victim.received.size() == 1);
      await().atMost(PATIENCE).until(account.stored::isEmpty);
      server.tap = List::of;
      account.stored.addAll(seen);
      account.connection.close();
      await().atMost(PATIENCE).until(account.stored::isEmpty);
      assertThat(victim.texts()).containsExactly("once");
    }
  }

  @Test
  void randomEnvelopesAreRefusedAndAcknowledged() throws Exception {
    try (TestGroup group = TestGroup.started(server, 2)) {
      TestGroup.TestMember victim = group.member(0);
      TestServer.Account account = server.accounts.get(victim.entry().aci());
      Random random = new Random(3);
      int sent = 0;
      for (int i = 0; i < 300; i++) {
        byte[] content = new byte[random.nextInt(600)];
        random.nextBytes(content);
        if (content.length > 0) {
          content[0] = (byte) new int[] {0x11, 0x22, 0x23, 0x33, content[0]}[i % 5];
        }
        Envelope.Builder envelope = sealed(content).toBuilder().setGuid("random-" + i);
        if (i % 7 == 0) {
          envelope.setType(Envelope.Type.CIPHERTEXT);
        } else if (i % 11 == 0) {
          envelope.clearType();
        }
        server.deliver(account, envelope.build(), false, null);
        sent++;
      }
      // An envelope that is none.
      WebSocketRequestMessage.Builder push =
          WebSocketRequestMessage.newBuilder().setVerb("PUT").setPath("/api/v1/message");
      account.connection.message(request(push.setId(900).setBody(ByteString.copyFromUtf8("\377"))));
      account.connection.message(request(push.setId(901).clearBody()));
      account.connection.message(request(push.setId(902).setPath("/api/v9/nothing")));
      int expected = sent + 2;
      await().atMost(PATIENCE).until(() -> victim.rejected(Rejection.MALFORMED) == expected);
      await().atMost(PATIENCE).until(account.stored::isEmpty);
      group.member(1).broadcast("still here");
      await().atMost(PATIENCE).until(() -> victim.texts().equals(List.of("still here")));
    }
  }

  private static WebSocketMessage request(WebSocketRequestMessage.Builder request) {
    return WebSocketMessage.newBuilder()
        .setType(WebSocketMessage.Type.REQUEST)
        .setRequest(request)
        .build();
  }

  /** Fails once, as a JVM without memory or a native library may, when something is counted. */
  private static final class FailingRegistry extends SimpleMeterRegistry {
    private final AtomicBoolean armed = new AtomicBoolean();
    private final Predicate<Meter.Id> where;

    FailingRegistry(Predicate<Meter.Id> where) {
      this.where = where;
    }

    @Override
    protected Counter newCounter(Meter.Id id) {
      Counter counter = super.newCounter(id);
      if (!where.test(id)) {
        return counter;
      }
      return new Counter() {
        @Override
        public void increment(double amount) {
          if (armed.compareAndSet(true, false)) {
            throw new AssertionError("made for a test");
          }
          counter.increment(amount);
        }

        @Override
        public double count() {
          return counter.count();
        }

        @Override
        public Meter.Id getId() {
          return id;
        }
      };
    }
  }

  @Test
  void anErrorDoesNotStopTheEnvelopesBehind() throws Exception {
    try (TestGroup group = new TestGroup(server, 2, config -> config)) {
      FailingRegistry failing =
          new FailingRegistry(id -> id.getName().equals(ChannelMetrics.REJECTED));
      group.registries = () -> failing;
      group.member(0).start();
      group.registries = SimpleMeterRegistry::new;
      group.member(1).start();
      group.awaitEstablished();
      TestServer.Account account = server.accounts.get(group.member(0).entry().aci());
      failing.armed.set(true);
      server.deliver(account, sealed(new byte[10]), false, null);
      await().atMost(PATIENCE).until(() -> !failing.armed.get());
      group.member(1).broadcast("still here");
      await().atMost(PATIENCE).until(() -> group.member(0).texts().equals(List.of("still here")));
      await().atMost(PATIENCE).until(account.stored::isEmpty);
    }
  }

  @Test
  void anErrorFailsTheMessageThatItHits() throws Exception {
    try (TestGroup group = new TestGroup(server, 2, config -> config)) {
      FailingRegistry failing =
          new FailingRegistry(
              id ->
                  id.getName().equals(ChannelMetrics.REQUESTS)
                      && !"control".equals(id.getTag("mode")));
      group.registries = () -> failing;
      group.member(0).start();
      group.registries = SimpleMeterRegistry::new;
      group.member(1).start();
      group.awaitEstablished();
      failing.armed.set(true);
      assertThatThrownBy(() -> group.member(0).send(group.member(1), "lost"))
          .hasCauseInstanceOf(ChannelException.class);
      failing.armed.set(true);
      assertThatThrownBy(() -> group.member(0).broadcast("lost"))
          .hasCauseInstanceOf(ChannelException.class);
      group.member(0).send(group.member(1), "still here");
      group.member(0).broadcast("for all");
      await()
          .atMost(PATIENCE)
          .until(() -> group.member(1).texts().containsAll(List.of("still here", "for all")));
    }
  }

  /** On bytes that are no frames the connection is closed and made anew. */
  @Test
  void brokenFramesCostTheConnectionOnly() throws Exception {
    List<byte[]> hostile = new ArrayList<>();
    hostile.add(new byte[] {(byte) 0xF2, 1, 0}); // reserved bits
    hostile.add(new byte[] {(byte) 0x82, (byte) 0x81, 0, 0, 0, 0, 0}); // masked by the server
    hostile.add(new byte[] {(byte) 0x81, 1, 'x'}); // text
    hostile.add(new byte[] {(byte) 0x80, 1, 'x'}); // continuation of nothing
    hostile.add(new byte[] {(byte) 0x02, 1, 'x', (byte) 0x82, 1, 'x'}); // a second beginning
    hostile.add(new byte[] {(byte) 0x8B, 0}); // unknown opcode
    hostile.add(new byte[] {(byte) 0x09, 0}); // fragmented ping
    hostile.add(new byte[] {(byte) 0x89, 126, 1, 0}); // long ping
    hostile.add(new byte[] {(byte) 0x82, 127, -1, -1, -1, -1, -1, -1, -1, -1}); // huge
    hostile.add(new byte[] {(byte) 0x82, 127, 0, 0, 0, 0, 0, 16, 0, 0}); // above the limit
    hostile.add(new byte[] {(byte) 0x82, 3, 'x', 'y', 'z'}); // no WebSocketMessage
    byte[] noise = new byte[5000];
    new Random(5).nextBytes(noise);
    hostile.add(noise);
    try (TestGroup group = TestGroup.started(server, 2)) {
      TestGroup.TestMember victim = group.member(0);
      TestServer.Account account = server.accounts.get(victim.entry().aci());
      for (byte[] bytes : hostile) {
        TestServer.Connection connection = account.connection;
        connection.raw(bytes);
        await()
            .atMost(PATIENCE)
            .until(() -> account.connection != null && account.connection != connection);
        await().atMost(PATIENCE).until(victim.channel::connected);
      }
      // Allowed oddities: a fragmented message, with a ping in between.
      account.connection.raw(new byte[] {(byte) 0x02, 1, 8, (byte) 0x89, 1, 'p'});
      account.connection.raw(new byte[] {(byte) 0x80, 1, 1});
      group.member(1).broadcast("survived");
      await().atMost(PATIENCE).until(() -> victim.texts().equals(List.of("survived")));
    }
  }

  // Members that misbehave inside the encryption

  @Test
  void hostileFramesOfAMemberAreRefused() throws Exception {
    try (TestGroup group = TestGroup.started(server, 2)) {
      TestGroup.TestMember victim = group.member(0);
      SignalChannel sender = group.member(1).channel;
      Member to = victim.entry();
      byte[] broken = Frame.body(false, new byte[10]);
      broken[1] = 42;
      byte[] helloOnGroup = hello(new byte[] {1});
      byte[] badDistribution = hello(new byte[] {1, 2, 3});
      byte[] chunk = Frame.chunk(false, 5, 1, 1000, new byte[3000]);
      sender.sendFrames(to, List.of(broken.clone()), false).join();
      sender.sendFrames(to, List.of(broken.clone()), true).join();
      sender.sendFrames(to, List.of(helloOnGroup), true).join();
      await().atMost(PATIENCE).until(() -> victim.rejected(Rejection.FRAME) == 3);
      sender.sendFrames(to, List.of(chunk.clone(), chunk.clone()), false).join();
      sender.sendFrames(to, List.of(chunk.clone(), chunk.clone()), true).join();
      await().atMost(PATIENCE).until(() -> victim.rejected(Rejection.REASSEMBLY) == 2);
      // A hello of another process with nonsense in it: the true one sets it right.
      sender.sendFrames(to, List.of(badDistribution), false).join();
      await()
          .atMost(PATIENCE)
          .untilAsserted(
              () -> {
                group.member(1).broadcast("true");
                assertThat(victim.texts()).contains("true");
              });
    }
  }

  private static byte[] hello(byte[] distribution) {
    return Frame.hello(
        new Frame.Hello(1, 1, true, true, new byte[16], List.of(), List.of(distribution)));
  }

  // Requests that the service answers badly

  @ParameterizedTest
  @EnumSource(SendMode.class)
  void slowAndBusyServiceIsWaitedFor(SendMode mode) throws Exception {
    try (TestGroup group = TestGroup.started(server, 3, config -> config.withSendMode(mode))) {
      AtomicInteger refusals = new AtomicInteger(3);
      server.intercept =
          request ->
              request.is("PUT", "/v1/messages/") && refusals.getAndDecrement() > 0
                  ? Optional.of(
                      new TestServer.Answer(
                          refusals.get() == 1 ? 503 : 429,
                          List.of("Retry-After: " + (refusals.get() == 2 ? "1" : "x")),
                          new byte[0]))
                  : Optional.empty();
      group.member(0).broadcast("patience");
      await().atMost(PATIENCE).until(() -> group.member(1).texts().contains("patience"));
      await().atMost(PATIENCE).until(() -> group.member(2).texts().contains("patience"));
    }
  }

  @ParameterizedTest
  @EnumSource(SendMode.class)
  void refusalsReachTheCaller(SendMode mode) throws Exception {
    try (TestGroup group =
        TestGroup.started(
            server, 3, config -> config.withSendMode(mode).withTiming(Timings.impatient()))) {
      record Case(TestServer.Answer answer, ChannelException.Cause expected) {}
      List<Case> cases =
          List.of(
              new Case(
                  new TestServer.Answer(429, List.of("Retry-After: 60"), new byte[0]),
                  ChannelException.Cause.RATE_LIMITED),
              new Case(TestServer.Answer.of(404), ChannelException.Cause.NOT_ESTABLISHED),
              new Case(TestServer.Answer.of(413), ChannelException.Cause.TOO_LARGE),
              new Case(TestServer.Answer.of(428), ChannelException.Cause.RATE_LIMITED),
              new Case(TestServer.Answer.of(500), ChannelException.Cause.UNAVAILABLE),
              new Case(TestServer.Answer.of(508), ChannelException.Cause.UNAVAILABLE),
              new Case(TestServer.Answer.of(503), ChannelException.Cause.UNAVAILABLE),
              new Case(TestServer.Answer.of(299 + 1), ChannelException.Cause.INTERNAL),
              // No answer at all.
              new Case(TestServer.Answer.of(0), ChannelException.Cause.UNAVAILABLE),
              // Not the JSON it should be.
              new Case(
                  new TestServer.Answer(409, List.of(), "{{".getBytes()),
                  ChannelException.Cause.UNAVAILABLE),
              // The last, because it makes the sender forget the access keys.
              new Case(TestServer.Answer.of(401), ChannelException.Cause.UNAUTHENTICATED));
      for (Case c : cases) {
        server.intercept =
            request ->
                request.is("PUT", "/v1/messages/") ? Optional.of(c.answer) : Optional.empty();
        assertThatThrownBy(() -> group.member(0).broadcast("never"))
            .as("%s", c.answer.status())
            .cause()
            .isInstanceOfSatisfying(
                ChannelException.class, e -> assertThat(e.reason()).isEqualTo(c.expected));
      }
      server.intercept = request -> Optional.empty();
      group.awaitEstablished();
      group.member(0).broadcast("at last");
      await().atMost(PATIENCE).until(() -> group.member(1).texts().contains("at last"));
      assertThat(
              group
                  .member(0)
                  .registry
                  .counter(
                      ChannelMetrics.SENDS,
                      "mode",
                      ChannelMetrics.Mode.of(mode).label(),
                      "outcome",
                      "too_large")
                  .count())
          .isEqualTo(1);
    }
  }

  @ParameterizedTest
  @EnumSource(SendMode.class)
  void changedRegistrationIsRepairedOnce(SendMode mode) throws Exception {
    try (TestGroup group = TestGroup.started(server, 3, config -> config.withSendMode(mode))) {
      server.accounts.get(group.member(1).entry().aci()).registrationId = 4242;
      group.member(0).broadcast("repaired");
      await().atMost(PATIENCE).until(() -> group.member(1).texts().contains("repaired"));
      await().atMost(PATIENCE).until(() -> group.member(2).texts().contains("repaired"));
    }
  }

  @Test
  void deviceThatNobodyPinnedIsNotSentTo() throws Exception {
    try (TestGroup group =
        TestGroup.started(server, 2, config -> config.withTiming(Timings.impatient()))) {
      server.accounts.get(group.member(1).entry().aci()).devices.add(2);
      assertThatThrownBy(() -> group.member(0).send(group.member(1), "never"))
          .cause()
          .isInstanceOfSatisfying(
              ChannelException.class,
              e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.UNTRUSTED));
      ObjectNode mismatch = TestServer.JSON.createObjectNode();
      mismatch
          .put("uuid", group.member(1).entry().aci().toString())
          .putObject("devices")
          .putArray("missingDevices")
          .add(2);
      server.intercept =
          request ->
              request.path().contains("multi_recipient")
                  ? Optional.of(
                      TestServer.Answer.json(409, TestServer.JSON.createArrayNode().add(mismatch)))
                  : Optional.empty();
      assertThatThrownBy(() -> group.member(0).broadcast("never"))
          .cause()
          .isInstanceOfSatisfying(
              ChannelException.class,
              e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.UNTRUSTED));
    }
  }

  @Test
  void wrongPasswordIsReportedAndRetried() throws Exception {
    try (TestGroup group =
        new TestGroup(server, 2, config -> config.withTiming(Timings.impatient()))) {
      server.intercept =
          request ->
              request.is("GET", "/v1/websocket/") && request.headers().containsKey("Authorization")
                  ? Optional.of(TestServer.Answer.of(403))
                  : Optional.empty();
      group.member(0).start();
      assertThatThrownBy(() -> group.member(0).broadcast("never"))
          .cause()
          .isInstanceOf(ChannelException.class);
      assertThat(group.member(0).channel.connected()).isFalse();
      server.intercept = request -> Optional.empty();
      group.member(1).start();
      group.awaitEstablished();
    }
  }

  @Test
  void displacedConnectionYieldsAndComesBack() throws Exception {
    try (TestGroup group =
        TestGroup.started(server, 2, config -> config.withTiming(Timings.impatient()))) {
      for (int code : new int[] {Link.CONNECTED_ELSEWHERE, 4401, 1001}) {
        TestServer.Account account = server.accounts.get(group.member(0).entry().aci());
        TestServer.Connection before = account.connection;
        before.close(code);
        await()
            .atMost(PATIENCE)
            .until(() -> account.connection != null && account.connection != before);
        group.member(1).broadcast("code " + code);
        await().atMost(PATIENCE).until(() -> group.member(0).texts().contains("code " + code));
      }
    }
  }

  @Test
  void certificateOfAnotherAuthorityIsRefused() throws Exception {
    try (TestServer other = new TestServer();
        TestGroup group =
            new TestGroup(
                server,
                2,
                config ->
                    ChannelConfig.of(config.messaging(), other.caPem(), config.trustRoot())
                        .withTiming(Timings.impatient()))) {
      group.member(0).start();
      assertThatThrownBy(() -> group.member(0).broadcast("never"))
          .cause()
          .isInstanceOf(ChannelException.class);
      assertThat(group.member(0).channel.connected()).isFalse();
      assertThatThrownBy(
              () -> Enrolment.enrol(server.uri(), other.caPem(), null, "+15550000001", "dG9rZW4="))
          .isInstanceOfSatisfying(
              ChannelException.class,
              e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.UNAVAILABLE));
    }
  }

  @Test
  void enrolmentNeedsItsToken() throws Exception {
    String number = "+15551234567";
    String token = server.issueToken(number);
    assertThatThrownBy(
            () -> Enrolment.enrol(server.uri(), server.caPem(), null, number, "d3Jvbmc="))
        .isInstanceOfSatisfying(
            ChannelException.class,
            e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.UNAUTHENTICATED));
    ChannelAccount account = Enrolment.enrol(server.uri(), server.caPem(), null, number, token);
    assertThat(account.toString())
        .doesNotContain(new String(account.password(), StandardCharsets.US_ASCII));
    assertThat(account.registrationId()).isBetween(1, 0x3FFF);
    assertThatThrownBy(() -> Enrolment.enrol(server.uri(), server.caPem(), null, number, token))
        .isInstanceOf(ChannelException.class);
    assertThat(Arrays.equals(account.password(), server.enrol("+15551234568").password()))
        .isFalse();
  }

  // A member is not what the roster says

  private enum Change {
    /** It has enrolled anew, or has told the service another access key. */
    ACCESS_KEY(ChannelException.Cause.UNAUTHENTICATED) {
      @Override
      void make(TestServer server, TestServer.Account account) {
        account.accessKey[0] ^= 1;
      }
    },
    /** It has added a device that nobody has pinned. */
    SECOND_DEVICE(ChannelException.Cause.UNTRUSTED) {
      @Override
      void make(TestServer server, TestServer.Account account) {
        account.devices.add(2);
      }
    },
    NO_ACCOUNT(ChannelException.Cause.NOT_ESTABLISHED) {
      @Override
      void make(TestServer server, TestServer.Account account) {
        server.accounts.remove(account.aci);
      }
    };

    private final ChannelException.Cause cause;

    Change(ChannelException.Cause cause) {
      this.cause = cause;
    }

    abstract void make(TestServer server, TestServer.Account account);
  }

  /** A broadcast reaches the others, and its sender hears which member is in the way. */
  @ParameterizedTest
  @EnumSource(Change.class)
  void aMemberThatIsNotWhatTheRosterSaysDoesNotCutTheOthersOff(Change change) throws Exception {
    try (TestGroup group =
        TestGroup.started(
            server, 3, config -> config.withTiming(Timings.heartbeat(Duration.ofMillis(100))))) {
      change.make(server, server.accounts.get(group.accounts.get(2).aci()));

      assertThatThrownBy(() -> group.member(0).broadcast("to all"))
          .cause()
          .isInstanceOfSatisfying(
              ChannelException.class, e -> assertThat(e.reason()).isEqualTo(change.cause))
          .hasMessageContaining("p3");
      await().atMost(PATIENCE).until(() -> group.member(1).texts().equals(List.of("to all")));
      assertThat(group.member(2).received).isEmpty();

      // Heartbeats are sent to all, too: more of them than may be missed.
      int heard = server.count("PUT messages/many");
      await().atMost(PATIENCE).until(() -> server.count("PUT messages/many") > heard + 60);
      assertThat(group.member(0).channel.reachable()).contains(group.member(1).entry());
      assertThat(group.member(1).channel.reachable()).contains(group.member(0).entry());
      group.member(1).broadcast(List.of(group.member(0).entry()), "still here");
      await().atMost(PATIENCE).until(() -> group.member(0).texts().equals(List.of("still here")));
    }
  }
}
