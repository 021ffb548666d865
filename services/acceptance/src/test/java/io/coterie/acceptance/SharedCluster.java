package io.coterie.acceptance;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.proto.custody.v1.Key;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * One 2-of-3 installation in this JVM with the key {@code shared}, for all tests that leave it as
 * they found it. Started when the first test asks for it, stopped with the JVM. Test JVMs run side
 * by side, each with its own.
 */
final class SharedCluster implements ParameterResolver {
  static final String KEY = "shared";

  /** A running installation, with a key and a verifier. */
  record Running(Cluster cluster, Key key, OutsideVerifier outside) implements AutoCloseable {
    static Running start() {
      Cluster cluster =
          Cluster.of(3)
              .threshold(2)
              .folder(Path.of("target", "cluster-shared-" + ProcessHandle.current().pid()))
              .progress(line -> System.out.println("progress: shared cluster: " + line))
              .start();
      return new Running(cluster, cluster.createKey(KEY), OutsideVerifier.start(ProjectRoot.PATH));
    }

    WalletBackend wallet() {
      return cluster.wallet();
    }

    @Override
    public void close() {
      outside.close();
      cluster.close();
    }
  }

  private static @Nullable Running running;

  /**
   * Until the JVM ends: test classes that run in processes side by side are each a run of their own
   * to JUnit.
   */
  private static synchronized Running running() {
    if (running == null) {
      Running started = Running.start();
      Runtime.getRuntime().addShutdownHook(new Thread(started::close, "shared-cluster"));
      running = started;
    }
    return running;
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == Running.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return running();
  }
}
