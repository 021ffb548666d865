/**
 * The sessions of one party: from an order to its end, with everything that they act on.
 *
 * <p>The way of a signing through the signer, from the order to its end. {@link SessionPorts} lists
 * the seams at which adapters, or fakes of them, are put in.
 *
 * <ol>
 *   <li>{@link SessionService#onOrder} takes the order of a coordinator from the channel. Its hash
 *       is the id of the session. {@link SessionOpening#begin} follows it in a lane of its own.
 *   <li>{@link Admission#admit} judges the order before anything is done for it: {@link
 *       PolicyGate#admit} checks the requester's signature and this party's own rules, and {@link
 *       OrderCheck#plan} checks that order, intent and roster agree.
 *   <li>{@link Operation#begin} judges the order against the key: {@link Beginning.Claim} goes on,
 *       {@link Beginning.AwaitKey} and {@link Beginning.Await} wait, an exception refuses.
 *   <li>{@link ClaimLedger#claimOnce} stores request and session on disk before anything of the
 *       session leaves. {@link Operation#binding} binds a request of a random scheme to this
 *       session.
 *   <li>{@link ProtocolCore#start} starts the core; with a presignature it starts before the claim,
 *       which stores the message that will leave. {@link SessionDriver#started} sends the first
 *       messages. A session that multiplies hears no peer until {@link ClaimWitnesses#await} says
 *       that others remember the claim.
 *   <li>{@link Inbox#arrived} keeps envelopes that come early, and hands the others to {@link
 *       ProtocolCore.Run#handle}.
 *   <li>{@link StepEffect#of} says what follows from a step of the core, and {@link SessionDriver}
 *       does it. {@link Operation#maySend} is asked before each message, which {@link
 *       PartyNetwork#broadcast} or {@link PartyNetwork#send} carries.
 *   <li>{@link Operation#complete} judges the result: {@link Ending} says with which one the session
 *       ends. {@link Operation#exclusions} says which parties an abort excludes.
 *   <li>{@link SessionDriver#end} gives back what the session holds. {@link SessionReports} tells
 *       the coordinator, {@link AuditLog} keeps the end, {@link SessionTelemetry} counts it.
 * </ol>
 *
 * <p>{@link SessionLifecycle} is the table of states and events behind it; {@link Refusals} is the
 * way out of every step at which something speaks against the session.
 */
@NullMarked
package io.coterie.signer.session;

import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ClaimWitnesses;
import io.coterie.signer.operation.Operation;
import io.coterie.signer.operation.Operation.Beginning;
import io.coterie.signer.operation.Operation.Ending;
import io.coterie.signer.order.OrderCheck;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.party.AuditLog;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import org.jspecify.annotations.NullMarked;
