/**
 * Signings: attempts with one signing set after another.
 *
 * <p>The way of a signing through the coordinator, from the request to the result:
 *
 * <ol>
 *   <li>{@link SigningApi#sign} takes the call of a wallet backend, and decides nothing.
 *   <li>{@link IntentCheck#check} verifies the signed intent. It spares the parties work and
 *       protects nobody: each party checks the intent itself.
 *   <li>{@link Requests#await} joins the caller to the run of its request id, if there is one here;
 *       {@link Run} is the work with everyone that waits for it.
 *   <li>{@link RequestKind#store} makes the request this replica's work, or finds what was stored
 *       under that id. {@link SigningStore#claimOnce} says what the database guarantees.
 *   <li>{@link SigningAttempts#run} orders one session after another until the request has ended.
 *   <li>{@link Candidates#among} says which parties may be asked, after all that earlier sessions
 *       have taught. {@link QuorumChooser#choose} picks the signing set, unless {@link
 *       PresignatureStock#take} has a presignature of parties that can sign now.
 *   <li>{@link SessionTurns#await} waits until all of the signing set have room for a session.
 *   <li>{@link Sessions#start} sends the order by {@link SecureChannel#broadcast}. {@link
 *       Sessions#again} gives an earlier order again, which a party may have claimed.
 *   <li>{@link SigningSession} observes the session with the core: it has no share, and combines
 *       the contributions that the parties broadcast.
 *   <li>{@link ResultVerifier#verifies} checks the signature with another implementation.
 *   <li>{@link SessionOutcome} is the end of one session. Every end but a signature teaches {@link
 *       Candidates} something; {@link RefusalScope} says of a refusal whom it concerns.
 *   <li>{@link SigningStore#finish} stores the end of the request, once. {@link Run#finish} gives it
 *       to the callers, {@link SigningWatcher#changed} to those that watch.
 * </ol>
 *
 * <p>If this replica dies in between, {@link Handover.Work#takeOver} lets another one go on at
 * {@link SigningAttempts#run}; the parties bind the request to one session all the same.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.custody.signing;

import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.api.SigningApi;
import io.coterie.coordinator.custody.presignature.PresignatureStock;
import io.coterie.coordinator.custody.request.Handover;
import io.coterie.coordinator.custody.request.IntentCheck;
import io.coterie.coordinator.custody.request.RequestKind;
import io.coterie.coordinator.custody.request.Requests;
import io.coterie.coordinator.custody.request.Run;
import io.coterie.coordinator.session.QuorumChooser;
import io.coterie.coordinator.session.RefusalScope;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.coordinator.session.Sessions;
import io.coterie.coordinator.session.SigningSession;
