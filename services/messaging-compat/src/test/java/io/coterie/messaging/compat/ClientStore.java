package io.coterie.messaging.compat;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.state.KyberPreKeyRecord;
import org.signal.libsignal.protocol.state.SessionRecord;
import org.signal.libsignal.protocol.state.impl.InMemorySignalProtocolStore;
import org.whispersystems.signalservice.api.SignalServiceAccountDataStore;
import org.whispersystems.signalservice.api.SignalServiceDataStore;
import org.whispersystems.signalservice.api.push.DistributionId;
import org.whispersystems.signalservice.api.push.ServiceId;

/** The state that a client keeps of one of its identities, in memory. */
final class ClientStore extends InMemorySignalProtocolStore
    implements SignalServiceAccountDataStore {
  private final Map<DistributionId, Set<SignalProtocolAddress>> shared = new HashMap<>();
  private final Map<SignalProtocolAddress, SessionRecord> sessions = new HashMap<>();
  private final Map<Integer, KyberPreKeyRecord> lastResort = new HashMap<>();

  ClientStore(IdentityKeyPair identity, int registrationId) {
    super(identity, registrationId);
  }

  /** The store of a client that uses its account identity only. */
  SignalServiceDataStore asDataStore() {
    return new SignalServiceDataStore() {
      @Override
      public SignalServiceAccountDataStore get(ServiceId id) {
        return ClientStore.this;
      }

      @Override
      public SignalServiceAccountDataStore aci() {
        return ClientStore.this;
      }

      @Override
      public SignalServiceAccountDataStore pni() {
        return ClientStore.this;
      }

      @Override
      public boolean isMultiDevice() {
        return false;
      }
    };
  }

  @Override
  public boolean isMultiDevice() {
    return false;
  }

  @Override
  public void storeSession(SignalProtocolAddress address, SessionRecord session) {
    super.storeSession(address, session);
    sessions.put(address, session);
  }

  /** An archived session encrypts nothing. */
  @Override
  public boolean containsSession(SignalProtocolAddress address) {
    return super.containsSession(address) && loadSession(address).hasSenderChain();
  }

  @Override
  public void archiveSession(SignalProtocolAddress address) {
    // The client names an account by its number, too.
    if (super.containsSession(address)) {
      SessionRecord session = loadSession(address);
      session.archiveCurrentState();
      storeSession(address, session);
    }
  }

  @Override
  public Map<SignalProtocolAddress, SessionRecord> getAllAddressesWithActiveSessions(
      List<String> names) {
    return sessions.entrySet().stream()
        .filter(e -> names.contains(e.getKey().getName()) && containsSession(e.getKey()))
        .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
  }

  @Override
  public Set<SignalProtocolAddress> getSenderKeySharedWith(DistributionId id) {
    return Set.copyOf(shared.getOrDefault(id, Set.of()));
  }

  @Override
  public void markSenderKeySharedWith(
      DistributionId id, Collection<SignalProtocolAddress> addresses) {
    shared.computeIfAbsent(id, key -> new HashSet<>()).addAll(addresses);
  }

  @Override
  public void clearSenderKeySharedWith(Collection<SignalProtocolAddress> addresses) {
    shared.values().forEach(known -> known.removeAll(addresses));
  }

  @Override
  public void markAllOneTimeEcPreKeysStaleIfNecessary(long staleTime) {}

  @Override
  public void deleteAllStaleOneTimeEcPreKeys(long threshold, int minimum) {}

  @Override
  public void markAllOneTimeKyberPreKeysStaleIfNecessary(long staleTime) {}

  @Override
  public void deleteAllStaleOneTimeKyberPreKeys(long threshold, int minimum) {}

  @Override
  public void storeLastResortKyberPreKey(int id, KyberPreKeyRecord key) {
    storeKyberPreKey(id, key);
    lastResort.put(id, key);
  }

  @Override
  public List<KyberPreKeyRecord> loadLastResortKyberPreKeys() {
    return List.copyOf(lastResort.values());
  }

  @Override
  public void removeKyberPreKey(int id) {
    lastResort.remove(id);
  }
}
