package io.coterie.coordinator.custody.key;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.PartyQuestions;
import io.coterie.coordinator.session.EpochListener;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.attestation.CurrentStatement;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.proto.party.v1.EpochAnswer;
import io.coterie.proto.party.v1.EpochQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Asks the parties of a key, for a client, which epoch they use, and collects what they sign. The
 * answers are for the client: this coordinator only leaves out those that no client would believe.
 * Thread-safe.
 */
public final class EpochQuestions implements EpochListener {
  /** How long parties are waited for. */
  public static final Duration WAIT = Duration.ofSeconds(2);

  /** Questions that wait for their answers at once. */
  public static final int MAX_WAITING = 64;

  /** The same of one client, so that no client takes the room of the others. */
  public static final int MAX_WAITING_OF_CLIENT = 8;

  /** Questions of one client that are put to the parties at once, and each second after that. */
  public static final int BURST_OF_CLIENT = 16;

  public static final int PER_SECOND_OF_CLIENT = 4;

  /**
   * Questions of all clients, below the rate at which each party answers a coordinator: beyond it
   * nobody would get an answer.
   */
  public static final int BURST = 64;

  public static final int PER_SECOND = 16;

  /** A statement is smaller: larger ones are not kept until the question ends. */
  private static final int MAX_STATEMENT_BYTES = 256;

  /** The subject of a question. */
  private record Asked(String key, ByteString challenge) {}

  private final PartyLink link;
  private final CoordinatorMetrics metrics;
  private final PartyQuestions<Asked, EpochStatement> questions;

  /**
   * Nobody has been asked yet.
   *
   * @param wait how long parties are waited for; {@link #WAIT} but in tests
   * @param nanoTime monotonic clock of the rates, ns
   */
  public EpochQuestions(
      PartyLink link, CoordinatorMetrics metrics, Duration wait, LongSupplier nanoTime) {
    this.link = link;
    this.metrics = metrics;
    this.questions =
        new PartyQuestions<>(
            metrics,
            new PartyQuestions.Limits(
                wait,
                MAX_WAITING,
                MAX_WAITING_OF_CLIENT,
                BURST_OF_CLIENT,
                PER_SECOND_OF_CLIENT,
                BURST,
                PER_SECOND),
            ReplicaTime.ofMachine(),
            nanoTime);
  }

  /**
   * Asks the parties of a key that can be reached, and waits for them until the caller's deadline,
   * or for a fixed time at most.
   *
   * @param client on whose behalf
   * @return the statements that verify, in ascending order of the parties; none if the key is not
   *     active
   * @throws CustodyException if the challenge is none, or too many questions wait
   */
  public List<EpochStatement> ask(String client, KeyRecord key, ByteString challenge, Caller caller)
      throws InterruptedException {
    if (challenge.size() != CurrentStatement.CHALLENGE_BYTES) {
      throw new CustodyException(ErrorReason.CHALLENGE_INVALID);
    }
    KeyPublic keyPublic = key.keyPublic();
    SecureChannel channel = link.channel().orElse(null);
    if (keyPublic == null || channel == null || caller.deadlineNanos() <= System.nanoTime()) {
      return List.of();
    }
    Asked asked = new Asked(key.name(), challenge);
    PartyMessage message =
        PartyMessage.newBuilder()
            .setEpochQuestion(EpochQuestion.newBuilder().setKey(key.name()).setChallenge(challenge))
            .build();
    List<Integer> holders = key.parties().stream().map(KeyRecord.Holder::partyId).toList();
    return believable(
        asked,
        questions.ask(channel, client, asked, holders, message, caller),
        channel.roster(),
        KeyFingerprint.of(keyPublic));
  }

  @Override
  public void answered(Member party, EpochAnswer answer) {
    if (answer.getStatement().getSerializedSize() > MAX_STATEMENT_BYTES) {
      metrics.dropped("unexpected");
      return;
    }
    questions.answered(
        party, new Asked(answer.getKey(), answer.getChallenge()), answer.getStatement());
  }

  private List<EpochStatement> believable(
      Asked asked, Map<Integer, EpochStatement> answers, Roster roster, ByteString fingerprint) {
    List<EpochStatement> believable = new ArrayList<>();
    answers.forEach(
        (party, sent) -> {
          if (sent.getParty() == party
              && CurrentStatement.isSigned(
                  roster, asked.key(), fingerprint, sent, asked.challenge())) {
            // Without fields that nobody knows: clients refuse those.
            believable.add(
                EpochStatement.newBuilder()
                    .setParty(party)
                    .setEpoch(sent.getEpoch())
                    .setSessionId(sent.getSessionId())
                    .setKeyPublicDigest(sent.getKeyPublicDigest())
                    .setUndecided(sent.getUndecided())
                    .setSignature(sent.getSignature())
                    .build());
          } else {
            metrics.dropped("bad_evidence_signature");
          }
        });
    return believable;
  }
}
