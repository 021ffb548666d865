package io.coterie.channel.keys;

import io.coterie.channel.ChannelException;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.InvalidKeyIdException;
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
 *
 * <p>An upload that fails may have been taken or not. Its keys are offered again until the service
 * accepts them, and nothing older is forgotten before: a service that refuses uploads, or says so,
 * neither makes this process forget what peers still fetch nor makes it keep ever more.
 */
public final class PreKeys {
  private static final Logger LOG = LoggerFactory.getLogger(PreKeys.class);

  /** Key ids are 24 bits. */
  private static final int ID_LIMIT = 1 << 24;

  /** Accepted batches whose private halves are kept: the one at the service, and the one before. */
  private static final int GENERATIONS = 2;

  /** Sessions opened with one last-resort key before signed and last-resort keys are replaced. */
  private static final int LAST_RESORT_USES = 1000;

  private final ProtocolStore store;
  private final Service service;
  private final int batch;

  /** One-time keys that the service has accepted, oldest first. */
  private final ArrayDeque<Generation> generations = new ArrayDeque<>();

  /** Signed and last-resort keys that the service has accepted, oldest first. */
  private final ArrayDeque<Signed> signed = new ArrayDeque<>();

  /** One-time keys of an upload that was not accepted, or not yet. */
  private @Nullable Generation offered;

  /** Signed keys of an upload that was not accepted, or not yet. */
  private @Nullable Signed offeredSigned;

  private int nextId = 1 + new SecureRandom().nextInt(ID_LIMIT - 1);
  private boolean uploading;

  /** One-time prekeys of each kind that the service still has. */
  public record KeyCount(int ec, int kyber) {}

  /** Keeps the public halves, and hands each one-time key out once. */
  public interface Service {
    /** One-time keys that it still has. */
    CompletableFuture<KeyCount> keyCount();

    /**
     * Replaces all one-time keys, and the signed ones unless they are null.
     *
     * @return completes once the service has accepted them
     */
    CompletableFuture<Void> uploadKeys(
        @Nullable SignedPreKeyRecord signed,
        @Nullable KyberPreKeyRecord lastResort,
        List<PreKeyRecord> oneTime,
        List<KyberPreKeyRecord> kyberOneTime);
  }

  /** Ids alone: the store forgets a one-time key with its use, and nothing else may keep it. */
  private record Generation(List<Integer> ec, List<Integer> kyber) {}

  private record Signed(int ec, int kyber) {}

  /** An upload, with which {@link #accepted} is called when the service has taken it. */
  private record Upload(Generation oneTime, @Nullable Signed signed) {}

  public PreKeys(ProtocolStore store, Service service, int batch) {
    this.store = store;
    this.service = service;
    this.batch = batch;
  }

  /**
   * Sees to it that the service has keys of this process, and enough of them: uploads a full set
   * the first time, and later what is missing.
   */
  public CompletableFuture<Void> replenish() {
    boolean first;
    synchronized (this) {
      first = signed.isEmpty();
    }
    if (first) {
      return upload(true);
    }
    return service
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
  public synchronized boolean low() {
    Generation latest = generations.peekLast();
    return !uploading && (latest == null || few(latest));
  }

  private boolean few(Generation generation) {
    return store.unused(generation.ec, generation.kyber) <= batch / 3;
  }

  private CompletableFuture<Void> upload(boolean withSigned) {
    Upload upload;
    synchronized (this) {
      if (uploading) {
        return CompletableFuture.completedFuture(null);
      }
      uploading = true;
      upload = new Upload(oneTime(), withSigned ? signedKeys() : offeredSigned);
    }
    return send(upload)
        .whenComplete(
            (done, failure) -> {
              synchronized (this) {
                uploading = false;
                if (failure == null) {
                  accepted(upload);
                }
              }
              if (failure != null) {
                String why = ChannelException.of(failure).getMessage();
                LOG.warn("this member could not upload its prekeys: {}", why);
              }
            });
  }

  private CompletableFuture<Void> send(Upload upload) {
    Signed keys = upload.signed;
    try {
      return service.uploadKeys(
          keys == null ? null : store.loadSignedPreKey(keys.ec),
          keys == null ? null : store.loadKyberPreKey(keys.kyber),
          present(upload.oneTime.ec, store::loadPreKey),
          present(upload.oneTime.kyber, store::loadKyberPreKey));
    } catch (InvalidKeyIdException | RuntimeException | Error e) {
      // Any error ends here: the next upload must not wait for the end of this one.
      return CompletableFuture.failedFuture(e);
    }
  }

  /** Loads a key of the store. */
  private interface Load<T> {
    T load(int id) throws InvalidKeyIdException;
  }

  /** The keys that no peer has used yet. */
  private static <T> List<T> present(List<Integer> ids, Load<T> load) {
    List<T> keys = new ArrayList<>(ids.size());
    for (int id : ids) {
      try {
        keys.add(load.load(id));
      } catch (InvalidKeyIdException e) {
        // Used since it was made.
      }
    }
    return keys;
  }

  /** One-time keys for an upload: those of the last one if it failed, unless most are used. */
  private Generation oneTime() {
    Generation again = offered;
    if (again != null) {
      if (!few(again)) {
        return again;
      }
      // Peers have used them, so the service did take them, whatever it said.
      keep(again);
    }
    ECPrivateKey identity = store.getIdentityKeyPair().getPrivateKey();
    List<Integer> ec = new ArrayList<>(batch);
    List<Integer> kyber = new ArrayList<>(batch);
    for (int i = 0; i < batch; i++) {
      PreKeyRecord key = new PreKeyRecord(nextId(), ECKeyPair.generate());
      store.storePreKey(key.getId(), key);
      ec.add(key.getId());
      KyberPreKeyRecord kyberKey = kyber(nextId(), identity);
      store.storeKyberPreKey(kyberKey.getId(), kyberKey);
      kyber.add(kyberKey.getId());
    }
    Generation made = new Generation(ec, kyber);
    offered = made;
    return made;
  }

  private Signed signedKeys() {
    Signed again = offeredSigned;
    if (again != null) {
      return again;
    }
    ECPrivateKey identity = store.getIdentityKeyPair().getPrivateKey();
    SignedPreKeyRecord ec = signed(nextId(), identity);
    KyberPreKeyRecord lastResort = kyber(nextId(), identity);
    store.storeSignedPreKey(ec.getId(), ec);
    store.storeLastResort(lastResort.getId(), lastResort);
    Signed made = new Signed(ec.getId(), lastResort.getId());
    offeredSigned = made;
    return made;
  }

  /** The service has these keys now: those before the last are not fetched any more. */
  private void accepted(Upload upload) {
    keep(upload.oneTime);
    Signed keys = upload.signed;
    if (keys != null) {
      offeredSigned = null;
      signed.add(keys);
      if (signed.size() > GENERATIONS) {
        Signed old = signed.remove();
        store.removeSignedPreKey(old.ec);
        store.removeKyberPreKey(old.kyber);
      }
    }
  }

  private void keep(Generation generation) {
    offered = null;
    generations.add(generation);
    if (generations.size() > GENERATIONS) {
      Generation old = generations.remove();
      old.ec.forEach(store::removePreKey);
      old.kyber.forEach(store::removeKyberPreKey);
    }
  }

  private int nextId() {
    nextId = nextId + 1 < ID_LIMIT ? nextId + 1 : 1;
    return nextId;
  }

  /** A signed prekey under that identity. */
  public static SignedPreKeyRecord signed(int id, ECPrivateKey identity) {
    ECKeyPair key = ECKeyPair.generate();
    return new SignedPreKeyRecord(
        id,
        System.currentTimeMillis(),
        key,
        identity.calculateSignature(key.getPublicKey().serialize()));
  }

  /** A Kyber prekey under that identity. */
  public static KyberPreKeyRecord kyber(int id, ECPrivateKey identity) {
    KEMKeyPair key = KEMKeyPair.generate(KEMKeyType.KYBER_1024);
    return new KyberPreKeyRecord(
        id,
        System.currentTimeMillis(),
        key,
        identity.calculateSignature(key.getPublicKey().serialize()));
  }
}
