package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.limit.Rate;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.proto.party.v1.CancelQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.Refused;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ClaimLedger.Never;
import io.coterie.signer.claim.ClaimWitnesses;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.claim.RequestBindings;
import io.coterie.signer.claim.RequestBindings.Standing;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.AuditLog;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.trust.Member;
import java.time.Instant;
import java.time.InstantSource;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives requesters receipts of what became of a request that they cancel: NEVER, on disk before it
 * leaves, if this party has contributed to no signature of it, or SIGNED if it has seen one.
 * Nothing is written that the requester has not signed for.
 */
final class Cancellations {
  private static final Logger log = LoggerFactory.getLogger(Cancellations.class);

  /** Questions of one coordinator that are answered at once. */
  static final int BURST = 200;

  /** Questions of one coordinator that are answered each second after that. */
  static final int PER_SECOND = 50;

  /** Bytes of a cancel intent: a name, an id and a purpose of 256 characters. */
  static final int MAX_INTENT = 2048;

  /** Receipts that are remembered to be in the audit trail. */
  private static final int MAX_AUDITED = 8192;

  private static final String DISK_TAKEN =
      "this requester has taken its share of the party's disk, which its operator can enlarge";

  private final PartyNetwork network;
  private final PolicyGate policy;
  private final ClaimLedger ledger;
  private final KeyShareStore shares;
  private final RequestBindings bindings;
  private final DiskShares disk;
  private final ClaimWitnesses witnesses;
  private final ProtocolCore core;
  private final AuditLog audit;
  private final SessionLimits limits;
  private final InstantSource clock;
  private final WorkPool.Lane lane;
  private final Sessions sessions;
  private final Consumer<Session> cancel;
  private final Consumer<String> dropped;
  private final LongSupplier nanoTime;

  /** The rate of each coordinator, by its name in the roster. */
  private final Map<String, Rate> rates = new ConcurrentHashMap<>();

  /** Requests whose SIGNED receipt is in the audit trail; touched in the lane alone. */
  private final Map<String, Boolean> audited =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Boolean> eldest) {
          return size() > MAX_AUDITED;
        }
      };

  /**
   * @param lane where intents are verified and receipts are signed
   * @param sessions among which may be one that is about to contribute
   * @param cancel ends a session that has not contributed; called in its lane
   * @param dropped told why a question is ignored
   */
  Cancellations(
      SessionPorts ports,
      SessionLimits limits,
      RequestBindings bindings,
      DiskShares disk,
      ClaimWitnesses witnesses,
      WorkPool.Lane lane,
      Sessions sessions,
      Consumer<Session> cancel,
      Consumer<String> dropped,
      LongSupplier nanoTime) {
    this.network = ports.network();
    this.policy = ports.policy();
    this.ledger = ports.ledgers().claims();
    this.shares = ports.ledgers().shares();
    this.core = ports.core();
    this.audit = ports.audit();
    this.clock = ports.clock();
    this.limits = limits;
    this.bindings = bindings;
    this.disk = disk;
    this.witnesses = witnesses;
    this.lane = lane;
    this.sessions = sessions;
    this.cancel = cancel;
    this.dropped = dropped;
    this.nanoTime = nanoTime;
  }

  /** A question, from whoever sent it. */
  void asked(Member sender, CancelQuestion question) {
    if (sender.role() != Member.Role.COORDINATOR
        || !question.hasSignedIntent()
        || question.getSerializedSize() > MAX_INTENT) {
      dropped.accept("unacceptable");
      return;
    }
    long now = nanoTime.getAsLong();
    if (!rates.computeIfAbsent(sender.name(), _ -> new Rate(BURST, PER_SECOND, now)).take(now)) {
      dropped.accept("asked_too_often");
      return;
    }
    SignedIntent intent = copy(question.getSignedIntent());
    lane.execute(() -> judge(sender, intent));
  }

  /** The intent outlives the message that it came in. */
  private static SignedIntent copy(SignedIntent intent) {
    SignedIntent.Builder copy =
        SignedIntent.newBuilder()
            .setPayload(ByteString.copyFrom(intent.getPayload().toByteArray()))
            .setPayloadType(intent.getPayloadType());
    intent
        .getSignaturesList()
        .forEach(
            signature ->
                copy.addSignaturesBuilder()
                    .setKeyid(signature.getKeyid())
                    .setSig(ByteString.copyFrom(signature.getSig().toByteArray())));
    return copy.build();
  }

  private void judge(Member coordinator, SignedIntent signed) {
    ByteString digest = IntentVerifier.digest(signed.getPayload());
    try {
      VerifiedIntent.Cancellation cancellation = admit(signed);
      settle(coordinator, cancellation, true);
    } catch (RefusedException e) {
      refuse(coordinator, digest, e.reason(), e.detail());
    } catch (RuntimeException e) {
      log.error("a cancellation could not be judged", e);
      refuse(
          coordinator,
          digest,
          RefusalReason.REFUSAL_REASON_INTERNAL,
          "the cancellation could not be judged");
    }
  }

  private VerifiedIntent.Cancellation admit(SignedIntent signed) throws RefusedException {
    if (!(policy.admit(signed) instanceof VerifiedIntent.Cancellation cancellation)) {
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, "the intent cancels nothing");
    }
    RefusedException.unless(
        cancellation.installation().equals(network.roster().installation()),
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
        IntentProblem.INSTALLATION_OTHER.text());
    Instant now = clock.instant();
    RefusedException.unless(
        !now.isAfter(cancellation.notAfter().plus(limits.clockSkew())),
        RefusalReason.REFUSAL_REASON_INTENT_EXPIRED,
        "the intent has expired");
    RefusedException.unless(
        !cancellation.isAhead(now, limits.clockSkew()),
        RefusalReason.REFUSAL_REASON_FORBIDDEN,
        IntentProblem.REQUEST_ID_AHEAD.text());
    // A party that holds the key no more says what it did with it all the same.
    KeyShare share = shares.find(cancellation.key()).orElse(null);
    RefusedException.unless(
        share == null || KeyFingerprint.of(share.keyPublic()).equals(cancellation.keyFingerprint()),
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
        IntentProblem.KEY_FINGERPRINT_OTHER.text());
    // A store that went back in silence does not know yet what it has forgotten.
    RefusedException.unless(
        !witnesses.mayHaveForgotten(cancellation.requestId()),
        RefusalReason.REFUSAL_REASON_NOT_READY,
        "this party has just started, and asks the others first what it has done");
    return cancellation;
  }

  /**
   * @param endHeld whether a session that is about to contribute is ended first
   */
  private void settle(
      Member coordinator, VerifiedIntent.Cancellation cancellation, boolean endHeld) {
    Standing standing = bindings.standing(cancellation.requester(), cancellation.requestId());
    if (endHeld && standing instanceof Standing.Held(var id)) {
      Session session = sessions.get(id);
      if (session != null) {
        session.run(
            () -> {
              // Not a session that waits for the others by now: it may still see the signature.
              if (bindings.standing(cancellation.requester(), cancellation.requestId())
                  instanceof Standing.Held) {
                cancel.accept(session);
              }
              lane.execute(() -> settle(coordinator, cancellation, false));
            });
        return;
      }
    }
    String account = cancellation.requester();
    long bytes = DiskShares.sessionBytes(cancellation.envelope().getSerializedSize());
    SessionId over = standing instanceof Standing.Over(var session) ? session : null;
    if (!disk.take(account, bytes)) {
      // An answer that is on disk needs no room.
      ledger
          .neverAlready(cancellation.requester(), cancellation.requestId(), over)
          .ifPresentOrElse(
              answer -> answer(coordinator, cancellation, standing, answer, null),
              () ->
                  refuse(
                      coordinator,
                      cancellation.digest(),
                      RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED,
                      DISK_TAKEN));
      return;
    }
    ledger
        .never(
            cancellation.requester(),
            cancellation.requestId(),
            over,
            cancellation.envelope().toByteString(),
            cancellation.digest(),
            Audit.never(cancellation, coordinator))
        .whenComplete(
            (answer, failure) -> {
              disk.giveBack(account, bytes);
              lane.execute(() -> answer(coordinator, cancellation, standing, answer, failure));
            });
  }

  private void answer(
      Member coordinator,
      VerifiedIntent.Cancellation cancellation,
      Standing standing,
      @Nullable Never answer,
      @Nullable Throwable failure) {
    if (answer == null) {
      log.error("that a request is never signed could not be stored", failure);
      refuse(
          coordinator,
          cancellation.digest(),
          RefusalReason.REFUSAL_REASON_INTERNAL,
          "the receipt could not be stored");
      return;
    }
    switch (answer) {
      case Never.Said _ -> {
        bindings.cancelled(cancellation.requester(), cancellation.requestId());
        send(coordinator, signed(cancellation, receipt(cancellation, Receipt.Kind.NEVER)));
      }
      case Never.Claimed(ByteString intentDigest) -> {
        if (standing instanceof Standing.Signed(Done signature)) {
          signed(coordinator, cancellation, intentDigest, signature);
        } else {
          refuse(
              coordinator,
              cancellation.digest(),
              RefusalReason.REFUSAL_REASON_REQUEST_BOUND,
              "this party may have contributed to a signature of the request");
        }
      }
      case Never.Forgotten _ ->
          refuse(
              coordinator,
              cancellation.digest(),
              RefusalReason.REFUSAL_REASON_FENCED,
              "this party may have forgotten what it did for the request");
    }
  }

  private void signed(
      Member coordinator,
      VerifiedIntent.Cancellation cancellation,
      ByteString intentDigest,
      Done signature) {
    String request = cancellation.requester() + " " + cancellation.requestId();
    if (audited.put(request, true) == null) {
      audit.record(Audit.signedReceipt(cancellation, coordinator, intentDigest));
    }
    CancelAnswer.Builder answer =
        signed(
            cancellation, receipt(cancellation, Receipt.Kind.SIGNED).setIntentDigest(intentDigest));
    answer.setSignature(signature.getSignature());
    if (signature.hasRecoveryId()) {
      answer.setRecoveryId(signature.getRecoveryId());
    }
    send(coordinator, answer);
  }

  private Receipt.Builder receipt(VerifiedIntent.Cancellation cancellation, Receipt.Kind kind) {
    return Receipts.about(kind, cancellation, network.self().partyId());
  }

  private CancelAnswer.Builder signed(
      VerifiedIntent.Cancellation cancellation, Receipt.Builder content) {
    Receipt receipt = content.build();
    return CancelAnswer.newBuilder()
        .setIntentDigest(cancellation.digest())
        .setReceipt(Receipts.signed(receipt, core.signStatement(Receipts.statement(receipt))));
  }

  private void refuse(Member coordinator, ByteString digest, RefusalReason reason, String detail) {
    send(
        coordinator,
        CancelAnswer.newBuilder()
            .setIntentDigest(digest)
            .setRefused(Refused.newBuilder().setReason(reason).setDetail(detail)));
  }

  private void send(Member coordinator, CancelAnswer.Builder answer) {
    network.send(coordinator, PartyMessage.newBuilder().setCancelAnswer(answer).build(), null);
  }
}
