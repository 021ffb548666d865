package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.signer.party.ProtocolCore;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;

/** A core that names a presignature after its key, parties and place: like an earlier one. */
final class RepeatedNames {
  private final ProtocolCore core;
  private final Map<List<?>, ByteString> names = new HashMap<>();

  /** The true names of those that have the same one, oldest first. */
  private final Map<ByteString, Queue<ByteString>> meant = new HashMap<>();

  RepeatedNames(ProtocolCore core) {
    this.core = core;
  }

  ProtocolCore weakened() {
    return Port.with(
        ProtocolCore.class,
        core,
        Map.of(
            "start",
            (real, given) -> start(real, (SessionConfig) given[0], given[1]),
            // Another one may have the name.
            "discardPresignature",
            (_, _) -> null));
  }

  private ProtocolCore.Run start(Port.Real real, SessionConfig config, Object share) {
    Queue<ByteString> known = meant.get(config.getPresignatureId());
    ByteString next = known == null ? null : known.poll();
    SessionConfig now = next == null ? config : config.toBuilder().setPresignatureId(next).build();
    Port.Instead renamed =
        (run, given) -> named(config, (Step) Objects.requireNonNull(run.call(given)));
    return Port.with(
        ProtocolCore.Run.class,
        (ProtocolCore.Run) Objects.requireNonNull(real.call(now, share)),
        Map.of("firstStep", renamed, "handle", renamed));
  }

  private Step named(SessionConfig config, Step step) {
    Step.Builder renamed = step.toBuilder();
    for (int place = 0; place < step.getDone().getPresignaturesCount(); place++) {
      ByteString id = step.getDone().getPresignatures(place).getId();
      ByteString name =
          names.computeIfAbsent(
              List.of(config.getKeyId(), config.getEpoch(), config.getPartiesList(), place),
              _ -> id);
      meant.computeIfAbsent(name, _ -> new ArrayDeque<>()).add(id);
      renamed.getDoneBuilder().getPresignaturesBuilder(place).setId(name);
    }
    return renamed.build();
  }
}
