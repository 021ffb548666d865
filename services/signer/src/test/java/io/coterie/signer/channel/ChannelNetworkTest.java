package io.coterie.signer.channel;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.channel.ChannelException;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionCancel;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.signer.FakeCore;
import io.coterie.signer.Installation;
import io.coterie.signer.party.ThreadWorkPool;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.session.SessionTelemetry;
import io.coterie.signer.telemetry.SignerMetrics;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ChannelNetworkTest {
  @TempDir Path folder;
  private final Member alpha =
      new Member(
          "alpha", Member.Role.PARTY, 1, "", UUID.randomUUID(), 1, new byte[33], new byte[32]);
  private final Member bravo =
      new Member(
          "bravo", Member.Role.PARTY, 2, "", UUID.randomUUID(), 1, new byte[33], new byte[32]);
  private final SimpleMeterRegistry meters = new SimpleMeterRegistry();
  private final SessionTelemetry telemetry = new SignerMetrics(meters, "alpha", "here");
  private final Line line = new Line();
  private final WorkPool pool = new ThreadWorkPool("alpha", 1, Duration.ZERO);
  private final ChannelNetwork network = new ChannelNetwork(line, pool, telemetry, false);

  /** A channel that fails as often as it is told. */
  private final class Line implements SecureChannel {
    final List<CompletionStage<Void>> answers = new ArrayList<>();
    final List<byte[]> bodies = new CopyOnWriteArrayList<>();
    final List<byte[]> copies = new CopyOnWriteArrayList<>();
    final List<List<Member>> broadcasts = new CopyOnWriteArrayList<>();
    final List<Member> sentTo = new CopyOnWriteArrayList<>();

    @Override
    public Member self() {
      return alpha;
    }

    @Override
    public Roster roster() {
      return new Roster("test", 1, List.of(alpha, bravo));
    }

    @Override
    public void onMessage(Consumer<InboundMessage> receiver) {}

    @Override
    public void start() {}

    @Override
    public CompletionStage<Void> established(Collection<Member> members) {
      return CompletableFuture.completedFuture(null);
    }

    @Override
    public Set<Member> reachable() {
      return Set.of(bravo);
    }

    @Override
    public CompletionStage<Void> broadcast(
        Collection<Member> recipients, byte[] body, SendOptions options) {
      broadcasts.add(List.copyOf(recipients));
      return send(bravo, body, options);
    }

    @Override
    public synchronized CompletionStage<Void> send(
        Member recipient, byte[] body, SendOptions options) {
      assertThat(options.online()).isTrue();
      sentTo.add(recipient);
      bodies.add(body);
      copies.add(body.clone());
      return answers.isEmpty() ? CompletableFuture.completedFuture(null) : answers.removeFirst();
    }

    @Override
    public void close() {}
  }

  @AfterEach
  void close() {
    pool.close();
  }

  private static PartyMessage message() {
    return PartyMessage.newBuilder()
        .setCancel(
            SessionCancel.newBuilder()
                .setSessionId(com.google.protobuf.ByteString.copyFrom(new byte[] {1, 2, 3})))
        .build();
  }

  private static CompletionStage<Void> failed(ChannelException.Cause cause) {
    return CompletableFuture.failedFuture(new ChannelException(cause, "as told"));
  }

  @Test
  void body_is_wiped_when_it_was_sent() {
    network.send(bravo, message(), null);
    assertThat(line.copies.getFirst()).isEqualTo(message().toByteArray());
    assertThat(line.bodies.getFirst()).containsOnly(0);
  }

  @ParameterizedTest
  @EnumSource(ChannelException.Cause.class)
  void what_may_pass_is_tried_again(ChannelException.Cause cause) {
    line.answers.add(failed(cause));
    line.answers.add(failed(cause));
    network.broadcast(List.of(bravo), message(), null);
    boolean passing =
        Set.of(
                ChannelException.Cause.NOT_ESTABLISHED,
                ChannelException.Cause.UNAVAILABLE,
                ChannelException.Cause.RATE_LIMITED)
            .contains(cause);
    if (passing) {
      Installation.until("third attempt", () -> line.copies.size() == 3);
      assertThat(line.copies).allSatisfy(c -> assertThat(c).isEqualTo(message().toByteArray()));
    } else {
      assertThat(line.copies).hasSize(1);
    }
    Installation.until(
        "wiped",
        () -> Arrays.equals(line.bodies.getLast(), new byte[line.bodies.getLast().length]));
  }

  @Test
  void contribution_goes_to_the_coordinator_alone_unless_all_are_to_be_measured() {
    Member coordinator =
        new Member(
            "c", Member.Role.COORDINATOR, 0, "", UUID.randomUUID(), 1, new byte[33], new byte[0]);
    network.contribute(coordinator, List.of(bravo), message(), null);
    assertThat(line.sentTo).containsExactly(coordinator);
    assertThat(line.broadcasts).isEmpty();
    // The coordinator comes last, as in every broadcast.
    new ChannelNetwork(line, pool, telemetry, true)
        .contribute(coordinator, List.of(bravo), message(), null);
    assertThat(line.broadcasts).containsExactly(List.of(bravo, coordinator));
  }

  @Test
  void nobody_to_tell_is_no_message() {
    network.broadcast(List.of(), message(), null);
    assertThat(line.bodies).isEmpty();
  }

  /** Nothing happens and nothing breaks, whatever a body has. */
  @Test
  void hostile_bodies_change_nothing() {
    FakeCore core = new FakeCore();
    try (Installation i = Installation.with(folder, core).start()) {
      Random random = new Random(20261121);
      Member target = i.network.roster().byName("alpha").orElseThrow();
      List<byte[]> bodies = new ArrayList<>();
      for (int n = 0; n < 300; n++) {
        byte[] body = new byte[random.nextInt(400)];
        random.nextBytes(body);
        bodies.add(body);
      }
      bodies.add(new byte[0]);
      bodies.add(new byte[600 * 1024]);
      byte[] envelope =
          PartyMessage.newBuilder()
              .setEnvelope(
                  SessionEnvelope.newBuilder()
                      .setSessionId(com.google.protobuf.ByteString.copyFrom(new byte[32]))
                      .setEnvelope(com.google.protobuf.ByteString.copyFrom(new byte[100])))
              .build()
              .toByteArray();
      for (int length = 0; length < envelope.length; length++) {
        bodies.add(Arrays.copyOf(envelope, length));
      }
      for (int id : new int[] {0, 31, 33, 1000}) {
        com.google.protobuf.ByteString wrong =
            com.google.protobuf.ByteString.copyFrom(new byte[id]);
        bodies.add(
            PartyMessage.newBuilder()
                .setEnvelope(SessionEnvelope.newBuilder().setSessionId(wrong))
                .build()
                .toByteArray());
        bodies.add(
            PartyMessage.newBuilder()
                .setCancel(SessionCancel.newBuilder().setSessionId(wrong))
                .build()
                .toByteArray());
        bodies.add(
            PartyMessage.newBuilder()
                .setReport(io.coterie.proto.party.v1.SessionReport.newBuilder().setSessionId(wrong))
                .build()
                .toByteArray());
      }
      for (byte[] body : bodies) {
        for (String sender : List.of("bravo", "coordinator")) {
          SecureChannel from =
              sender.equals("bravo") ? i.party("bravo").channel() : i.coordinator.channel();
          from.broadcast(List.of(target), body, SecureChannel.SendOptions.online(null));
        }
      }
      // The inbox of alpha is in order per receiver, so this comes after all of it.
      i.createKey("keys/main", 2);
      assertThat(core.started.get()).isEqualTo(3);
      assertThat(i.party("alpha").live()).isZero();
      assertThat(
              i.party("alpha").meters.find("coterie.sessions.dropped").counters().stream()
                  .mapToDouble(c -> c.count())
                  .sum())
          .isGreaterThan(300);
    }
  }
}
