package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.acceptance.cluster.InstallationCa;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.TlsServerCredentials;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.protobuf.services.HealthStatusManager;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class InstallationCaTest {
  @TempDir Path folder;

  @Test
  void itsCertificatesMakeAMutualTlsConnectionAndAnothersDoNot() throws Exception {
    InstallationCa ours = InstallationCa.create(folder.resolve("ours"));
    InstallationCa strange = InstallationCa.create(folder.resolve("strange"));
    InstallationCa.Leaf server = ours.server("coordinator");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(server.key())))
        .isEqualTo("rw-------");
    Server running = start(ours, server);
    try {
      check(running.getPort(), ours, ours.client("wallet"));
      // The edge has one for each purpose.
      check(running.getPort(), ours, ours.client("edge-client", "edge"));
      assertThatThrownBy(() -> check(running.getPort(), ours, strange.client("wallet")))
          .isInstanceOf(StatusRuntimeException.class);
      assertThatThrownBy(() -> check(running.getPort(), strange, ours.client("wallet-2")))
          .isInstanceOf(StatusRuntimeException.class);
      // A server's certificate is no client's.
      assertThatThrownBy(() -> check(running.getPort(), ours, server))
          .isInstanceOf(StatusRuntimeException.class);
    } finally {
      running.shutdownNow();
    }
  }

  @Test
  void noCertificateOfAnotherPurposePosesAsAServer() throws Exception {
    InstallationCa ours = InstallationCa.create(folder.resolve("ours"));
    InstallationCa.Leaf wallet = ours.client("wallet");
    Server genuine = start(ours, ours.server("coordinator"));
    try {
      check(genuine.getPort(), ours, wallet);
    } finally {
      genuine.shutdownNow();
    }
    // Each of them has the name by which the client calls, or is of a member.
    for (InstallationCa.Leaf leaf :
        List.of(ours.management("party-1"), ours.client("client", "localhost"), ours.party())) {
      Server posing = start(ours, leaf);
      try {
        assertThatThrownBy(() -> check(posing.getPort(), ours, wallet))
            .as(leaf.certificate().toString())
            .isInstanceOf(StatusRuntimeException.class);
      } finally {
        posing.shutdownNow();
      }
    }
  }

  private static Server start(InstallationCa ca, InstallationCa.Leaf server) throws Exception {
    return Grpc.newServerBuilderForPort(
            0,
            TlsServerCredentials.newBuilder()
                .keyManager(server.certificate().toFile(), server.key().toFile())
                .trustManager(ca.clientsFile().toFile())
                .clientAuth(TlsServerCredentials.ClientAuth.REQUIRE)
                .build())
        .addService(new HealthStatusManager().getHealthService())
        .build()
        .start();
  }

  private static void check(int port, InstallationCa ca, InstallationCa.Leaf client)
      throws Exception {
    ManagedChannel channel =
        Grpc.newChannelBuilder(
                "localhost:" + port,
                TlsChannelCredentials.newBuilder()
                    .trustManager(ca.certificateFile().toFile())
                    .keyManager(client.certificate().toFile(), client.key().toFile())
                    .build())
            .build();
    try {
      HealthGrpc.newBlockingStub(channel).check(HealthCheckRequest.getDefaultInstance());
    } finally {
      channel.shutdownNow();
    }
  }
}
