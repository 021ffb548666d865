package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.Refused;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.proto.party.v1.TimedOut;
import io.coterie.signer.claim.RequestBindings;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.List;

/**
 * Sends what the core says, and tells how a session ended here: its coordinator, and the parties
 * that wait for a contribution of this one. It decides nothing and changes no session.
 */
final class SessionReports {
  private final PartyNetwork network;
  private final RequestBindings bindings;
  private final RefusalReceipts receipts;

  /**
   * @param bindings asked for what this party has sent and seen in sessions of the past
   */
  SessionReports(PartyNetwork network, RequestBindings bindings, RefusalReceipts receipts) {
    this.network = network;
    this.bindings = bindings;
    this.receipts = receipts;
  }

  /** The message that carries an envelope of the core. */
  private static PartyMessage envelope(SessionId session, ByteString envelope) {
    return PartyMessage.newBuilder()
        .setEnvelope(
            SessionEnvelope.newBuilder().setSessionId(session.bytes()).setEnvelope(envelope))
        .build();
  }

  /**
   * A message of the core leaves. A broadcast goes to the coordinator too, or to it alone where the
   * other parties need it for nothing.
   */
  void message(Session session, Outgoing outgoing) {
    PartyMessage message = envelope(session.id, outgoing.getEnvelope());
    if (outgoing.getRecipient() != 0) {
      network
          .roster()
          .byPartyId(outgoing.getRecipient())
          .ifPresent(member -> network.send(member, message, session.traceparent));
      return;
    }
    List<Member> recipients = new ArrayList<>();
    for (Member party : session.plan().parties()) {
      if (party.partyId() != network.self().partyId()) {
        recipients.add(party);
      }
    }
    if (session.plan().protocol().answersCoordinatorAlone()) {
      // For one recipient the pairwise session costs less than the sender key with its signatures.
      network.contribute(session.coordinator, recipients, message, session.traceparent);
      return;
    }
    recipients.add(session.coordinator);
    network.broadcast(recipients, message, session.traceparent);
  }

  /** The core ended the run, or this party failed. */
  void aborted(Session session, Abort abort) {
    report(session, SessionReport.newBuilder().setAborted(abort));
  }

  /** The signature is there: a coordinator that cannot observe the session is told. */
  void signed(Session session, ByteString signature) {
    if (session.plan().protocol().isOfPairs()) {
      report(
          session,
          SessionReport.newBuilder().setCompleted(Completed.newBuilder().setSignature(signature)));
    }
  }

  /** Presignatures are in the pool. */
  void presigned(Session session, List<ByteString> ids) {
    report(
        session,
        SessionReport.newBuilder().setCompleted(Completed.newBuilder().addAllPresignatureIds(ids)));
  }

  /**
   * Nobody waits any more, or not for long.
   *
   * @param missing ids of the parties that were waited for
   */
  void timedOut(Session session, List<Integer> missing) {
    report(
        session,
        SessionReport.newBuilder()
            .setTimedOut(TimedOut.newBuilder().setRound(session.round).addAllMissing(missing)));
  }

  /**
   * An order is refused; with a receipt for its requester, and with the signature of its request,
   * if this party has seen it.
   */
  void refused(Session session, RefusedException refusal) {
    RequestBindings.Answer past = bindings.answer(session.id);
    Refused.Builder refused =
        Refused.newBuilder()
            .setReason(refusal.reason())
            .setDetail(refusal.detail())
            .setBoundOrder(refusal.boundOrder())
            .setSignature(past.signature());
    past.recoveryId().ifPresent(refused::setRecoveryId);
    receipts.give(session.asked, refused);
    report(session, SessionReport.newBuilder().setRefused(refused));
  }

  /** Tells the other parties of an order that this one will not contribute. */
  void declined(Session session, Order order) {
    List<Member> others =
        order.getSigningSetList().stream()
            .filter(party -> party != network.self().partyId())
            .flatMap(party -> network.roster().byPartyId(party).stream())
            .toList();
    network.broadcast(others, PartyNetwork.declined(session.id), session.traceparent);
  }

  /**
   * Sends what this party has sent in a session of the past.
   *
   * @param asking the session whose coordinator gets it
   */
  void sendAgain(SessionId past, Session asking) {
    bindings
        .answer(past)
        .sent()
        .forEach(
            sent -> network.send(asking.coordinator, envelope(past, sent), asking.traceparent));
  }

  private void report(Session session, SessionReport.Builder report) {
    network.send(
        session.coordinator,
        PartyMessage.newBuilder().setReport(report.setSessionId(session.id.bytes())).build(),
        session.traceparent);
  }
}
