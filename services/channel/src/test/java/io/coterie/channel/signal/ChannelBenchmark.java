package io.coterie.channel.signal;

import io.coterie.channel.SecureChannel;
import io.coterie.channel.keys.PreKeys;
import io.coterie.channel.keys.ProtocolStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.signal.libsignal.metadata.SealedSessionCipher;
import org.signal.libsignal.metadata.certificate.CertificateValidator;
import org.signal.libsignal.metadata.certificate.SenderCertificate;
import org.signal.libsignal.metadata.certificate.ServerCertificate;
import org.signal.libsignal.metadata.protocol.UnidentifiedSenderMessageContent;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.SealedSenderMultiRecipientMessage;
import org.signal.libsignal.protocol.SessionBuilder;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.ecc.ECKeyPair;
import org.signal.libsignal.protocol.groups.GroupCipher;
import org.signal.libsignal.protocol.groups.GroupSessionBuilder;
import org.signal.libsignal.protocol.state.KyberPreKeyRecord;
import org.signal.libsignal.protocol.state.PreKeyBundle;
import org.signal.libsignal.protocol.state.SignedPreKeyRecord;

/**
 * The cost of a broadcast: libsignal alone, and through channel, TLS and the test server until the
 * last member has it. Run {@link #main}.
 */
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class ChannelBenchmark {

  /** A sender and recipients without any network. */
  @State(Scope.Thread)
  public static class Raw {
    @Param({"2", "4", "19"})
    public int recipients;

    final byte[] body = new byte[256];
    final List<SignalProtocolAddress> addresses = new ArrayList<>();
    final UUID distribution = UUID.randomUUID();
    final UUID senderAci = UUID.randomUUID();
    final SignalProtocolAddress sender = new SignalProtocolAddress(senderAci.toString(), 1);
    ProtocolStore store;
    SealedSessionCipher cipher;
    SenderCertificate certificate;
    CertificateValidator validator;
    ProtocolStore receiverStore;
    SealedSessionCipher receiverCipher;

    @Setup
    public void setUp() throws Exception {
      IdentityKeyPair identity = IdentityKeyPair.generate();
      ECKeyPair root = ECKeyPair.generate();
      ECKeyPair server = ECKeyPair.generate();
      store = new ProtocolStore(identity, 1);
      cipher = new SealedSessionCipher(store, senderAci, null, 1);
      certificate =
          new ServerCertificate(root.getPrivateKey(), 9, server.getPublicKey())
              .issue(
                  server.getPrivateKey(),
                  senderAci.toString(),
                  Optional.empty(),
                  1,
                  identity.getPublicKey().getPublicKey(),
                  System.currentTimeMillis() + Duration.ofDays(1).toMillis());
      validator = new CertificateValidator(root.getPublicKey());
      var key = new GroupSessionBuilder(store).create(sender, distribution);
      for (int i = 0; i < recipients; i++) {
        UUID aci = UUID.randomUUID();
        IdentityKeyPair theirs = IdentityKeyPair.generate();
        SignalProtocolAddress address = new SignalProtocolAddress(aci.toString(), 1);
        SignedPreKeyRecord signed = PreKeys.signed(1, theirs.getPrivateKey());
        KyberPreKeyRecord kyber = PreKeys.kyber(2, theirs.getPrivateKey());
        store.pin(address, theirs.getPublicKey());
        new SessionBuilder(store, address)
            .process(
                new PreKeyBundle(
                    5,
                    1,
                    PreKeyBundle.NULL_PRE_KEY_ID,
                    null,
                    1,
                    signed.getKeyPair().getPublicKey(),
                    signed.getSignature(),
                    theirs.getPublicKey(),
                    2,
                    kyber.getKeyPair().getPublicKey(),
                    kyber.getSignature()));
        addresses.add(address);
        receiverStore = new ProtocolStore(theirs, 5);
        receiverStore.pin(sender, identity.getPublicKey());
        receiverCipher = new SealedSessionCipher(receiverStore, aci, null, 1);
        new GroupSessionBuilder(receiverStore).process(sender, key);
      }
    }

    byte[] encrypt() throws Exception {
      var message = new GroupCipher(store, sender).encrypt(distribution, body);
      return cipher.multiRecipientEncrypt(
          addresses,
          new UnidentifiedSenderMessageContent(message, certificate, 0, Optional.empty()));
    }
  }

  /** A message that the last recipient has not decrypted. */
  @State(Scope.Thread)
  public static class Received extends Raw {
    byte[] message;

    @Setup(Level.Invocation)
    public void next() throws Exception {
      SealedSenderMultiRecipientMessage many = SealedSenderMultiRecipientMessage.parse(encrypt());
      UUID last = UUID.fromString(addresses.getLast().getName());
      for (var recipient : many.getRecipients().entrySet()) {
        if (recipient.getKey().getRawUUID().equals(last)) {
          message = many.messageForRecipient(recipient.getValue());
        }
      }
    }
  }

  /** A group with channels, in this process. */
  @State(Scope.Benchmark)
  public static class Channels {
    @Param({"2", "4", "19"})
    public int recipients;

    TestServer server;
    TestGroup group;
    volatile CountDownLatch received = new CountDownLatch(0);
    final byte[] body = new byte[256];

    @Setup
    public void setUp() throws Exception {
      server = new TestServer();
      group = new TestGroup(server, recipients + 1, config -> config);
      group.all.forEach(each -> each.start(message -> received.countDown()));
      group.awaitEstablished();
    }

    @TearDown
    public void tearDown() throws Exception {
      group.close();
      server.close();
    }
  }

  /** libsignal: group encryption and multi-recipient sealing. */
  @Benchmark
  public byte[] rawSend(Raw raw) throws Exception {
    return raw.encrypt();
  }

  /** libsignal's work at one recipient, certificate included. */
  @Benchmark
  public byte[] rawReceive(Received received) throws Exception {
    return received
        .receiverCipher
        .decrypt(received.validator, received.message, System.currentTimeMillis())
        .getPaddedMessage();
  }

  /** From the call until the last member's receiver has the body. */
  @Benchmark
  public void broadcastToLastReceiver(Channels channels) throws Exception {
    CountDownLatch latch = new CountDownLatch(channels.recipients);
    channels.received = latch;
    channels
        .group
        .member(0)
        .channel
        .broadcast(
            channels.group.roster.members(), channels.body, SecureChannel.SendOptions.online(null));
    if (!latch.await(10, TimeUnit.SECONDS)) {
      throw new IllegalStateException("a broadcast was lost");
    }
  }

  public static void main(String[] args) throws Exception {
    new Runner(
            new OptionsBuilder()
                .include(args.length > 0 ? args[0] : ChannelBenchmark.class.getSimpleName())
                .forks(1)
                .jvmArgs("--enable-native-access=ALL-UNNAMED", "-Xmx1g")
                .warmupIterations(2)
                .warmupTime(TimeValue.seconds(3))
                .measurementIterations(3)
                .measurementTime(TimeValue.seconds(3))
                .build())
        .run();
  }
}
