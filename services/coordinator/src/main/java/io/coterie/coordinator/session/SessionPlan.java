package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.Protocol.Operation;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Member;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The order of one session: the work, the parties and the deadline.
 *
 * @param key resource name
 * @param epoch of the shares that are used; 1 for a new key
 * @param intent as received from the requester; null for {@link Work.Presign}, which no requester
 *     asks for
 * @param parties that take part, in ascending order of party id
 * @param deadline after which the parties abandon the session
 */
public record SessionPlan(
    Work work,
    Scheme scheme,
    String key,
    int epoch,
    int threshold,
    @Nullable SignedIntent intent,
    List<Member> parties,
    Instant deadline,
    TraceContext trace) {

  /** A pair sets up and prepares in seconds, on a busy machine. */
  public static final Duration PAIR_TIME = Duration.ofSeconds(20);

  /** The operation and what only it needs. */
  public sealed interface Work {
    /** The registry's name for it. */
    Operation operation();

    /**
     * Sign.
     *
     * @param keyPublic of the key itself, not of its child
     * @param presignature id of the presignature to use, 32 bytes; null: without
     * @param approvals of the intent, as received from the requester
     */
    record Sign(
        ToSign what,
        KeyPublic keyPublic,
        @Nullable ByteString presignature,
        List<ByteString> approvals)
        implements Work {
      public Sign {
        approvals = List.copyOf(approvals);
      }

      @Override
      public Operation operation() {
        return presignature == null ? Operation.SIGN : Operation.SIGN_PRESIGNED;
      }
    }

    /**
     * Make presignatures.
     *
     * @param target which key they will sign with
     * @param count 1 to {@link Protocol#maxBatch}
     * @param messageBlocks of the only messages that they are for; 0 if they are for any
     */
    record Presign(KeyTarget target, int count, int messageBlocks) implements Work {
      @Override
      public Operation operation() {
        return Operation.PRESIGN;
      }
    }

    /** Create the key. */
    record Keygen() implements Work {
      @Override
      public Operation operation() {
        return Operation.KEYGEN;
      }
    }

    /**
     * Take over a key that exists already.
     *
     * @param shares of the parties, as its owner has encrypted them, ascending; empty to ask what
     *     became of the request, and start nothing
     */
    record Import(List<PartyBytes> shares) implements Work {
      public Import {
        shares = List.copyOf(shares);
      }

      @Override
      public Operation operation() {
        return Operation.IMPORT;
      }
    }

    /**
     * Give the parties new shares of the key.
     *
     * @param current public data of the epoch that is replaced
     */
    record Refresh(KeyPublic current) implements Work {
      @Override
      public Operation operation() {
        return Operation.REFRESH;
      }
    }

    /**
     * Give shares of the key to other parties, or with another threshold.
     *
     * @param current public data of the epoch that is replaced
     * @param dealers ids of parties that use their old shares for it, ascending
     * @param receivers ids of the parties that hold a share afterwards, ascending
     */
    record Reshare(KeyPublic current, List<Integer> dealers, List<Integer> receivers)
        implements Work {
      public Reshare {
        dealers = List.copyOf(dealers);
        receivers = List.copyOf(receivers);
      }

      @Override
      public Operation operation() {
        return Operation.RESHARE;
      }
    }
  }

  public SessionPlan {
    parties = List.copyOf(parties);
  }

  /** Ids of the parties that hold a share when it is done, ascending. */
  List<Integer> holders() {
    return work instanceof Work.Reshare reshare
        ? reshare.receivers()
        : parties.stream().map(Member::partyId).toList();
  }

  /** Among so many of the parties one is honest, as far as anything can be relied on here. */
  int oneIsHonest() {
    return work instanceof Work.Reshare reshare
        ? threshold + reshare.current().getThreshold() - 1
        : threshold;
  }
}
