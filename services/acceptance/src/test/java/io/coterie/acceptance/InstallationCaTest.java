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
    Server running =
        Grpc.newServerBuilderForPort(
                0,
                TlsServerCredentials.newBuilder()
                    .keyManager(server.certificate().toFile(), server.key().toFile())
                    .trustManager(ours.certificateFile().toFile())
                    .clientAuth(TlsServerCredentials.ClientAuth.REQUIRE)
                    .build())
            .addService(new HealthStatusManager().getHealthService())
            .build()
            .start();
    try {
      check(running.getPort(), ours, ours.client("wallet"));
      // A service that calls others has one certificate for both.
      check(running.getPort(), ours, ours.service("coterie-edge", "edge", "10.0.0.1"));
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
