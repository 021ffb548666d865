package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.HotSpotDiagnosticMXBean;
import io.coterie.channel.ChannelException;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SendMode;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A body that could not be sent does not stay in memory. */
class WipingTest {
  private static final int MARK_BYTES = 32;

  @TempDir Path directory;

  @ParameterizedTest
  @EnumSource(SendMode.class)
  void bodyThatCouldNotBeSentIsWiped(SendMode mode) throws Exception {
    try (TestServer server = new TestServer();
        TestGroup group =
            new TestGroup(
                server, 3, config -> config.withSendMode(mode).withTiming(Timings.impatient()))) {
      // Nobody to send to: no session can be opened with accounts that the service does not have.
      server.accounts.remove(group.member(1).entry().aci());
      server.accounts.remove(group.member(2).entry().aci());
      group.member(0).start();
      byte[] body = new byte[1000];
      new SecureRandom().nextBytes(body);
      // The mark is kept inverted, so that the test itself is not found.
      byte[] mark = Arrays.copyOfRange(body, 100, 100 + MARK_BYTES);
      for (int i = 0; i < mark.length; i++) {
        mark[i] = (byte) ~mark[i];
      }
      assertThat(found(mark)).as("the search finds what is there").isTrue();
      assertThatThrownBy(
              () ->
                  group
                      .member(0)
                      .channel
                      .broadcast(
                          group.roster.members(), body, SecureChannel.SendOptions.online(null))
                      .toCompletableFuture()
                      .get(TestGroup.PATIENCE_SECONDS, TimeUnit.SECONDS))
          .hasCauseInstanceOf(ChannelException.class);
      Arrays.fill(body, (byte) 0);
      assertThat(found(mark)).isFalse();
    }
  }

  /** Whether an array of this process, in use or not, has the bytes whose complement is given. */
  private boolean found(byte[] inverted) throws IOException {
    Path dump = directory.resolve(System.nanoTime() + ".hprof");
    ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
        .dumpHeap(dump.toString(), false);
    try (FileChannel file = FileChannel.open(dump)) {
      MappedByteBuffer bytes = file.map(FileChannel.MapMode.READ_ONLY, 0, file.size());
      for (int at = 0; at + inverted.length <= bytes.limit(); at++) {
        int same = 0;
        while (same < inverted.length && bytes.get(at + same) == (byte) ~inverted[same]) {
          same++;
        }
        if (same == inverted.length) {
          return true;
        }
      }
      return false;
    } finally {
      java.nio.file.Files.delete(dump);
    }
  }
}
