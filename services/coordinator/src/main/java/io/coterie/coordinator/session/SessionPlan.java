package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.channel.Member;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import java.time.Instant;
import java.util.List;

/**
 * What is to be run, with whom.
 *
 * @param key resource name
 * @param intent as received from the requester
 * @param parties who takes part, in ascending order of party id
 * @param deadline when the parties give up
 */
public record SessionPlan(
    Work work,
    Scheme scheme,
    String key,
    int epoch,
    int threshold,
    SignedIntent intent,
    List<Member> parties,
    Instant deadline,
    TraceContext trace) {

  /** The operation and what only it needs. */
  public sealed interface Work {
    /** Sign {@code message} with the key of {@code keyPublic}. */
    record Sign(ByteString message, KeyPublic keyPublic) implements Work {}

    /** Create the key. */
    record Keygen() implements Work {}
  }

  public SessionPlan {
    parties = List.copyOf(parties);
  }
}
