package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.fails;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.ListSigningsRequest;
import io.coterie.proto.custody.v1.ListSigningsResponse;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.proto.custody.v1.WatchSigningRequest;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.bouncycastle.asn1.x509.GeneralName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FirstLightTest {
  @TempDir Path folder;

  @Test
  void a_key_is_created_and_signs_and_a_repeat_gets_the_same_signature() {
    try (TestInstallation installation = new TestInstallation(folder, 3).start()) {
      ManagedChannel client = installation.backend();
      Key key = installation.createKey(client, "hot", 2, 3);
      assertThat(key.getState()).isEqualTo(Key.State.ACTIVE);
      assertThat(key.getPartiesList()).containsExactly("p1", "p2", "p3");

      SignedIntent intent =
          installation.wallet.sign(TestInstallation.signingIntent("hot", "pay 5").build());
      Signing signing = TestInstallation.signing(client).sign(TestInstallation.sign(intent));

      assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
      assertThat(signing.getSigningSetList()).hasSize(2);
      assertThat(
              TestBls.verifies(
                  key.getPublicKey(), "pay 5".getBytes(), signing.getSignature().toByteArray()))
          .isTrue();
      assertThat(TestInstallation.signing(client).sign(TestInstallation.sign(intent)))
          .isEqualTo(signing);
    }
  }

  @Test
  void the_signings_of_a_key_are_listed_for_those_who_may_read_it() {
    try (TestInstallation installation = new TestInstallation(folder, 3).start()) {
      ManagedChannel client = installation.backend();
      installation.createKey(client, "hot", 2, 3);
      installation.createKey(client, "public-a", 2, 3);
      SigningServiceGrpc.SigningServiceBlockingStub signing = TestInstallation.signing(client);
      List<Signing> made = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        SignedIntent intent =
            installation.wallet.sign(TestInstallation.signingIntent("hot", "pay " + i).build());
        made.addFirst(signing.sign(TestInstallation.sign(intent)));
      }
      List<Signing> listed = new ArrayList<>();
      String token = "";
      int pages = 0;
      do {
        ListSigningsResponse page = signing.listSignings(page("keys/hot", 2, token));
        listed.addAll(page.getSigningsList());
        token = page.getNextPageToken();
        pages++;
      } while (!token.isEmpty());
      assertThat(listed).isEqualTo(made);
      assertThat(pages).isEqualTo(3);

      String second = signing.listSignings(page("keys/hot", 1, "")).getNextPageToken();
      fails(
          ErrorReason.PAGE_TOKEN_INVALID,
          () -> signing.listSignings(page("keys/public-a", 1, second)));
      fails(ErrorReason.PAGE_SIZE_INVALID, () -> signing.listSignings(page("keys/hot", -1, "")));
      fails(ErrorReason.RESOURCE_NAME_INVALID, () -> signing.listSignings(page("hot", 1, "")));
      ManagedChannel auditor = installation.client("auditor");
      assertThat(
              TestInstallation.signing(auditor)
                  .listSignings(page("keys/public-a", 0, ""))
                  .getSigningsCount())
          .isZero();
      fails(
          ErrorReason.CLIENT_NOT_ALLOWED,
          () -> TestInstallation.signing(auditor).listSignings(page("keys/hot", 0, "")));
    }
  }

  @Test
  void signings_of_another_requester_are_not_there_for_those_who_may_not_read_them() {
    GeneralName desk = new GeneralName(GeneralName.dNSName, "desk.example");
    GeneralName control = new GeneralName(GeneralName.dNSName, "control.example");
    try (TestInstallation installation =
        new TestInstallation(
                folder,
                3,
                "--coterie.coordinator.clients[2].name=desk",
                "--coterie.coordinator.clients[2].certificates[0]=dns:desk.example",
                "--coterie.coordinator.clients[2].submit-for[0]=treasury",
                "--coterie.coordinator.clients[2].read-keys[0]=keys/*",
                "--coterie.coordinator.clients[3].name=control",
                "--coterie.coordinator.clients[3].certificates[0]=dns:control.example",
                "--coterie.coordinator.clients[3].read-keys[0]=keys/*",
                "--coterie.coordinator.clients[3].read-signings[0]=*")
            .start()) {
      ManagedChannel backend = installation.backend();
      installation.createKey(backend, "hot", 2, 3);
      Signing made =
          TestInstallation.signing(backend)
              .sign(
                  TestInstallation.sign(
                      installation.wallet.sign(
                          TestInstallation.signingIntent("hot", "pay 5").build())));
      SigningServiceGrpc.SigningServiceBlockingStub others =
          TestInstallation.signing(installation.client("desk", desk));
      GetSigningRequest get = GetSigningRequest.newBuilder().setName(made.getName()).build();
      fails(ErrorReason.SIGNING_NOT_FOUND, () -> others.getSigning(get));
      fails(
          ErrorReason.SIGNING_NOT_FOUND,
          () ->
              others
                  .watchSigning(WatchSigningRequest.newBuilder().setName(made.getName()).build())
                  .next());
      assertThat(others.listSignings(page("keys/hot", 9, "")).getSigningsList()).isEmpty();
      for (ManagedChannel reader : List.of(backend, installation.client("control", control))) {
        SigningServiceGrpc.SigningServiceBlockingStub stub = TestInstallation.signing(reader);
        assertThat(stub.getSigning(get)).isEqualTo(made);
        assertThat(stub.listSignings(page("keys/hot", 9, "")).getSigningsList())
            .containsExactly(made);
      }
    }
  }

  private static ListSigningsRequest page(String key, int size, String token) {
    return ListSigningsRequest.newBuilder()
        .setParent(key)
        .setPageSize(size)
        .setPageToken(token)
        .build();
  }
}
