package io.coterie.acceptance;

import static io.coterie.acceptance.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.Service;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.cli.Coterie;
import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import picocli.CommandLine;

/** The coordinator's database is gone with all its copies, and a client has the list of keys. */
@Timeout(600)
class LostDatabaseTest {
  private static final String NAME = "lost";
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  @Test
  void keysAreWrittenAnewFromWhatAClientHasKept() throws Exception {
    try (Cluster cluster =
            Cluster.of(3).threshold(2).folder(Path.of("target", "cluster-lost-database")).start();
        OutsideVerifier outside = OutsideVerifier.start(ProjectRoot.PATH)) {
      WalletBackend wallet = cluster.wallet();
      List<String> holders = cluster.partyNames().subList(0, 2);
      Key before = wallet.reshareKey(cluster.createKey(NAME), 2, holders);
      String kept = list(cluster);
      Service coordinator = cluster.coordinator();
      Path file = coordinator.folder().resolve("restore-keys.json");

      coordinator.close();
      forgetKeys(cluster);
      // A list that somebody has changed brings nothing back.
      Files.writeString(file, kept.replace("\"threshold\": 2", "\"threshold\": 1"));
      coordinator.restart(PATIENCE);
      refused(ErrorReason.KEY_NOT_FOUND, () -> key(wallet));
      assertThat(file).exists();

      coordinator.close();
      Files.writeString(file, kept);
      coordinator.restart(PATIENCE);
      Key after = key(wallet);
      assertThat(after).isEqualTo(before.toBuilder().setCreateTime(after.getCreateTime()).build());
      assertThat(file).doesNotExist();

      byte[] message = "after the loss".getBytes(StandardCharsets.UTF_8);
      Signing signing = wallet.sign(NAME, message);
      byte[] publicKey = before.getPublicKey().toByteArray();
      assertThat(outside.verify(publicKey, message, signing.getSignature().toByteArray()).valid())
          .isTrue();
      Key refreshed = wallet.refreshKey(NAME, Scheme.SCHEME_BLS12381, after.getEpoch());
      assertThat(refreshed.getEpoch()).isEqualTo(after.getEpoch() + 1);
    }
  }

  private static Key key(WalletBackend wallet) {
    return wallet.keys().getKey(GetKeyRequest.newBuilder().setName("keys/" + NAME).build());
  }

  /** As an operator keeps it. */
  private static String list(Cluster cluster) {
    StringWriter out = new StringWriter();
    CommandLine line = Coterie.commandLine();
    line.setOut(new PrintWriter(out, true));
    String profile = cluster.writeProfile(Cluster.WALLET).toString();
    assertThat(line.execute("keys", "list", "-o", "json", "--profile", profile)).isZero();
    return out.toString();
  }

  private static void forgetKeys(Cluster cluster) throws Exception {
    try (Connection connection =
            DriverManager.getConnection(cluster.database().url("coordinator"));
        Statement statement = connection.createStatement()) {
      statement.execute("truncate keys, key_renewals, key_exclusions, signings");
    }
  }
}
