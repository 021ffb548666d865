package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Ten parties; keys of every shape among some or all of them. */
class ThresholdsTest {
  private static Cluster cluster;
  private static OutsideVerifier outside;

  @BeforeAll
  static void start() {
    cluster =
        Cluster.of(10)
            .keysOfOneParty()
            .folder(Path.of("target", "cluster-ten"))
            .progress(line -> System.out.println("progress: ten parties: " + line))
            .start();
    outside = OutsideVerifier.start(ProjectRoot.PATH);
  }

  @AfterAll
  static void stop() {
    if (outside != null) {
      outside.close();
    }
    if (cluster != null) {
      cluster.close();
    }
  }

  @ParameterizedTest(name = "{0} of {1}")
  @CsvSource({"1,1", "1,2", "2,2", "2,3", "3,5", "5,5", "7,10", "10,10"})
  void keysOfEveryShapeSign(int threshold, int parties) {
    List<String> holders = cluster.partyNames().subList(10 - parties, 10);
    Key key =
        cluster.wallet().createKey("k-%d-%d".formatted(threshold, parties), threshold, holders);
    assertThat(key.getState()).isEqualTo(Key.State.ACTIVE);
    assertThat(key.getPartiesList()).isEqualTo(holders);
    for (int i = 0; i < 3; i++) {
      String message = "message " + i;
      Signing signing = cluster.wallet().sign(key.getName().substring("keys/".length()), message);
      assertThat(signing.getSigningSetList()).hasSizeGreaterThanOrEqualTo(threshold);
      assertThat(holders).containsAll(signing.getSigningSetList());
      assertThat(
              outside
                  .verify(
                      key.getPublicKey().toByteArray(),
                      message.getBytes(StandardCharsets.UTF_8),
                      signing.getSignature().toByteArray(),
                      key.getProofOfPossession().toByteArray())
                  .valid())
          .isTrue();
    }
  }
}
