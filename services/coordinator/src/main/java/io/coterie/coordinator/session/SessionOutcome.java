package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.channel.ChannelException;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** How one session ended, as the coordinator saw it. */
public sealed interface SessionOutcome {

  /**
   * A signature that the verifier has accepted.
   *
   * @param culprits parties left out because their contribution was wrong
   */
  record Signed(Signature signature, Set<Integer> culprits) implements SessionOutcome {}

  /**
   * All parties hold a share of the same key and epoch, and its proofs were accepted.
   *
   * @param completion the parties' word for it
   */
  record Created(KeyPublic keyPublic, Completion completion) implements SessionOutcome {}

  /**
   * All parties hold their shares of presignatures.
   *
   * @param ids as many as were ordered, of 32 bytes
   */
  record Presigned(List<ByteString> ids) implements SessionOutcome {
    public Presigned {
      ids = List.copyOf(ids);
    }
  }

  /**
   * Parties that would not start.
   *
   * @param details the words of these parties, for people; one line each
   * @param receipts of those that gave one; unchecked
   */
  record Refused(
      Map<Integer, RefusalReason> by,
      Map<Integer, String> details,
      Map<Integer, SignedReceipt> receipts)
      implements SessionOutcome {

    /** Parties that would not make shares: of that they give no receipts. */
    public Refused(Map<Integer, RefusalReason> by, Map<Integer, String> details) {
      this(by, details, Map.of());
    }

    /** One party would not start. */
    static Refused of(int party, io.coterie.proto.party.v1.Refused refused) {
      return new Refused(
          Map.of(party, refused.getReason()),
          Map.of(party, StatusErrors.detail(refused.getDetail())),
          refused.hasReceipt() ? Map.of(party, refused.getReceipt()) : Map.of());
    }

    /** The words of a party; empty if it said none. */
    public String detail(int party) {
      return details.getOrDefault(party, "");
    }
  }

  /**
   * A party contributed to the signature of the request in another session.
   *
   * @param order of that session, without the signed intent; hostile until it is checked
   */
  record Bound(int party, ByteString order) implements SessionOutcome {}

  /**
   * The run is over without a result.
   *
   * @param round of the protocol, 0 if unknown
   * @param culprits shown to have deviated: in signing by what this observer got itself, in key
   *     generation, refresh and reshare by the evidence of a report; never by the number of reports
   * @param suspects named without proof, who named them so, and whom reports suspect
   * @param exclude whether the culprits must be left out of every later session of the key
   * @param hopeless whether no later session for the same request can succeed
   */
  record Aborted(
      int round,
      AbortCause cause,
      Set<Integer> culprits,
      Set<Integer> suspects,
      boolean exclude,
      boolean hopeless)
      implements SessionOutcome {

    /** The culprits and the suspects. */
    public Set<Integer> blamed() {
      Set<Integer> blamed = new HashSet<>(culprits);
      blamed.addAll(suspects);
      return blamed;
    }
  }

  /**
   * Parties hold shares, of this session or an earlier one of the same request, and too few of them
   * report that they know it of all parties. They take part in no other session until they know,
   * and use their shares, or until they learn that a party has none, and abandon theirs.
   *
   * @param without parties that have none of the earlier session: they took part in this one
   */
  record Undecided(Set<Integer> without) implements SessionOutcome {}

  /**
   * Time is up.
   *
   * @param round being waited in
   * @param missing parties that were silent
   */
  record TimedOut(int round, Set<Integer> missing) implements SessionOutcome {}

  /** The order could not be handed to the messaging service. */
  record Unsent(ChannelException.Cause cause) implements SessionOutcome {}

  /** This coordinator is stopping. */
  record Stopped() implements SessionOutcome {}
}
