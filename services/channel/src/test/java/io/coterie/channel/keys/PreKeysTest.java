package io.coterie.channel.keys;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.channel.ChannelException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.ecc.ECKeyPair;
import org.signal.libsignal.protocol.state.KyberPreKeyRecord;
import org.signal.libsignal.protocol.state.PreKeyRecord;
import org.signal.libsignal.protocol.state.SignedPreKeyRecord;

/** Keys that a peer may still fetch are kept, whatever the service says about an upload. */
class PreKeysTest {
  private static final int BATCH = 3;

  private final ProtocolStore store = new ProtocolStore(IdentityKeyPair.generate(), 1);
  private final FakeService service = new FakeService();
  private final PreKeys preKeys = new PreKeys(store, service, BATCH);

  /** Takes uploads, refuses them, or takes them and says that it did not. */
  private static final class FakeService implements PreKeys.Service {
    boolean takes = true;
    boolean confirms = true;
    boolean breaks;
    int uploads;
    @Nullable SignedPreKeyRecord signed;
    @Nullable KyberPreKeyRecord lastResort;
    List<PreKeyRecord> ec = new ArrayList<>();
    List<KyberPreKeyRecord> kyber = new ArrayList<>();

    @Override
    public CompletableFuture<PreKeys.KeyCount> keyCount() {
      return CompletableFuture.completedFuture(new PreKeys.KeyCount(0, 0));
    }

    @Override
    public CompletableFuture<Void> uploadKeys(
        @Nullable SignedPreKeyRecord signed,
        @Nullable KyberPreKeyRecord lastResort,
        List<PreKeyRecord> oneTime,
        List<KyberPreKeyRecord> kyberOneTime) {
      uploads++;
      if (breaks) {
        throw new AssertionError("made for a test");
      }
      if (takes) {
        this.signed = signed == null ? this.signed : signed;
        this.lastResort = lastResort == null ? this.lastResort : lastResort;
        ec = List.copyOf(oneTime);
        kyber = List.copyOf(kyberOneTime);
      }
      return confirms
          ? CompletableFuture.completedFuture(null)
          : CompletableFuture.failedFuture(
              new ChannelException(ChannelException.Cause.UNAVAILABLE, "not taken"));
    }
  }

  private void replenish(int times) {
    for (int i = 0; i < times; i++) {
      // The service refuses some: the answer is not of interest.
      preKeys.replenish().exceptionally(failure -> null).join();
    }
  }

  /** A peer that fetches now opens its session with keys that this process has. */
  private void assertUsable() {
    assertThat(service.ec).isNotEmpty().allMatch(key -> store.containsPreKey(key.getId()));
    assertThat(service.kyber).isNotEmpty().allMatch(key -> store.containsKyberPreKey(key.getId()));
    assertThat(store.containsSignedPreKey(service.signed.getId())).isTrue();
    assertThat(store.containsKyberPreKey(service.lastResort.getId())).isTrue();
  }

  @Test
  void keysAtTheServiceOutliveUploadsThatItRefuses() {
    replenish(1);
    service.takes = false;
    service.confirms = false;
    replenish(5);
    assertThat(service.uploads).isEqualTo(6);
    assertUsable();
  }

  @Test
  void keysAtTheServiceOutliveUploadsThatItTookAndDenied() {
    service.confirms = false;
    replenish(1);
    service.takes = false;
    replenish(5);
    assertUsable();
    service.takes = true;
    service.confirms = true;
    replenish(1);
    assertUsable();
  }

  @Test
  void anErrorOfOneUploadDoesNotStopTheNext() {
    service.breaks = true;
    replenish(1);
    assertThat(preKeys.low()).isTrue();
    service.breaks = false;
    replenish(1);
    assertUsable();
  }

  /** It would otherwise fill the memory, one batch a second. */
  @Test
  void refusedUploadsDoNotPileUp() {
    service.takes = false;
    service.confirms = false;
    replenish(1);
    int first = store.loadKyberPreKeys().size();
    replenish(20);
    assertThat(store.loadKyberPreKeys()).hasSize(first);
    assertThat(store.loadSignedPreKeys()).hasSize(1);
  }

  /** Peers use up what the service took, so other keys must follow though it denies to have any. */
  @Test
  void usedKeysAreReplacedThoughTheServiceDeniesToHaveThem() throws Exception {
    service.confirms = false;
    for (int i = 0; i < 5; i++) {
      replenish(1);
      assertUsable();
      for (PreKeyRecord key : service.ec) {
        store.removePreKey(key.getId());
      }
      for (KyberPreKeyRecord key : service.kyber) {
        store.markKyberPreKeyUsed(
            key.getId(), service.signed.getId(), ECKeyPair.generate().getPublicKey());
      }
    }
    assertThat(store.loadKyberPreKeys()).as("the last resort").hasSize(1);
  }

  @Test
  void theBatchBeforeTheLastIsForgotten() {
    replenish(5);
    assertThat(store.loadKyberPreKeys()).hasSize(2 * BATCH + 1);
    assertUsable();
  }
}
