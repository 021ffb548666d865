package io.coterie.mpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Calls in an order that nobody designed, with envelopes that are real, altered or misdirected.
 * Says nothing about results: only that each call ends as the interface says, and that nothing is
 * left.
 */
class CallSequenceTest {
  private static final int CALLS = 1500;
  private static final byte[] NO_SHARE = {};

  private record Running(int party, MpcSession session) {}

  private record Envelope(int from, byte[] bytes) {}

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  void ends_as_the_interface_says(long seed) {
    Random random = new Random(seed);
    NativeMpcCore core = NativeMpcCore.load();
    long open = core.openHandles();
    try (LocalParties parties = new LocalParties(3)) {
      Map<Integer, Done> shares = parties.keygen(parties.keygen(2));
      List<SessionConfig> configs =
          List.of(
              parties.keygen(2),
              parties.keygen(3),
              parties.sign(shares.get(1).getKeyPublic(), new byte[] {1}, List.of(1, 2)),
              parties.sign(shares.get(1).getKeyPublic(), new byte[] {2}, List.of(1, 2, 3)));
      List<Running> running = new ArrayList<>();
      List<Envelope> seen = new ArrayList<>();
      for (int i = 0; i < CALLS; i++) {
        try {
          if (running.size() < 8 || random.nextInt(20) == 0) {
            int which = random.nextInt(configs.size());
            int party = 1 + random.nextInt(3);
            MpcSession session =
                parties.start(
                    party,
                    configs.get(which),
                    which < 2 ? NO_SHARE : shares.get(party).getSealedShare().toByteArray());
            running.add(new Running(party, session));
            collect(party, session.firstStep(), seen);
          } else if (random.nextInt(30) == 0) {
            // Sometimes kept in the list: a later call meets a closed session.
            int index = random.nextInt(running.size());
            running.get(index).session().close();
            if (random.nextBoolean()) {
              running.remove(index);
            }
          } else {
            Running to = running.get(random.nextInt(running.size()));
            Envelope envelope = seen.get(random.nextInt(seen.size()));
            int sender = random.nextInt(10) == 0 ? random.nextInt() : envelope.from();
            collect(
                to.party(), to.session().handle(sender, change(envelope.bytes(), random)), seen);
          }
        } catch (MpcException e) {
          assertThat(e.reason()).isEqualTo(MpcException.Reason.SETUP_REFUSED);
        } catch (IllegalStateException e) {
          assertThat(e).hasMessage("session is closed");
        }
      }
      running.forEach(r -> r.session().close());
    }
    assertThat(core.openHandles()).isEqualTo(open);
  }

  private static byte[] change(byte[] envelope, Random random) {
    byte[] changed = envelope.clone();
    if (random.nextInt(3) == 0) {
      changed[random.nextInt(changed.length)] ^= (byte) (1 << random.nextInt(8));
    }
    return changed;
  }

  private static void collect(int party, Step step, List<Envelope> seen) {
    step.getOutgoingList()
        .forEach(out -> seen.add(new Envelope(party, out.getEnvelope().toByteArray())));
    assertThat(step.getProgressCase()).isNotEqualTo(Step.ProgressCase.PROGRESS_NOT_SET);
    assertThat(step.getAbort().getCause()).isNotEqualTo(AbortCause.ABORT_CAUSE_INTERNAL);
  }
}
