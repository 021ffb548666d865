package io.coterie.signer.session;

import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.operation.PresignaturePool;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.share.KeyActivation;
import io.coterie.signer.share.KeyShareStore;
import java.util.Collection;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** Ends everything that this party does with shares that its operator has had destroyed. */
final class ForgottenShares {
  private final Sessions sessions;
  private final ListeningRuns listening;
  private final KeyShareStore shares;
  private final KeyActivation activation;
  private final PresignaturePool presignatures;
  private final Consumer<String> core;
  private final BiConsumer<Session, RefusedException> refuse;

  /**
   * @param core forgets what it has made with the shares of a key
   * @param refuse ends a session, in its lane
   */
  ForgottenShares(
      Sessions sessions,
      ListeningRuns listening,
      KeyShareStore shares,
      KeyActivation activation,
      PresignaturePool presignatures,
      Consumer<String> core,
      BiConsumer<Session, RefusedException> refuse) {
    this.sessions = sessions;
    this.listening = listening;
    this.shares = shares;
    this.activation = activation;
    this.presignatures = presignatures;
    this.core = core;
    this.refuse = refuse;
  }

  /** Shares of a key are not on disk any more, and no session that is ordered now finds them. */
  void forgotten(String key) {
    activation.forgotten(key);
    // Before the pool is looked at: a session that is not among these has filled it already. One
    // that ends meanwhile is among those that listen.
    leave(sessions.all(), key);
    leave(listening.all(), key);
    presignatures.refreshed(key, PresignaturePool.NO_EPOCH);
    core.accept(key);
  }

  private void leave(Collection<Session> some, String key) {
    some.forEach(session -> session.run(() -> leave(session, key)));
  }

  /**
   * Ends a session unless it uses another share or none, or has sent all that it sends: it can only
   * see a signature then. One that has ended does not listen any more.
   */
  private void leave(Session session, String key) {
    SessionPlan plan = session.plan;
    if (plan == null || !plan.key().equals(key)) {
      return;
    }
    if (plan.work() instanceof SessionPlan.Work.Presign) {
      presignatures.refreshed(key, PresignaturePool.NO_EPOCH);
    }
    if (!isWithoutShare(session, key)) {
      return;
    }
    if (SessionLifecycle.allows(session.state, Event.REFUSE)) {
      refuse.accept(session, reason());
    } else if (session.state.isFinal()) {
      listening.stop(session);
    }
  }

  /** Whether the share that a session uses, or has made, is not there any more. */
  private boolean isWithoutShare(Session session, String key) {
    return switch (session.state) {
      case WAITING_FOR_KEY -> shares.find(key).isEmpty();
      case COMPLETED -> shares.ofSession(session.id).isEmpty();
      default -> !session.share.equals(session.id) && shares.ofSession(session.share).isEmpty();
    };
  }

  /** Why a session ends whose share is not there any more. */
  static RefusedException reason() {
    return new RefusedException(
        RefusalReason.REFUSAL_REASON_UNKNOWN_KEY,
        "the operator of this party had it forget its share of the key");
  }
}
