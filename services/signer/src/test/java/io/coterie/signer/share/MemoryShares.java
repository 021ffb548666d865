package io.coterie.signer.share;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.storage.StoreException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Sealed shares in memory, without a bound: it stores them at once, or when the test says so. */
public class MemoryShares implements KeyShareStore {
  private static final Set<KeyShare.State> USED =
      EnumSet.of(KeyShare.State.ACTIVE, KeyShare.State.PROVISIONAL);

  /** While set, shares of new keys wait in {@link #waiting}: true stores one. */
  public volatile boolean held;

  /** While set, shares of later epochs are destroyed as soon as they are stored. */
  public volatile boolean destroying;

  /** While set, no share of a session can be read. */
  public volatile boolean unreadable;

  public final List<CompletableFuture<Boolean>> waiting = new CopyOnWriteArrayList<>();

  /** The answer to an exclusion, in place of one at once. */
  public volatile @Nullable CompletableFuture<Boolean> heldExclusion;

  public final List<Exclusion> exclusions = new CopyOnWriteArrayList<>();
  public final Map<String, Set<Integer>> excluded = new ConcurrentHashMap<>();
  public final Set<SessionId> declined = ConcurrentHashMap.newKeySet();

  /** Exclusions that apply to every share that becomes active. */
  public final Set<Integer> marks = ConcurrentHashMap.newKeySet();

  /** Exclusions that apply to one share if it becomes active. */
  private final Map<SessionId, Set<Integer>> forgetful = new ConcurrentHashMap<>();

  private volatile Consumer<String> forgetting = _ -> {};

  /** In the order in which they were stored. */
  private final List<KeyShare> stored = new ArrayList<>();

  /** Makes a share the only one of its key. */
  public synchronized void put(KeyShare share) {
    stored.removeIf(s -> s.key().equals(share.key()));
    stored.add(share);
  }

  private synchronized Optional<KeyShare> first(Predicate<KeyShare> wanted) {
    return stored.stream().filter(wanted).findFirst();
  }

  private static Predicate<KeyShare> is(KeyShare.State state, String key) {
    return share -> share.state() == state && share.key().equals(key);
  }

  private Optional<KeyShare> active(String key) {
    return first(is(KeyShare.State.ACTIVE, key));
  }

  @Override
  public synchronized Optional<KeyShare> find(String key) {
    return active(key).or(() -> pending(key));
  }

  @Override
  public Optional<KeyShare> pending(String key) {
    return first(is(KeyShare.State.PROVISIONAL, key));
  }

  @Override
  public synchronized List<KeyShare> lasting(String key) {
    return stored.stream()
        .filter(share -> share.key().equals(key))
        .filter(share -> share.state() == KeyShare.State.ACTIVE || share.epoch() > 1)
        .toList();
  }

  @Override
  public synchronized List<KeyShare> undecided() {
    return stored.stream().filter(share -> share.state() != KeyShare.State.ACTIVE).toList();
  }

  @Override
  public boolean keepsAnother(KeyShare share) {
    return first(s -> s.key().equals(share.key()) && !s.session().equals(share.session()))
        .isPresent();
  }

  @Override
  public Optional<KeyShare> ofSession(SessionId session) {
    if (unreadable) {
      throw new StoreException("the party's file could not be read");
    }
    return first(share -> share.session().equals(session));
  }

  @Override
  public Set<Integer> decliners(String key) {
    return Set.of();
  }

  @Override
  public CompletionStage<Boolean> storeProvisional(KeyShare share, AuditEvent completed) {
    if (!held) {
      return CompletableFuture.completedFuture(store(share));
    }
    CompletableFuture<Boolean> answer = new CompletableFuture<>();
    waiting.add(answer);
    return answer.thenApply(granted -> granted && store(share));
  }

  private synchronized boolean store(KeyShare share) {
    if (!lasting(share.key()).isEmpty()) {
      return false;
    }
    stored.removeIf(is(KeyShare.State.PROVISIONAL, share.key()));
    return stored.add(share);
  }

  @Override
  public synchronized CompletionStage<Boolean> storeNext(
      KeyShare share, boolean dealt, AuditEvent completed) {
    boolean wanted =
        first(
                    other ->
                        other.key().equals(share.key())
                            && USED.contains(other.state())
                            && other.epoch() >= share.epoch())
                .isEmpty()
            && areOfOneKey(lasting(share.key()), share)
            && (!dealt
                || active(share.key()).filter(a -> a.epoch() == share.epoch() - 1).isPresent())
            && !declined.contains(share.session());
    if (wanted) {
      pending(share.key())
          .ifPresent(
              older -> {
                if (older.epoch() > 1) {
                  replace(older, older.abandoned());
                } else {
                  stored.remove(older);
                }
              });
      if (!destroying) {
        stored.add(share);
      }
    }
    return CompletableFuture.completedFuture(wanted);
  }

  private static boolean areOfOneKey(List<KeyShare> held, KeyShare share) {
    return held.stream().allMatch(other -> other.isOf(share.scheme(), share.keyPublic()));
  }

  private void replace(KeyShare older, KeyShare newer) {
    stored.set(stored.indexOf(older), newer);
  }

  @Override
  public synchronized CompletionStage<Boolean> decline(String key, SessionId session, int asker) {
    boolean absent = ofSession(session).isEmpty();
    if (absent) {
      declined.add(session);
    }
    return CompletableFuture.completedFuture(absent);
  }

  @Override
  public synchronized CompletionStage<Boolean> abandon(
      KeyShare share, int decliner, AuditEvent abandoned) {
    Optional<KeyShare> provisional =
        ofSession(share.session())
            .filter(s -> s.state() == KeyShare.State.PROVISIONAL && s.epoch() > 1);
    provisional.ifPresent(s -> replace(s, s.abandoned()));
    return CompletableFuture.completedFuture(provisional.isPresent());
  }

  @Override
  public synchronized CompletionStage<Boolean> activate(
      KeyShare share, Certificate proof, AuditEvent activated) {
    KeyShare own =
        ofSession(share.session()).filter(s -> s.state() != KeyShare.State.ACTIVE).orElse(null);
    boolean wanted =
        own != null
            && active(own.key()).filter(used -> !isBefore(used, own)).isEmpty()
            && areOfOneKey(active(own.key()).stream().toList(), share);
    if (wanted) {
      stored.removeIf(
          other ->
              other.key().equals(own.key())
                  && (other.state() == KeyShare.State.ACTIVE || isBefore(other, own)));
      replace(own, own.activated(proof));
      excluded.computeIfPresent(
          own.key(), (_, parties) -> parties.contains(EVERY_PARTY) ? Set.of(EVERY_PARTY) : null);
      exclude(own.key(), marks);
      exclude(own.key(), forgetful.getOrDefault(own.session(), Set.of()));
    }
    return CompletableFuture.completedFuture(wanted);
  }

  /** Of an earlier epoch, or of the same and stored before. */
  private boolean isBefore(KeyShare one, KeyShare other) {
    return one.epoch() < other.epoch()
        || one.epoch() == other.epoch() && stored.indexOf(one) < stored.indexOf(other);
  }

  @Override
  public Set<Integer> excluded(String key) {
    return excluded.getOrDefault(key, Set.of());
  }

  @Override
  public synchronized CompletionStage<Boolean> exclude(Exclusion exclusion) {
    exclusions.add(exclusion);
    boolean counts =
        exclusion.parties().contains(EVERY_PARTY)
            || active(exclusion.key()).filter(s -> s.epoch() > exclusion.epoch()).isEmpty();
    if (counts) {
      exclude(exclusion.key(), exclusion.parties());
      first(
              s ->
                  s.state() == KeyShare.State.ACTIVE
                      && s.session().equals(exclusion.share())
                      && !exclusion.sealed().isEmpty())
          .ifPresent(s -> replace(s, sealed(s, exclusion.sealed())));
    }
    CompletableFuture<Boolean> answer = heldExclusion;
    return answer != null ? answer : CompletableFuture.completedFuture(counts);
  }

  private void exclude(String key, Set<Integer> parties) {
    if (!parties.isEmpty()) {
      excluded.merge(key, Set.copyOf(parties), MemoryShares::union);
    }
  }

  private static Set<Integer> union(Set<Integer> some, Set<Integer> more) {
    Set<Integer> all = new HashSet<>(some);
    all.addAll(more);
    return Set.copyOf(all);
  }

  /**
   * The ledger of a party, or of this one, went back: no share that is here multiplies with it.
   *
   * @return the keys whose active share it is about
   */
  public synchronized List<String> wentBack(int party) {
    List<KeyShare> about =
        stored.stream()
            .filter(share -> share.scheme() == Scheme.SCHEME_ECDSA_SECP256K1)
            .filter(share -> party == ITSELF || share.parties().contains(party))
            .toList();
    about.forEach(share -> forgetful.merge(share.session(), Set.of(party), MemoryShares::union));
    List<String> keys =
        about.stream()
            .filter(share -> share.state() == KeyShare.State.ACTIVE)
            .map(KeyShare::key)
            .toList();
    keys.forEach(key -> exclude(key, Set.of(party)));
    return keys;
  }

  private static KeyShare sealed(KeyShare share, ByteString sealed) {
    return new KeyShare(
        share.key(),
        share.epoch(),
        share.scheme(),
        share.state(),
        share.parties(),
        share.members(),
        share.keyPublic(),
        sealed,
        share.origin(),
        share.certificate());
  }

  @Override
  public CompletionStage<Boolean> unfreeze(String key) {
    Set<Integer> before = excluded(key);
    excluded.computeIfPresent(
        key,
        (_, parties) -> {
          Set<Integer> left = new HashSet<>(parties);
          left.remove(EVERY_PARTY);
          return left.isEmpty() ? null : Set.copyOf(left);
        });
    return CompletableFuture.completedFuture(before.contains(EVERY_PARTY));
  }

  @Override
  public List<KeyTrouble> troubles() {
    return List.of();
  }

  @Override
  public void onForgotten(Consumer<String> listener) {
    forgetting = listener;
  }

  /** The operator has the shares of a key destroyed, but not those of another one of its name. */
  public void forget(String key, ByteString fingerprint) {
    synchronized (this) {
      stored.removeIf(
          share ->
              share.key().equals(key) && KeyFingerprint.of(share.keyPublic()).equals(fingerprint));
    }
    forgetting.accept(key);
  }

  @Override
  public void housekeep() {}
}
