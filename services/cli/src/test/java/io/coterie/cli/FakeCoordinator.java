package io.coterie.cli;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import io.coterie.cli.payload.EcdsaVerifier;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.platform.payload.Payloads;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.CancelKeyOperationRequest;
import io.coterie.proto.custody.v1.CancelSigningRequest;
import io.coterie.proto.custody.v1.CreateKeyRequest;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.RefreshKeyRequest;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.ReshareKeyRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.grpc.Grpc;
import io.grpc.Server;
import io.grpc.Status;
import io.grpc.TlsServerCredentials;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.bouncycastle.asn1.ASN1EncodableVector;
import org.bouncycastle.asn1.ASN1Integer;
import org.bouncycastle.asn1.DERSequence;

/**
 * A coordinator with all the parties behind it, which answers honestly unless it is told to lie. It
 * checks nothing: the command is what is tested.
 */
final class FakeCoordinator implements AutoCloseable {
  private static final Set<Integer> EVERYBODY = Set.of(1, 2, 3, 4, 5, 6, 7, 8, 9);

  /** Applied to every answer about a key. */
  volatile UnaryOperator<Key> aboutKeys = UnaryOperator.identity();

  /** Applied to every answer about a signing. */
  volatile UnaryOperator<Signing> aboutSignings = UnaryOperator.identity();

  /** Applied to every page of a list. */
  volatile UnaryOperator<ListKeysResponse> aboutLists = UnaryOperator.identity();

  /** So many of the next calls for a signature get no answer. */
  final AtomicInteger unanswered = new AtomicInteger();

  /** Parties that answer challenges. */
  volatile Set<Integer> reachable = EVERYBODY;

  /** Whether it renews keys when it is asked to, or only says so. */
  volatile boolean renews = true;

  /** The calls, in order. */
  final List<String> calls = Collections.synchronizedList(new ArrayList<>());

  /** The intents that came with the calls, in order. */
  final List<SignedIntent> intents = Collections.synchronizedList(new ArrayList<>());

  /** Parties that say that they never sign a request that is cancelled. */
  volatile Set<Integer> never = Set.of();

  /** The last honest answer about a signing. */
  volatile Signing lastSigned = Signing.getDefaultInstance();

  /** Its health, which is good. */
  final HealthStatusManager health = new HealthStatusManager();

  private final TreeMap<String, TestHolding> keys = new TreeMap<>();
  private final Server server;

  FakeCoordinator(Path certificate, Path key) throws IOException {
    server =
        Grpc.newServerBuilderForPort(
                0,
                TlsServerCredentials.newBuilder()
                    .keyManager(certificate.toFile(), key.toFile())
                    .trustManager(certificate.toFile())
                    .clientAuth(TlsServerCredentials.ClientAuth.REQUIRE)
                    .build())
            .addService(new Keys())
            .addService(new Signings())
            .addService(health.getHealthService())
            .build()
            .start();
  }

  int port() {
    return server.getPort();
  }

  void honest() {
    aboutKeys = UnaryOperator.identity();
    aboutSignings = UnaryOperator.identity();
    aboutLists = UnaryOperator.identity();
    renews = true;
    reachable = EVERYBODY;
    calls.clear();
    intents.clear();
  }

  /** The honest answer about a key. */
  synchronized Key key(String name) {
    return keys.get(name).answer();
  }

  @Override
  public void close() throws InterruptedException {
    server.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
  }

  private synchronized <M extends Message> void answer(
      String call, StreamObserver<M> to, Supplier<M> answer) {
    calls.add(call);
    try {
      to.onNext(answer.get());
      to.onCompleted();
    } catch (RuntimeException e) {
      to.onError(e);
    }
  }

  private TestHolding holding(String name) {
    TestHolding held = keys.get(name);
    if (held == null) {
      throw Status.NOT_FOUND.withDescription("no such key").asRuntimeException();
    }
    return held;
  }

  private static List<Integer> ids(List<String> names) {
    return names.stream().map(name -> Integer.valueOf(name.substring(1))).sorted().toList();
  }

  private interface Decoder<I> {
    I decode(ByteString payload) throws InvalidProtocolBufferException;
  }

  private <I> I decode(SignedIntent intent, Decoder<I> decoder) {
    intents.add(intent);
    try {
      return decoder.decode(intent.getPayload());
    } catch (InvalidProtocolBufferException e) {
      throw Status.INVALID_ARGUMENT.withCause(e).asRuntimeException();
    }
  }

  private final class Keys extends KeyServiceGrpc.KeyServiceImplBase {
    @Override
    public void createKey(CreateKeyRequest request, StreamObserver<Key> to) {
      SignedIntent signed = request.getSignedIntent();
      answer(
          "createKey",
          to,
          () -> {
            KeyIntent intent = decode(signed, KeyIntent::parseFrom);
            TestHolding held =
                keys.computeIfAbsent(
                    intent.getKey(),
                    name -> {
                      TestHolding made =
                          new TestHolding(name, intent.getScheme(), intent.getRequestId());
                      made.complete(signed, 1, intent.getThreshold(), ids(intent.getPartiesList()));
                      return made;
                    });
            return aboutKeys.apply(held.answer());
          });
    }

    @Override
    public void getKey(GetKeyRequest request, StreamObserver<Key> to) {
      answer(
          "getKey",
          to,
          () ->
              aboutKeys.apply(
                  holding(request.getName()).answer(request.getChallenge(), reachable)));
    }

    @Override
    public void listKeys(ListKeysRequest request, StreamObserver<ListKeysResponse> to) {
      answer(
          "listKeys " + request.getPageSize(),
          to,
          () -> {
            String after = request.getPageToken();
            List<TestHolding> page =
                keys.tailMap(after, false).values().stream().limit(request.getPageSize()).toList();
            ListKeysResponse.Builder response = ListKeysResponse.newBuilder();
            page.forEach(held -> response.addKeys(aboutKeys.apply(held.answer())));
            if (!page.isEmpty() && !page.getLast().name.equals(keys.lastKey())) {
              response.setNextPageToken(page.getLast().name);
            }
            return aboutLists.apply(response.build());
          });
    }

    @Override
    public void refreshKey(RefreshKeyRequest request, StreamObserver<Key> to) {
      SignedIntent signed = request.getSignedIntent();
      answer(
          "refreshKey",
          to,
          () -> {
            RefreshIntent intent = decode(signed, RefreshIntent::parseFrom);
            TestHolding held = holding(intent.getKey());
            if (renews) {
              held.complete(
                  signed, intent.getEpoch() + 1, held.keyPublic.getThreshold(), held.holders());
            }
            return aboutKeys.apply(held.answer());
          });
    }

    @Override
    public void reshareKey(ReshareKeyRequest request, StreamObserver<Key> to) {
      SignedIntent signed = request.getSignedIntent();
      answer(
          "reshareKey",
          to,
          () -> {
            ReshareIntent intent = decode(signed, ReshareIntent::parseFrom);
            TestHolding held = holding(intent.getKey());
            if (renews) {
              held.complete(
                  signed,
                  intent.getEpoch() + 1,
                  intent.getThreshold(),
                  ids(intent.getPartiesList()));
            }
            return aboutKeys.apply(held.answer());
          });
    }

    @Override
    public void cancelKeyOperation(CancelKeyOperationRequest request, StreamObserver<Key> to) {
      answer("cancel", to, () -> aboutKeys.apply(holding(request.getName()).answer()));
    }
  }

  private final class Signings extends SigningServiceGrpc.SigningServiceImplBase {
    @Override
    public void sign(SignRequest request, StreamObserver<Signing> to) {
      if (unanswered.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
        calls.add("sign");
        return;
      }
      SignedIntent signed = request.getSignedIntent();
      answer(
          "sign",
          to,
          () -> {
            lastSigned = signing(signed);
            return aboutSignings.apply(lastSigned);
          });
    }

    @Override
    public void cancelSigning(CancelSigningRequest request, StreamObserver<Signing> to) {
      answer(
          "cancelSigning",
          to,
          () -> {
            CancelIntent intent = decode(request.getSignedIntent(), CancelIntent::parseFrom);
            return aboutSignings.apply(
                cancelled(intent.getRequestId(), intent.getKey(), intent.getReshareEpoch(), never));
          });
    }
  }

  /** The answer about a request of which parties say that they never sign it. */
  Signing cancelled(String requestId, String key, int reshareEpoch, Set<Integer> parties) {
    Signing.Builder signing =
        Signing.newBuilder()
            .setName(key + "/signings/1")
            .setRequestId(requestId)
            .setState(parties.size() >= 2 ? Signing.State.NOT_SIGNED : Signing.State.UNKNOWN);
    parties.stream()
        .sorted()
        .forEach(
            party -> {
              Receipt receipt =
                  Receipt.newBuilder()
                      .setKind(Receipt.Kind.NEVER)
                      .setInstallation(TestFiles.INSTALLATION)
                      .setKey(key)
                      .setKeyFingerprint(KeyFingerprint.of(holding(key).keyPublic))
                      .setReshareEpoch(reshareEpoch)
                      .setRequester("wallet")
                      .setRequestId(requestId)
                      .setParty(party)
                      .build();
              signing.addReceipts(
                  Receipts.signed(receipt, TestFiles.sign(party, Receipts.statement(receipt))));
            });
    return signing.build();
  }

  /** The receipt of a party that refuses a request. */
  Receipt refused(Signing request, String key, int reshareEpoch, int party) {
    return Receipt.newBuilder()
        .setKind(Receipt.Kind.REFUSED)
        .setInstallation(TestFiles.INSTALLATION)
        .setKey(key)
        .setKeyFingerprint(KeyFingerprint.of(holding(key).keyPublic))
        .setReshareEpoch(reshareEpoch)
        .setRequester("wallet")
        .setRequestId(request.getRequestId())
        .setIntentDigest(request.getIntentDigest())
        .setParty(party)
        .setReason("REFUSAL_REASON_ON_HOLD")
        .setUnixMs(1_800_000_000_000L)
        .build();
  }

  /** A receipt as that party signs it. */
  static SignedReceipt signed(int by, Receipt receipt) {
    return Receipts.signed(receipt, TestFiles.sign(by, Receipts.statement(receipt)));
  }

  private Signing signing(SignedIntent signed) {
    SigningIntent intent = decode(signed, SigningIntent::parseFrom);
    TestHolding held = holding(intent.getKey());
    if (!intent.getInstallation().equals(TestFiles.INSTALLATION)
        || !intent.getKeyFingerprint().equals(KeyFingerprint.of(held.keyPublic))) {
      throw Status.INVALID_ARGUMENT.withDescription("for another key").asRuntimeException();
    }
    KeyTarget target = KeyTarget.of(intent);
    ByteString publicKey = SchemeKeys.of(held.scheme).verifyingKey(held.keyPublic, target);
    DecodedPayload decoded;
    try {
      decoded = Payloads.decode(intent, publicKey);
    } catch (IntentException e) {
      throw Status.INVALID_ARGUMENT.withDescription(e.getMessage()).asRuntimeException();
    }
    ByteString signature = held.sign(target, decoded.toSign());
    Signing.Builder signing =
        Signing.newBuilder()
            .setName(intent.getKey() + "/signings/1")
            .setRequestId(intent.getRequestId())
            .setScheme(intent.getScheme())
            .setState(Signing.State.SIGNED)
            .setSignature(signature)
            .setIntentDigest(IntentVerifier.digest(signed.getPayload()))
            .addSigningSet("p1")
            .addSigningSet("p2")
            .setPublicKey(publicKey)
            .setDecoded(decoded.toProto());
    if (intent.getScheme() == Scheme.SCHEME_ECDSA_SECP256K1) {
      ASN1EncodableVector integers = new ASN1EncodableVector();
      integers.add(new ASN1Integer(new BigInteger(1, signature.substring(0, 32).toByteArray())));
      integers.add(new ASN1Integer(new BigInteger(1, signature.substring(32).toByteArray())));
      try {
        signing
            .setDigest(decoded.toSign())
            .setRecoveryId(EcdsaVerifier.recoveryId(publicKey, decoded.toSign(), signature))
            .setDerSignature(ByteString.copyFrom(new DERSequence(integers).getEncoded()));
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    }
    return signing.build();
  }
}
