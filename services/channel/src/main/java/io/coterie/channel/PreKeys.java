package io.coterie.channel;

import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.signal.libsignal.protocol.ecc.ECKeyPair;
import org.signal.libsignal.protocol.ecc.ECPrivateKey;
import org.signal.libsignal.protocol.kem.KEMKeyPair;
import org.signal.libsignal.protocol.kem.KEMKeyType;
import org.signal.libsignal.protocol.state.KyberPreKeyRecord;
import org.signal.libsignal.protocol.state.PreKeyRecord;
import org.signal.libsignal.protocol.state.SignedPreKeyRecord;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The prekeys of this process: made at each start, replaced as they are used up.
 *
 * <p>The service replaces all one-time keys of a device with each upload. The private halves of the
 * batch before are kept, because a peer may have fetched one that it has not used yet.
 */
final class PreKeys {
  private static final Logger LOG = LoggerFactory.getLogger(PreKeys.class);

  /** Key ids are 24 bits. */
  private static final int ID_LIMIT = 1 << 24;

  /** Generations whose private halves are kept: the one at the service, and the one before. */
  private static final int GENERATIONS = 2;

  /** Sessions opened with one last-resort key before signed and last-resort keys are replaced. */
  private static final int LAST_RESORT_USES = 1000;

  private final ProtocolStore store;
  private final Messaging messaging;
  private final int batch;
  private final ArrayDeque<Generation> generations = new ArrayDeque<>();
  private final ArrayDeque<Signed> signed = new ArrayDeque<>();
  private int nextId = 1 + new SecureRandom().nextInt(ID_LIMIT - 1);
  private boolean uploading;

  /** Whether the service has signed keys of this process, not of one before. */
  private boolean current;

  private record Generation(List<Integer> ec, List<Integer> kyber) {}

  private record Signed(int ec, int kyber) {}

  PreKeys(ProtocolStore store, Messaging messaging, int batch) {
    this.store = store;
    this.messaging = messaging;
    this.batch = batch;
  }

  /**
   * Sees to it that the service has keys of this process, and enough of them: uploads a full set
   * the first time, and later what is missing.
   */
  CompletableFuture<Void> replenish() {
    boolean first;
    synchronized (this) {
      first = !current;
    }
    if (first) {
      return upload(true);
    }
    return messaging
        .keyCount()
        .thenCompose(
            count -> {
              boolean few = Math.min(count.ec(), count.kyber()) <= batch / 3;
              boolean worn;
              synchronized (this) {
                Signed latest = signed.peekLast();
                worn = latest == null || store.lastResortUses(latest.kyber) >= LAST_RESORT_USES;
              }
              return few || worn ? upload(worn) : CompletableFuture.completedFuture(null);
            });
  }

  /**
   * Whether the service has no keys of this process, or most of them have been used, as far as is
   * known here.
   */
  boolean low() {
    synchronized (this) {
      Generation latest = generations.peekLast();
      return !uploading
          && (!current || latest == null || store.unused(latest.ec, latest.kyber) <= batch / 3);
    }
  }

  private CompletableFuture<Void> upload(boolean withSigned) {
    SignedPreKeyRecord signedKey = null;
    KyberPreKeyRecord lastResort = null;
    List<PreKeyRecord> ec = new ArrayList<>(batch);
    List<KyberPreKeyRecord> kyber = new ArrayList<>(batch);
    synchronized (this) {
      if (uploading) {
        return CompletableFuture.completedFuture(null);
      }
      uploading = true;
      ECPrivateKey identity = store.getIdentityKeyPair().getPrivateKey();
      if (withSigned) {
        signedKey = signed(nextId(), identity);
        lastResort = kyber(nextId(), identity);
        store.storeSignedPreKey(signedKey.getId(), signedKey);
        store.storeLastResort(lastResort.getId(), lastResort);
        signed.add(new Signed(signedKey.getId(), lastResort.getId()));
        if (signed.size() > GENERATIONS) {
          Signed old = signed.remove();
          store.removeSignedPreKey(old.ec);
          store.removeKyberPreKey(old.kyber);
        }
      }
      for (int i = 0; i < batch; i++) {
        PreKeyRecord key = new PreKeyRecord(nextId(), ECKeyPair.generate());
        store.storePreKey(key.getId(), key);
        ec.add(key);
        KyberPreKeyRecord kyberKey = kyber(nextId(), identity);
        store.storeKyberPreKey(kyberKey.getId(), kyberKey);
        kyber.add(kyberKey);
      }
      generations.add(
          new Generation(
              ec.stream().map(PreKeyRecord::getId).toList(),
              kyber.stream().map(KyberPreKeyRecord::getId).toList()));
      if (generations.size() > GENERATIONS) {
        Generation old = generations.remove();
        old.ec.forEach(store::removePreKey);
        old.kyber.forEach(store::removeKyberPreKey);
      }
    }
    return messaging
        .uploadKeys(signedKey, lastResort, ec, kyber)
        .whenComplete(
            (done, failure) -> {
              synchronized (this) {
                uploading = false;
                current |= failure == null;
              }
              if (failure != null) {
                LOG.warn("prekeys not uploaded: {}", Failures.of(failure).getMessage());
              }
            });
  }

  private int nextId() {
    nextId = nextId + 1 < ID_LIMIT ? nextId + 1 : 1;
    return nextId;
  }

  /** A signed prekey under that identity. */
  static SignedPreKeyRecord signed(int id, ECPrivateKey identity) {
    ECKeyPair key = ECKeyPair.generate();
    return new SignedPreKeyRecord(
        id,
        System.currentTimeMillis(),
        key,
        identity.calculateSignature(key.getPublicKey().serialize()));
  }

  /** A Kyber prekey under that identity. */
  static KyberPreKeyRecord kyber(int id, ECPrivateKey identity) {
    KEMKeyPair key = KEMKeyPair.generate(KEMKeyType.KYBER_1024);
    return new KyberPreKeyRecord(
        id,
        System.currentTimeMillis(),
        key,
        identity.calculateSignature(key.getPublicKey().serialize()));
  }
}
