package io.coterie.coordinator.custody.signing;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.Sessions;
import io.coterie.coordinator.session.Signature;
import io.coterie.coordinator.session.ToSign;
import io.coterie.platform.attestation.Holding;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Clock;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Finds out how a request ended, when its requester cancels it: the parties say, with a receipt
 * each, that they never sign it, or that they have.
 */
final class SigningEnds {
  private final SigningStore store;
  private final KeyDirectory keys;
  private final CancelQuestions questions;
  private final Sessions sessions;
  private final PartyLink link;
  private final Clock clock;

  SigningEnds(
      SigningStore store,
      CancelQuestions questions,
      SigningAttempts.Services attempts,
      Clock clock) {
    this.store = store;
    this.keys = attempts.keys();
    this.questions = questions;
    this.sessions = attempts.sessions();
    this.link = attempts.link();
    this.clock = clock;
  }

  /** Waits for the end of a request that is worked on. */
  @FunctionalInterface
  interface Waiting {
    SigningRecord await(SigningRecord pending) throws InterruptedException;
  }

  /** Checks the intents of stored requests again. */
  @FunctionalInterface
  interface Recheck {
    VerifiedIntent.Signing of(SigningRecord record);
  }

  /** The parties of a key at some time. */
  private record Holders(Set<Integer> parties, int threshold) {
    /** Fewer than can sign are left when so many never do. */
    int enough() {
      return parties.size() - threshold + 1;
    }
  }

  /**
   * Asks the parties, and stores the end that they show.
   *
   * @param waiting for the work on the request, if the parties show no end
   * @throws CustodyException if the request cannot be cancelled, or too much is asked
   */
  CancelledSigning cancel(
      VerifiedIntent.Cancellation intent, Caller caller, Recheck recheck, Waiting waiting)
      throws InterruptedException {
    KeyRecord key =
        keys.find(intent.key(), intent.reshareEpoch())
            .orElseThrow(() -> Failure.of(ErrorReason.KEY_NOT_FOUND, intent.key()).toException());
    key.requireFingerprint(intent.keyFingerprint());
    Holders holders = holders(key, intent.reshareEpoch());
    requireNotExpired(intent);
    SigningRecord known = find(intent);
    if (known != null && known.state() == Signing.State.SIGNED) {
      return CancelledSigning.signed(intent, known);
    }
    Map<Integer, CancelAnswer> answers = questions.ask(intent, holders.parties(), caller);
    if (known == null) {
      // It may have been stored while the parties answered, and then it must end as told now.
      known = find(intent);
    }
    Map<Integer, SignedReceipt> never = never(intent, holders, known, answers);
    if (known != null) {
      Optional<SigningRecord> signed = signed(known, key, recheck, answers.values());
      if (signed.isPresent()) {
        return CancelledSigning.signed(intent, signed.get());
      }
    }
    List<SignedReceipt> receipts = List.copyOf(never.values());
    if (receipts.size() >= holders.enough()) {
      SigningRecord ended =
          known == null ? null : store.settle(known.notSigned(receipts, now())).orElse(null);
      return ended != null && ended.state() == Signing.State.SIGNED
          ? CancelledSigning.signed(intent, ended)
          : new CancelledSigning(intent, ended, Signing.State.NOT_SIGNED, receipts, null);
    }
    SigningRecord end = known == null ? null : awaited(known, waiting);
    if (end != null && end.state() == Signing.State.SIGNED) {
      return CancelledSigning.signed(intent, end);
    }
    return new CancelledSigning(
        intent,
        end,
        Signing.State.UNKNOWN,
        receipts,
        unknown(intent, holders, never.keySet(), answers).toStatus());
  }

  private static Holders holders(KeyRecord key, int reshareEpoch) {
    MadeKey made = key.made();
    KeyPublic then =
        (made == null
                ? Optional.<KeyPublic>empty()
                : Holding.keyPublic(made.attestation(), reshareEpoch))
            .orElseThrow(
                () -> new IntentException(IntentProblem.RESHARE_EPOCH_OTHER).toCustodyException());
    return new Holders(
        then.getVerificationSharesList().stream()
            .map(VerificationShare::getParty)
            .collect(Collectors.toCollection(TreeSet::new)),
        then.getThreshold());
  }

  private void requireNotExpired(VerifiedIntent.Cancellation intent) {
    try {
      intent.requireNotExpired(clock.instant());
    } catch (IntentException e) {
      throw e.toCustodyException();
    }
  }

  private @Nullable SigningRecord find(VerifiedIntent.Cancellation intent) {
    SigningRecord known =
        store.find(SigningRecord.idOf(intent.requester(), intent.requestId())).orElse(null);
    if (known != null && !known.key().equals(intent.key())) {
      throw Failure.of(ErrorReason.REQUEST_ID_REUSED, known.name()).toException();
    }
    // Receipts of the parties of another time are true, and prove nothing about this request.
    if (known != null && reshareEpoch(known) != intent.reshareEpoch()) {
      throw new IntentException(IntentProblem.RESHARE_EPOCH_OTHER).toCustodyException();
    }
    return known;
  }

  /** The reshare epoch in a signing's intent, which was verified when it was stored. */
  private static int reshareEpoch(SigningRecord known) {
    try {
      return SigningIntent.parseFrom(known.header().intent().getPayload()).getReshareEpoch();
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("a stored intent cannot be read", e);
    }
  }

  /**
   * Those of before and of now, by party. A stored one is judged like a new one: a client would
   * refuse the whole answer for one that it does not believe.
   */
  private Map<Integer, SignedReceipt> never(
      VerifiedIntent.Cancellation intent,
      Holders holders,
      @Nullable SigningRecord known,
      Map<Integer, CancelAnswer> answers) {
    Roster roster = link.channel().map(channel -> channel.roster()).orElse(null);
    Map<Integer, SignedReceipt> never = new TreeMap<>();
    if (roster == null) {
      return never;
    }
    for (SignedReceipt stored : known == null ? List.<SignedReceipt>of() : known.receipts()) {
      int party = Receipts.read(stored).map(Receipt::getParty).orElse(0);
      if (holders.parties().contains(party) && isNever(intent, party, stored, roster)) {
        never.put(party, stored);
      }
    }
    answers.forEach(
        (party, answer) -> {
          if (isNever(intent, party, answer.getReceipt(), roster)) {
            never.put(party, answer.getReceipt());
          }
        });
    return never;
  }

  /** Whether a client could believe it. */
  private static boolean isNever(
      VerifiedIntent.Cancellation intent, int party, SignedReceipt envelope, Roster roster) {
    Receipt expected = Receipts.about(Receipt.Kind.NEVER, intent, party).build();
    return Receipts.read(envelope).filter(expected::equals).isPresent()
        && Receipts.isSigned(envelope, expected, roster);
  }

  /** The end of a request whose signature a party has shown. */
  private Optional<SigningRecord> signed(
      SigningRecord known, KeyRecord key, Recheck recheck, Collection<CancelAnswer> answers) {
    List<CancelAnswer> shown =
        answers.stream().filter(answer -> !answer.getSignature().isEmpty()).toList();
    if (shown.isEmpty()) {
      return Optional.empty();
    }
    ToSign subject;
    try {
      subject = SigningSubject.of(recheck.of(known), List.of(), key).toSign();
    } catch (CustodyException e) {
      // The requester or the key is not what it was: the signature proves nothing here.
      return Optional.empty();
    }
    for (CancelAnswer answer : shown) {
      Signature signature =
          new Signature(
              answer.getSignature(),
              answer.hasRecoveryId()
                  ? OptionalInt.of(answer.getRecoveryId())
                  : OptionalInt.empty());
      if (sessions.isValid(known.scheme(), subject, signature)) {
        SigningRecord signed =
            known.signed(result(subject, signature), List.of(), known.sessions(), now());
        // A crash of the database may have lost the row; the signature is valid all the same.
        return Optional.of(store.settle(signed).orElse(signed))
            .filter(stored -> stored.state() == Signing.State.SIGNED);
      }
    }
    return Optional.empty();
  }

  private static SigningRecord.Result result(ToSign subject, Signature signature) {
    ByteString publicKey = subject.publicKey();
    return new SigningRecord.Result(signature.bytes(), signature.recoveryId(), publicKey, false);
  }

  private SigningRecord awaited(SigningRecord known, Waiting waiting) throws InterruptedException {
    if (known.state() != Signing.State.PENDING) {
      return known;
    }
    try {
      return waiting.await(known);
    } catch (CustodyException e) {
      // The caller's time is up.
      return known;
    }
  }

  /** Names the parties that have given no receipt, and the reason of the first that gave one. */
  private Failure unknown(
      VerifiedIntent.Cancellation intent,
      Holders holders,
      Set<Integer> never,
      Map<Integer, CancelAnswer> answers) {
    List<String> names = new ArrayList<>();
    String cause = "";
    for (int party : holders.parties()) {
      if (!never.contains(party)) {
        names.add(name(party));
        CancelAnswer answer = answers.get(party);
        if (cause.isEmpty() && answer != null && answer.hasRefused()) {
          cause = answer.getRefused().getReason().name();
        }
      }
    }
    return Failure.parties(
        ErrorReason.END_UNKNOWN,
        SigningRecord.name(
            intent.key(), SigningRecord.idOf(intent.requester(), intent.requestId())),
        names,
        0,
        cause.isEmpty() ? "no_receipt" : cause);
  }

  private String name(int party) {
    return link.channel()
        .flatMap(channel -> channel.roster().byPartyId(party))
        .map(Member::name)
        .orElse("party-" + party);
  }

  private Instant now() {
    return clock.instant().truncatedTo(ChronoUnit.MICROS);
  }
}
