package io.coterie.channel.keys;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.signal.libsignal.protocol.IdentityKey;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.InvalidKeyIdException;
import org.signal.libsignal.protocol.NoSessionException;
import org.signal.libsignal.protocol.ReusedBaseKeyException;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.ecc.ECKeyPair;
import org.signal.libsignal.protocol.ecc.ECPublicKey;
import org.signal.libsignal.protocol.state.IdentityKeyStore.Direction;

class ProtocolStoreTest {
  private final IdentityKeyPair own = IdentityKeyPair.generate();
  private final ProtocolStore store = new ProtocolStore(own, 1);
  private final SignalProtocolAddress member =
      new SignalProtocolAddress(UUID.randomUUID().toString(), 1);
  private final IdentityKey pinned = IdentityKeyPair.generate().getPublicKey();
  private final IdentityKey other = IdentityKeyPair.generate().getPublicKey();

  @Test
  void onlyThePinnedIdentityIsTrusted() {
    store.pin(member, pinned);
    for (Direction direction : Direction.values()) {
      assertThat(store.isTrustedIdentity(member, pinned, direction)).isTrue();
      assertThat(store.isTrustedIdentity(member, other, direction)).isFalse();
      assertThat(
              store.isTrustedIdentity(
                  new SignalProtocolAddress(member.getName(), 2), pinned, direction))
          .isFalse();
    }
  }

  @Test
  void nothingOverwritesAPin() {
    store.saveIdentity(member, other);
    assertThat(store.isTrustedIdentity(member, other, Direction.SENDING)).isFalse();
    assertThat(store.getIdentity(member)).isNull();
    store.pin(member, pinned);
    store.saveIdentity(member, other);
    assertThat(store.getIdentity(member)).isEqualTo(pinned);
    store.unpin(member);
    assertThat(store.isTrustedIdentity(member, pinned, Direction.RECEIVING)).isFalse();
  }

  @Test
  void oneTimeKyberKeyIsGoneAfterUse() throws Exception {
    store.storeKyberPreKey(5, PreKeys.kyber(5, own.getPrivateKey()));
    store.markKyberPreKeyUsed(5, 1, ECKeyPair.generate().getPublicKey());
    assertThatThrownBy(() -> store.loadKyberPreKey(5)).isInstanceOf(InvalidKeyIdException.class);
  }

  @Test
  void lastResortKeyRefusesAReplayedFirstMessage() throws Exception {
    ECPublicKey base = ECKeyPair.generate().getPublicKey();
    store.storeLastResort(6, PreKeys.kyber(6, own.getPrivateKey()));
    store.markKyberPreKeyUsed(6, 1, base);
    store.markKyberPreKeyUsed(6, 1, ECKeyPair.generate().getPublicKey());
    assertThat(store.containsKyberPreKey(6)).isTrue();
    assertThat(store.lastResortUses(6)).isEqualTo(2);
    assertThatThrownBy(() -> store.markKyberPreKeyUsed(6, 1, new ECPublicKey(base.serialize())))
        .isInstanceOf(ReusedBaseKeyException.class);
  }

  @Test
  void missingSessionIsSaid() {
    assertThatThrownBy(() -> store.loadExistingSessions(List.of(member)))
        .isInstanceOf(NoSessionException.class);
  }
}
