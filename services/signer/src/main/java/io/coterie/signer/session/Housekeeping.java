package io.coterie.signer.session;

import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ClaimWitnesses;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.operation.PresignaturePool;
import io.coterie.signer.order.Hold;
import io.coterie.signer.order.Holds;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.share.KeyActivation;
import io.coterie.signer.share.KeyShareStore;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Does what is due now and then: forgets what is too old, and asks again for what is missing. */
final class Housekeeping implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Housekeeping.class);

  private static final Duration TICK = Duration.ofMillis(500);

  /** How often the ledger is asked to forget what is of no use any more. */
  private static final Duration FORGET = Duration.ofMinutes(1);

  private final Inbox inbox;
  private final PresignaturePool presignatures;
  private final KeyActivation activation;
  private final ClaimWitnesses witnesses;
  private final KeyShareStore shares;
  private final ClaimLedger claims;
  private final DiskShares room;
  private final Holds holds;
  private final Runnable held;
  private final WorkPool pool;

  /** Work that reads the disk now and then. */
  private final WorkPool.Lane disk;

  /** The counter outside the store, whose volume may hang: it keeps back nothing else. */
  private final WorkPool.Lane outside;

  /** Whether the counter has not come back yet. */
  private final AtomicBoolean noting = new AtomicBoolean();

  private final Future<?> ticking;

  /** When the ledger was last asked to forget; touched by the timer alone. */
  private long forgotNanos;

  /** The holds that running sessions were last compared with; touched by the timer alone. */
  private List<Hold> known;

  /**
   * @param held ends running sessions that are refused now
   * @param forgotten told the keys of which the operator has had shares destroyed
   */
  Housekeeping(
      Inbox inbox,
      PresignaturePool presignatures,
      KeyActivation activation,
      ClaimWitnesses witnesses,
      SessionPorts.Ledgers ledgers,
      DiskShares room,
      Runnable held,
      Consumer<String> forgotten,
      WorkPool pool) {
    this.inbox = inbox;
    this.presignatures = presignatures;
    this.activation = activation;
    this.witnesses = witnesses;
    this.shares = ledgers.shares();
    this.claims = ledgers.claims();
    this.room = room;
    this.holds = ledgers.holds();
    this.held = held;
    this.known = holds.all();
    this.pool = pool;
    this.forgotNanos = pool.nanos();
    this.disk = pool.lane();
    this.outside = pool.lane();
    shares.onForgotten(forgotten);
    this.ticking = pool.every(TICK, this::tick);
  }

  private void tick() {
    try {
      long now = pool.nanos();
      inbox.expire(now);
      presignatures.expire(now);
      activation.tick(now);
      disk.execute(shares::housekeep);
      disk.execute(room::look);
      if (noting.compareAndSet(false, true)) {
        outside.execute(this::note);
      }
      witnesses.tick();
      leaveHeld();
      if (now - forgotNanos >= FORGET.toNanos()) {
        Duration running = Duration.ofNanos(now - forgotNanos);
        forgotNanos = now;
        claims.forgetRequests(running);
      }
    } catch (RuntimeException e) {
      log.error("this party's housekeeping failed", e);
    }
  }

  private void note() {
    try {
      claims.noteOutside();
    } finally {
      noting.set(false);
    }
  }

  private void leaveHeld() {
    List<Hold> now = holds.all();
    if (!now.equals(known)) {
      known = now;
      held.run();
    }
  }

  @Override
  public void close() {
    ticking.cancel(false);
    shares.onForgotten(_ -> {});
  }
}
