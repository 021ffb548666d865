package io.coterie.signer.share;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.CurrentStatement;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.limit.Rate;
import io.coterie.proto.party.v1.EpochAnswer;
import io.coterie.proto.party.v1.EpochQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.trust.Member;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Answers clients that ask, through a coordinator, which epoch of a key this party uses. Anyone who
 * may read a key can cause a question, and each answer costs a signature, so each coordinator gets
 * a bounded number of answers. Thread-safe.
 */
public final class EpochAnswers {
  /** Questions of one coordinator that are answered at once. */
  public static final int BURST = 100;

  /** Questions of one coordinator that are answered each second after that. */
  public static final int PER_SECOND = 20;

  private final PartyNetwork network;
  private final KeyShareStore shares;
  private final ProtocolCore core;
  private final Executor lane;
  private final Consumer<String> dropped;
  private final LongSupplier nanoTime;

  /** The rate of each coordinator, by its name in the roster. */
  private final Map<String, Rate> rates = new ConcurrentHashMap<>();

  /**
   * Answers that come from the shares of this party.
   *
   * @param lane where the disk is read and answers are signed
   * @param dropped told why a question is ignored
   * @param nanoTime monotonic clock, ns
   */
  public EpochAnswers(
      PartyNetwork network,
      KeyShareStore shares,
      ProtocolCore core,
      Executor lane,
      Consumer<String> dropped,
      LongSupplier nanoTime) {
    this.network = network;
    this.shares = shares;
    this.core = core;
    this.lane = lane;
    this.dropped = dropped;
    this.nanoTime = nanoTime;
  }

  /** A question, from whoever sent it. */
  public void asked(Member sender, EpochQuestion question) {
    if (sender.role() != Member.Role.COORDINATOR
        || question.getChallenge().size() != CurrentStatement.CHALLENGE_BYTES
        || !IntentVerifier.isKeyName(question.getKey())) {
      dropped.accept("unacceptable");
      return;
    }
    long now = nanoTime.getAsLong();
    if (!rates.computeIfAbsent(sender.name(), _ -> new Rate(BURST, PER_SECOND, now)).take(now)) {
      dropped.accept("asked_too_often");
      return;
    }
    // A copy: the challenge outlives the message that it came in.
    ByteString challenge = ByteString.copyFrom(question.getChallenge().toByteArray());
    String key = question.getKey();
    lane.execute(() -> answer(sender, key, challenge));
  }

  private void answer(Member coordinator, String key, ByteString challenge) {
    KeyShare share = shares.find(key).orElse(null);
    if (share == null || share.state() != KeyShare.State.ACTIVE || share.left()) {
      return;
    }
    CurrentStatement statement =
        CurrentStatement.using(
            network.roster().installation(),
            share.session().bytes(),
            share.keyPublic(),
            // After the share is read: one that takes its place in between shows here.
            shares.keepsAnother(share),
            challenge);
    int self = network.self().partyId();
    network.send(
        coordinator,
        PartyMessage.newBuilder()
            .setEpochAnswer(
                EpochAnswer.newBuilder()
                    .setKey(key)
                    .setChallenge(challenge)
                    .setStatement(statement.signed(self, core.signStatement(statement.of(self)))))
            .build(),
        null);
  }
}
