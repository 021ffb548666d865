package io.coterie.acceptance.cluster;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.protobuf.util.Timestamps;
import io.coterie.cli.profile.RequesterKeyFile;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.attestation.AttestationException;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.KeySplit;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.core.v1.SplitKey;
import io.coterie.proto.custody.v1.CreateKeyRequest;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.ImportKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.RefreshKeyRequest;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.ReshareKeyRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.trust.Member;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustFile;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;

/** A requester: its own key for intents, its own client certificate, calls over gRPC. */
public final class WalletBackend implements AutoCloseable {
  private static final Duration INTENT_VALIDITY = Duration.ofMinutes(10);
  private static final Duration DEADLINE = Duration.ofSeconds(60);

  /** Three parties compute for some ten seconds, and on a busy machine for a minute. */
  private static final Duration IMPORT_WAIT = Duration.ofSeconds(120);

  /** A coordinator or edge that vanished without a word is noticed after both. */
  private static final Duration SILENCE = Duration.ofSeconds(20);

  private static final Duration KEEP_ALIVE_ANSWER = Duration.ofSeconds(5);

  private final String name;
  private final Path trustFile;
  private final InstallationCa ca;
  private final InstallationCa.Leaf certificate;
  private final ConcurrentMap<String, Integer> reshares = new ConcurrentHashMap<>();
  private final NamedIntents intents;
  private final ManagedChannel channel;

  public WalletBackend(
      String name,
      Path keyFile,
      String installation,
      Path trustFile,
      InstallationCa ca,
      InstallationCa.Leaf certificate,
      String endpoint) {
    this.name = name;
    this.trustFile = trustFile;
    this.ca = ca;
    this.certificate = certificate;
    this.intents =
        new NamedIntents(
            RequesterKeyFile.read(name, keyFile),
            installation,
            this::fingerprint,
            key -> reshares.getOrDefault(key, 0));
    try {
      this.channel =
          Grpc.newChannelBuilder(
                  endpoint,
                  TlsChannelCredentials.newBuilder()
                      .trustManager(ca.certificateFile().toFile())
                      .keyManager(certificate.certificate().toFile(), certificate.key().toFile())
                      .build())
              .keepAliveTime(SILENCE.toNanos(), TimeUnit.NANOSECONDS)
              .keepAliveTimeout(KEEP_ALIVE_ANSWER.toNanos(), TimeUnit.NANOSECONDS)
              .build();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  public String name() {
    return name;
  }

  public InstallationCa.Leaf certificate() {
    return certificate;
  }

  /** Mutual TLS with this requester's certificate, for whatever else speaks with it. */
  public SSLContext tls() {
    return ca.tls(certificate);
  }

  /** Signs intents as this requester. */
  public NamedIntents intents() {
    return intents;
  }

  public ManagedChannel channel() {
    return channel;
  }

  public KeyServiceGrpc.KeyServiceBlockingStub keys() {
    return KeyServiceGrpc.newBlockingStub(channel)
        .withDeadlineAfter(DEADLINE.toMillis(), TimeUnit.MILLISECONDS);
  }

  public GroupServiceGrpc.GroupServiceBlockingStub groups() {
    return GroupServiceGrpc.newBlockingStub(channel)
        .withDeadlineAfter(DEADLINE.toMillis(), TimeUnit.MILLISECONDS);
  }

  public SigningServiceGrpc.SigningServiceBlockingStub signings() {
    return SigningServiceGrpc.newBlockingStub(channel)
        .withDeadlineAfter(DEADLINE.toMillis(), TimeUnit.MILLISECONDS);
  }

  public SigningServiceGrpc.SigningServiceFutureStub signingsAsync() {
    return SigningServiceGrpc.newFutureStub(channel)
        .withDeadlineAfter(DEADLINE.toMillis(), TimeUnit.MILLISECONDS);
  }

  /** The same key, once its parties' word for it is checked as every client should. */
  public Key attested(Key key) {
    try {
      AttestedKey attested = AttestedKey.of(key.getName(), key, trust());
      reshares.merge(key.getName(), attested.reshareEpoch(), Math::max);
      return key;
    } catch (AttestationException e) {
      throw new IllegalStateException(key.getName() + ": " + e.getMessage(), e);
    }
  }

  /**
   * Fingerprint of a key by its resource name; empty if there is none that this requester may read.
   */
  public Optional<ByteString> fingerprint(String key) {
    try {
      Key found = keys().getKey(GetKeyRequest.newBuilder().setName(key).build());
      return found.getState() == Key.State.ACTIVE
          ? Optional.of(attested(found).getFingerprint())
          : Optional.empty();
    } catch (StatusRuntimeException e) {
      return Optional.empty();
    }
  }

  /** Creates a BLS key and waits for it. */
  public Key createKey(String key, int threshold, List<String> parties) {
    return createKey(key, Scheme.SCHEME_BLS12381, threshold, parties);
  }

  /** Creates an ECDSA key and waits for it. */
  public Key createEcdsaKey(String key, int threshold, List<String> parties) {
    return createKey(key, Scheme.SCHEME_ECDSA_SECP256K1, threshold, parties);
  }

  /** Creates a key and waits for it. */
  public Key createKey(String key, Scheme scheme, int threshold, List<String> parties) {
    return attested(
        keys()
            .createKey(
                request(
                    intents.sign(keyIntent(key, threshold, parties).setScheme(scheme).build()))));
  }

  /** Has all parties of the installation take over an Ed25519 key, and waits until they have. */
  public Key importKey(String key, byte[] seed) {
    return importKey(key, seed, parties());
  }

  /**
   * Has the parties with the lowest ids take over an Ed25519 key, and waits until they have. The
   * more pairs they make, the longer it takes.
   *
   * @param count of the parties
   */
  public Key importKey(String key, byte[] seed, int count) {
    return importKey(key, seed, parties().subList(0, count));
  }

  private Key importKey(String key, byte[] seed, List<Member> parties) {
    String name = "keys/" + key;
    SplitKey.Builder split =
        SplitKey.newBuilder().setKeyId(name).setSecret(ByteString.copyFrom(seed));
    for (Member party : parties) {
      split.addParties(
          Party.newBuilder()
              .setId(party.partyId())
              .setEvidenceKey(ByteString.copyFrom(party.evidenceKey())));
    }
    KeySplit made =
        NativeMpcCore.load().call(ImportCall.newBuilder().setSplitKey(split).build()).getKeySplit();
    List<ByteString> shares = made.getSharesList().stream().map(PartyBytes::getValue).toList();
    ImportIntent intent =
        ImportIntent.newBuilder()
            .setRequestId(RequestId.next())
            .setKey(name)
            .setScheme(Scheme.SCHEME_ED25519_EXACT)
            .setThreshold(IntentVerifier.IMPORT_THRESHOLD)
            .addAllParties(parties.stream().map(Member::name).toList())
            .setPublicKey(made.getKeyPublic().getPublicKey())
            .addAllShareDigests(shares.stream().map(IntentVerifier::digest).toList())
            .setPurpose("acceptance")
            .setNotAfter(notAfter())
            .build();
    ImportKeyRequest request =
        ImportKeyRequest.newBuilder()
            .setSignedIntent(intents.sign(intent))
            .addAllEncryptedShares(shares)
            .build();
    return attested(untilMade(() -> keys().importKey(request)));
  }

  /** Asks again for what was still being made when the time of a call was over. */
  private static Key untilMade(Supplier<Key> call) {
    long end = System.nanoTime() + IMPORT_WAIT.toNanos();
    while (true) {
      try {
        return call.get();
      } catch (StatusRuntimeException e) {
        if (e.getStatus().getCode() != Status.Code.UNAVAILABLE || System.nanoTime() > end) {
          throw e;
        }
      }
    }
  }

  private List<Member> parties() {
    return trust().roster().members().stream()
        .filter(member -> member.role() == Member.Role.PARTY)
        .sorted(Comparator.comparingInt(Member::partyId))
        .toList();
  }

  /** Read each time: a test may replace it. */
  private Trust trust() {
    try {
      return TrustFile.read(trustFile).verified().trust();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Gives the parties of an ECDSA key new shares and waits until all have them. */
  public Key refreshKey(String key, int epoch) {
    return refreshKey(key, Scheme.SCHEME_ECDSA_SECP256K1, epoch);
  }

  /** Gives the parties of a key new shares and waits until all have them. */
  public Key refreshKey(String key, Scheme scheme, int epoch) {
    return attested(
        keys()
            .refreshKey(
                RefreshKeyRequest.newBuilder()
                    .setSignedIntent(
                        intents.sign(refreshIntent(key, epoch).setScheme(scheme).build()))
                    .build()));
  }

  /** Gives shares of an ECDSA key to these parties and waits until all have them. */
  public Key reshareKey(Key key, int threshold, List<String> parties) {
    return attested(
        keys()
            .reshareKey(
                ReshareKeyRequest.newBuilder()
                    .setSignedIntent(intents.sign(reshareIntent(key, threshold, parties).build()))
                    .build()));
  }

  /** Signs what an intent says and waits for the signature. */
  public Signing sign(SigningIntent.Builder intent) {
    return signings().sign(signRequest(intents.sign(intent.build())));
  }

  /** Signs a message and waits for the signature. */
  public Signing sign(String key, byte[] message) {
    return sign(signingIntent(key, message));
  }

  public Signing sign(String key, String message) {
    return sign(key, message.getBytes(StandardCharsets.UTF_8));
  }

  /** An intent to create {@code keys/key}, with a fresh request id. */
  public static KeyIntent.Builder keyIntent(String key, int threshold, List<String> parties) {
    return KeyIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setKey("keys/" + key)
        .setScheme(Scheme.SCHEME_BLS12381)
        .setThreshold(threshold)
        .addAllParties(parties)
        .setPurpose("acceptance")
        .setNotAfter(notAfter());
  }

  /** An intent to sign a message with {@code keys/key}, a BLS key, with a fresh request id. */
  public static SigningIntent.Builder signingIntent(String key, byte[] message) {
    return signingIntent(key, Scheme.SCHEME_BLS12381).setMessage(ByteString.copyFrom(message));
  }

  /** An intent to sign something with {@code keys/key}, an ECDSA key, with a fresh request id. */
  public static SigningIntent.Builder ecdsaIntent(String key, Integer... path) {
    return signingIntent(key, Scheme.SCHEME_ECDSA_SECP256K1).addAllDerivationPath(List.of(path));
  }

  /** An intent to sign with {@code keys/key}, without what is to be signed. */
  public static SigningIntent.Builder signingIntent(String key, Scheme scheme) {
    return SigningIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setKey("keys/" + key)
        .setScheme(scheme)
        .setPurpose("acceptance")
        .setNotAfter(notAfter());
  }

  /** An intent to refresh {@code keys/key}, an ECDSA key, with a fresh request id. */
  public static RefreshIntent.Builder refreshIntent(String key, int epoch) {
    return RefreshIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setKey("keys/" + key)
        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
        .setEpoch(epoch)
        .setPurpose("acceptance")
        .setNotAfter(notAfter());
  }

  /** An intent to give shares of a key to these parties, with a fresh request id. */
  public static ReshareIntent.Builder reshareIntent(Key key, int threshold, List<String> parties) {
    return ReshareIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setKey(key.getName())
        .setScheme(key.getScheme())
        .setEpoch(key.getEpoch())
        .setThreshold(threshold)
        .addAllParties(parties)
        .setPublicKey(key.getPublicKey())
        .setPurpose("acceptance")
        .setNotAfter(notAfter());
  }

  /** When an intent that is signed now ends. */
  public static Timestamp notAfter() {
    return Timestamps.fromMillis(System.currentTimeMillis() + INTENT_VALIDITY.toMillis());
  }

  public static CreateKeyRequest request(SignedIntent intent) {
    return CreateKeyRequest.newBuilder().setSignedIntent(intent).build();
  }

  public static SignRequest signRequest(SignedIntent intent) {
    return SignRequest.newBuilder().setSignedIntent(intent).build();
  }

  @Override
  public void close() {
    channel.shutdownNow();
    try {
      channel.awaitTermination(1, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
