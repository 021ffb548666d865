package io.coterie.acceptance.bench;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.InstallationCa;
import io.coterie.cli.profile.RequesterKeyFile;
import io.coterie.platform.intent.RequesterKeys;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.grpc.Grpc;
import io.grpc.Server;
import io.grpc.Status;
import io.grpc.TlsServerCredentials;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * {@code FOLDER COMMAND...}: runs a command beside a coordinator of this process that answers about
 * one attested key over TLS, with {@code COTERIE_PROFILE} naming a profile for it in the folder.
 * {@code .ci/wrapper} records the class cache of {@code bin/coterie} with it: an installation would
 * need PostgreSQL and the native core (docs/adr/0058).
 */
public final class CommandRehearsal {
  /** A recording takes some seconds, on a busy machine ten times as long. */
  private static final int PATIENCE_SECONDS = 120;

  private CommandRehearsal() {}

  public static void main(String[] args) {
    int exit = 1;
    try {
      exit = run(Path.of(args[0]).toAbsolutePath(), Arrays.asList(args).subList(1, args.length));
    } catch (IOException | GeneralSecurityException | RuntimeException e) {
      e.printStackTrace();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    System.exit(exit);
  }

  /** Runs a command and returns its exit code, or 1 if it does not end. */
  static int run(Path folder, List<String> command)
      throws IOException, GeneralSecurityException, InterruptedException {
    InstallationCa ca = InstallationCa.create(folder);
    Path requester = folder.resolve("requester.pem");
    RequesterKeyFile.create(RequesterKeyFile.Algorithm.ED25519, requester);
    RehearsedKey key = new RehearsedKey(RequesterKeyFile.read(RehearsedKey.REQUESTER, requester));
    Path trust = folder.resolve("trust.json");
    String publicKey = Files.readString(RequesterKeyFile.publicFile(requester));
    key.trust(RequesterKeys.publicKey(publicKey)).write(trust);

    Server server = server(ca, key);
    try {
      InstallationCa.Leaf client = ca.client(RehearsedKey.REQUESTER);
      Path profile =
          Files.writeString(
              folder.resolve("profile.properties"),
              """
              endpoint=localhost:%d
              ca=%s
              cert=%s
              key=%s
              requester=%s
              requester-key=%s
              trust=%s
              """
                  .formatted(
                      server.getPort(),
                      ca.certificateFile(),
                      client.certificate(),
                      client.key(),
                      RehearsedKey.REQUESTER,
                      requester,
                      trust));
      ProcessBuilder builder = new ProcessBuilder(command).inheritIO();
      builder.environment().put("COTERIE_PROFILE", profile.toString());
      Process process = builder.start();
      if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        return 1;
      }
      return process.exitValue();
    } finally {
      server.shutdownNow();
    }
  }

  private static Server server(InstallationCa ca, RehearsedKey key) throws IOException {
    InstallationCa.Leaf own = ca.server("coordinator");
    return Grpc.newServerBuilderForPort(
            0,
            TlsServerCredentials.newBuilder()
                .keyManager(own.certificate().toFile(), own.key().toFile())
                .trustManager(ca.clientsFile().toFile())
                .clientAuth(TlsServerCredentials.ClientAuth.REQUIRE)
                .build())
        .addService(new Keys(key))
        .addService(new HealthStatusManager().getHealthService())
        .build()
        .start();
  }

  private static final class Keys extends KeyServiceGrpc.KeyServiceImplBase {
    private final RehearsedKey key;

    Keys(RehearsedKey key) {
      this.key = key;
    }

    @Override
    public void listKeys(ListKeysRequest request, StreamObserver<ListKeysResponse> to) {
      Key answer = answer(ByteString.EMPTY);
      to.onNext(ListKeysResponse.newBuilder().addKeys(answer).build());
      to.onCompleted();
    }

    @Override
    public void getKey(GetKeyRequest request, StreamObserver<Key> to) {
      to.onNext(answer(request.getChallenge()));
      to.onCompleted();
    }

    private Key answer(ByteString challenge) {
      try {
        return key.answer(challenge);
      } catch (GeneralSecurityException e) {
        throw Status.INTERNAL.withCause(e).asRuntimeException();
      }
    }
  }
}
