package io.coterie.coordinator.custody.signing;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.PartyQuestions;
import io.coterie.coordinator.session.CancelListener;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.proto.party.v1.CancelQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.Map;
import java.util.Set;

/**
 * Puts the cancellation of a request to parties and collects their answers. Nothing of it is
 * believed here. Thread-safe.
 */
public final class CancelQuestions implements CancelListener {
  /** How long parties are waited for. */
  public static final Duration WAIT = Duration.ofSeconds(3);

  /** Questions that wait for their answers at once. */
  static final int MAX_WAITING = 128;

  /** The same of one requester. */
  static final int MAX_WAITING_OF_REQUESTER = 32;

  /** Cancellations of one requester that are put to the parties at once. */
  static final int BURST_OF_REQUESTER = 50;

  /** Cancellations of one requester that are put to the parties in each second after that. */
  static final int PER_SECOND_OF_REQUESTER = 10;

  /** All cancellations, below the rate at which each party answers a coordinator. */
  private static final int BURST = 150;

  private static final int PER_SECOND = 40;

  /** A receipt and a signature take less: larger answers are not kept until the question ends. */
  private static final int MAX_ANSWER_BYTES = 2048;

  private final PartyLink link;
  private final CoordinatorMetrics metrics;

  /** The open questions by the digest of the intent that cancels. */
  private final PartyQuestions<ByteString, CancelAnswer> questions;

  /**
   * Nobody has been asked yet.
   *
   * @param wait how long parties are waited for; {@link #WAIT} but in tests
   * @param time in which they are waited for
   */
  public CancelQuestions(
      PartyLink link, CoordinatorMetrics metrics, Duration wait, ReplicaTime time) {
    this.link = link;
    this.metrics = metrics;
    this.questions =
        new PartyQuestions<>(
            metrics,
            new PartyQuestions.Limits(
                wait,
                MAX_WAITING,
                MAX_WAITING_OF_REQUESTER,
                BURST_OF_REQUESTER,
                PER_SECOND_OF_REQUESTER,
                BURST,
                PER_SECOND),
            time,
            time::nanos);
  }

  /**
   * Asks the parties of these ids that can be reached, and waits for them until the caller's
   * deadline, or for a fixed time at most.
   *
   * @return the answers by party; unchecked
   * @throws CustodyException if too many questions wait
   */
  Map<Integer, CancelAnswer> ask(
      VerifiedIntent.Cancellation intent, Set<Integer> holders, Caller caller)
      throws InterruptedException {
    SecureChannel channel = link.channel().orElse(null);
    if (channel == null) {
      return Map.of();
    }
    PartyMessage message =
        PartyMessage.newBuilder()
            .setCancelQuestion(CancelQuestion.newBuilder().setSignedIntent(intent.envelope()))
            .build();
    return questions.ask(channel, intent.requester(), intent.digest(), holders, message, caller);
  }

  @Override
  public void cancelled(Member party, CancelAnswer answer) {
    if (answer.getSerializedSize() > MAX_ANSWER_BYTES) {
      metrics.dropped("unexpected");
      return;
    }
    questions.answered(party, answer.getIntentDigest(), answer);
  }
}
