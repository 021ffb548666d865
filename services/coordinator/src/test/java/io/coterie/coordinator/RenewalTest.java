package io.coterie.coordinator;

import static io.coterie.coordinator.EcdsaTest.intent;
import static io.coterie.coordinator.TestInstallation.keys;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Order;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** An ECDSA key of p1, p2 and p3 with threshold 2, whose shares the tests of a subclass renew. */
abstract class RenewalTest {
  static final String KEY = "keys/hot";

  /** Of a caller whose request takes one session, ms. */
  static final int ONE_SESSION = 20_000;

  /** Of a caller whose request takes several sessions, ms. */
  static final int PATIENCE = 60_000;

  private final int parties;
  private final ProtocolId renewal;
  @TempDir Path folder;
  TestInstallation installation;
  ManagedChannel client;
  Key key;

  /** Parties p1 to pn are connected; {@code renewal} is the protocol under test. */
  RenewalTest(int parties, ProtocolId renewal) {
    this.parties = parties;
    this.renewal = renewal;
  }

  @BeforeEach
  void start() {
    installation =
        new TestInstallation(
                folder,
                parties,
                "--coterie.coordinator.keygen.min=300ms",
                "--coterie.coordinator.keygen.initial=500ms",
                "--coterie.coordinator.limits.clock-skew=200ms")
            .start();
    client = installation.backend();
    key = installation.createEcdsaKey(client, "hot", 2, "p1", "p2", "p3");
    installation.parties.orders.clear();
  }

  @AfterEach
  void stop() {
    installation.close();
  }

  KeyServiceGrpc.KeyServiceBlockingStub patient(int patienceMs) {
    return KeyServiceGrpc.newBlockingStub(client)
        .withDeadlineAfter(patienceMs, TimeUnit.MILLISECONDS);
  }

  Key get() {
    return keys(client).getKey(GetKeyRequest.newBuilder().setName(KEY).build());
  }

  /** Signs with the shares of the moment, and checks the signature under the key as created. */
  Signing signs(int number) {
    SigningIntent intent = intent("hot", number).build();
    Signing signing = signing(client).sign(sign(installation.wallet.sign(intent)));
    assertThat(TestEcdsa.verifies(key.getPublicKey(), intent.getDigest(), signing.getSignature()))
        .isTrue();
    return signing;
  }

  /** The orders of the protocol under test. */
  List<Order> orders() {
    return installation.parties.orders.stream().filter(o -> o.getProtocol() == renewal).toList();
  }
}
