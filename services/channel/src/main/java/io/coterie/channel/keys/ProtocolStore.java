package io.coterie.channel.keys;

import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.IdentityKey;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.InvalidKeyIdException;
import org.signal.libsignal.protocol.NoSessionException;
import org.signal.libsignal.protocol.ReusedBaseKeyException;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.ecc.ECPublicKey;
import org.signal.libsignal.protocol.groups.state.SenderKeyRecord;
import org.signal.libsignal.protocol.state.KyberPreKeyRecord;
import org.signal.libsignal.protocol.state.PreKeyRecord;
import org.signal.libsignal.protocol.state.SessionRecord;
import org.signal.libsignal.protocol.state.SignalProtocolStore;
import org.signal.libsignal.protocol.state.SignedPreKeyRecord;

/**
 * The state libsignal works on, in memory only.
 *
 * <p>libsignal copies a record when it loads it and stores a new one when it has changed it, so
 * records are immutable here and need no copy. A lock must cover the whole operation of load,
 * change and store: the callers take one lock for each peer's session and one for each distribution
 * id. Different keys of these maps never wait for each other.
 *
 * <p>Identities come from the pinned roster. Nothing libsignal has seen on the network can change
 * them: there is no trust on first use.
 */
public final class ProtocolStore implements SignalProtocolStore {
  private final IdentityKeyPair identity;
  private final int registrationId;
  private final Map<Name, IdentityKey> pinned = new ConcurrentHashMap<>();

  private final Map<Name, SessionRecord> sessions = new ConcurrentHashMap<>();
  private final Map<SenderKeyName, SenderKeyRecord> senderKeys = new ConcurrentHashMap<>();
  private final Map<Integer, PreKeyRecord> preKeys = new ConcurrentHashMap<>();
  private final Map<Integer, SignedPreKeyRecord> signedPreKeys = new ConcurrentHashMap<>();
  private final Map<Integer, KyberPreKeyRecord> kyberPreKeys = new ConcurrentHashMap<>();

  /**
   * Base keys seen with each last-resort Kyber key, so that a replayed first message is refused.
   */
  private final Map<Integer, Set<ECPublicKey>> lastResort = new ConcurrentHashMap<>();

  private record SenderKeyName(Name sender, UUID distribution) {}

  /**
   * An address that is compared in Java. Each look at libsignal's, also by a map whose key it is,
   * is a call of the native library.
   */
  record Name(String aci, int deviceId) {
    static Name of(SignalProtocolAddress address) {
      return new Name(address.getName(), address.getDeviceId());
    }
  }

  public ProtocolStore(IdentityKeyPair identity, int registrationId) {
    this.identity = identity;
    this.registrationId = registrationId;
  }

  /** The address by which libsignal knows a member. */
  public static SignalProtocolAddress address(Member member) {
    return new SignalProtocolAddress(member.aci().toString(), member.deviceId());
  }

  /** Trusts that key, and no other, for that address. */
  public void pin(SignalProtocolAddress address, IdentityKey key) {
    pinned.put(Name.of(address), key);
  }

  /** Forgets a member that has left the roster. */
  public void unpin(SignalProtocolAddress address) {
    Name gone = Name.of(address);
    pinned.remove(gone);
    sessions.remove(gone);
    senderKeys.keySet().removeIf(name -> name.sender.equals(gone));
  }

  // Identities

  @Override
  public IdentityKeyPair getIdentityKeyPair() {
    return identity;
  }

  @Override
  public int getLocalRegistrationId() {
    return registrationId;
  }

  @Override
  public IdentityChange saveIdentity(SignalProtocolAddress address, IdentityKey key) {
    return IdentityChange.NEW_OR_UNCHANGED;
  }

  @Override
  public boolean isTrustedIdentity(
      SignalProtocolAddress address, IdentityKey key, Direction direction) {
    return key.equals(pinned.get(Name.of(address)));
  }

  @Override
  public @Nullable IdentityKey getIdentity(SignalProtocolAddress address) {
    return pinned.get(Name.of(address));
  }

  // Sessions

  @Override
  public @Nullable SessionRecord loadSession(SignalProtocolAddress address) {
    return sessions.get(Name.of(address));
  }

  @Override
  public List<SessionRecord> loadExistingSessions(List<SignalProtocolAddress> addresses)
      throws NoSessionException {
    List<SessionRecord> found = new ArrayList<>(addresses.size());
    for (SignalProtocolAddress address : addresses) {
      SessionRecord session = sessions.get(Name.of(address));
      if (session == null) {
        throw new NoSessionException(address, "no session with " + address);
      }
      found.add(session);
    }
    return found;
  }

  @Override
  public List<Integer> getSubDeviceSessions(String name) {
    return sessions.keySet().stream()
        .filter(address -> address.aci.equals(name) && address.deviceId != 1)
        .map(Name::deviceId)
        .toList();
  }

  @Override
  public void storeSession(SignalProtocolAddress address, SessionRecord session) {
    sessions.put(Name.of(address), session);
  }

  @Override
  public boolean containsSession(SignalProtocolAddress address) {
    return containsSession(Name.of(address));
  }

  /** The same for callers that ask often. */
  boolean containsSession(Name address) {
    return sessions.containsKey(address);
  }

  @Override
  public void deleteSession(SignalProtocolAddress address) {
    sessions.remove(Name.of(address));
  }

  @Override
  public void deleteAllSessions(String name) {
    sessions.keySet().removeIf(address -> address.aci.equals(name));
  }

  // Sender keys

  @Override
  public void storeSenderKey(
      SignalProtocolAddress sender, UUID distribution, SenderKeyRecord record) {
    senderKeys.put(new SenderKeyName(Name.of(sender), distribution), record);
  }

  @Override
  public @Nullable SenderKeyRecord loadSenderKey(SignalProtocolAddress sender, UUID distribution) {
    return senderKeys.get(new SenderKeyName(Name.of(sender), distribution));
  }

  /** Distribution ids of the keys that are held of that sender. */
  Set<UUID> senderKeys(SignalProtocolAddress sender) {
    Name of = Name.of(sender);
    return senderKeys.keySet().stream()
        .filter(name -> name.sender.equals(of))
        .map(SenderKeyName::distribution)
        .collect(Collectors.toUnmodifiableSet());
  }

  void deleteSenderKey(SignalProtocolAddress sender, UUID distribution) {
    senderKeys.remove(new SenderKeyName(Name.of(sender), distribution));
  }

  // Prekeys

  @Override
  public PreKeyRecord loadPreKey(int id) throws InvalidKeyIdException {
    return found(preKeys.get(id), id);
  }

  @Override
  public void storePreKey(int id, PreKeyRecord record) {
    preKeys.put(id, record);
  }

  @Override
  public boolean containsPreKey(int id) {
    return preKeys.containsKey(id);
  }

  @Override
  public void removePreKey(int id) {
    preKeys.remove(id);
  }

  @Override
  public SignedPreKeyRecord loadSignedPreKey(int id) throws InvalidKeyIdException {
    return found(signedPreKeys.get(id), id);
  }

  @Override
  public List<SignedPreKeyRecord> loadSignedPreKeys() {
    return List.copyOf(signedPreKeys.values());
  }

  @Override
  public void storeSignedPreKey(int id, SignedPreKeyRecord record) {
    signedPreKeys.put(id, record);
  }

  @Override
  public boolean containsSignedPreKey(int id) {
    return signedPreKeys.containsKey(id);
  }

  @Override
  public void removeSignedPreKey(int id) {
    signedPreKeys.remove(id);
  }

  @Override
  public KyberPreKeyRecord loadKyberPreKey(int id) throws InvalidKeyIdException {
    return found(kyberPreKeys.get(id), id);
  }

  @Override
  public List<KyberPreKeyRecord> loadKyberPreKeys() {
    return List.copyOf(kyberPreKeys.values());
  }

  @Override
  public void storeKyberPreKey(int id, KyberPreKeyRecord record) {
    kyberPreKeys.put(id, record);
  }

  /** Stores a Kyber prekey that is not used up by its first use. */
  void storeLastResort(int id, KyberPreKeyRecord record) {
    lastResort.put(id, ConcurrentHashMap.newKeySet());
    kyberPreKeys.put(id, record);
  }

  void removeKyberPreKey(int id) {
    kyberPreKeys.remove(id);
    lastResort.remove(id);
  }

  @Override
  public boolean containsKyberPreKey(int id) {
    return kyberPreKeys.containsKey(id);
  }

  @Override
  public void markKyberPreKeyUsed(int id, int signedPreKeyId, ECPublicKey baseKey)
      throws ReusedBaseKeyException {
    Set<ECPublicKey> seen = lastResort.get(id);
    if (seen == null) {
      kyberPreKeys.remove(id);
    } else if (!seen.add(baseKey)) {
      throw new ReusedBaseKeyException("this first message was received before");
    }
  }

  /** Sessions that were opened with a last-resort key. */
  int lastResortUses(int id) {
    Set<ECPublicKey> seen = lastResort.get(id);
    return seen == null ? 0 : seen.size();
  }

  /** One-time prekeys, of the kind there are fewer of, among those ids that are still unused. */
  int unused(List<Integer> ecIds, List<Integer> kyberIds) {
    return Math.min(
        (int) ecIds.stream().filter(preKeys::containsKey).count(),
        (int) kyberIds.stream().filter(kyberPreKeys::containsKey).count());
  }

  private static <T> T found(@Nullable T record, int id) throws InvalidKeyIdException {
    if (record == null) {
      throw new InvalidKeyIdException("no prekey " + id + " in this process");
    }
    return record;
  }
}
