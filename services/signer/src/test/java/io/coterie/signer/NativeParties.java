package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.mpc.Vault;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.signer.nativecore.VaultCore;
import io.coterie.signer.party.ProtocolCore;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.bouncycastle.crypto.InvalidCipherTextException;
import org.bouncycastle.crypto.modes.GCMSIVBlockCipher;
import org.bouncycastle.crypto.params.AEADParameters;
import org.bouncycastle.crypto.params.KeyParameter;
import org.bouncycastle.math.ec.rfc8032.Ed25519;

/** The native core for each party of an installation, with a vault of its own. */
final class NativeParties implements AutoCloseable {
  static final List<String> NAMES = List.of("alpha", "bravo", "charlie");

  private final NativeMpcCore nativeCore = NativeMpcCore.load();
  private final Map<String, byte[]> dataKeys = new HashMap<>();
  private final Map<String, Vault.SealedIdentity> identities = new HashMap<>();
  private final Map<String, Vault> vaults = new HashMap<>();
  private final Map<String, ProtocolCore> cores = new HashMap<>();

  NativeParties() {
    this(NAMES);
  }

  NativeParties(List<String> names) {
    for (String name : names) {
      byte[] dataKey = new byte[32];
      new SecureRandom().nextBytes(dataKey);
      dataKeys.put(name, dataKey);
      try (Vault vault = nativeCore.openVault(dataKey.clone())) {
        identities.put(name, vault.createIdentity(name));
      }
    }
  }

  Map<String, byte[]> evidence() {
    Map<String, byte[]> keys = new HashMap<>();
    identities.forEach((name, identity) -> keys.put(name, identity.evidenceKey()));
    return keys;
  }

  /** Opens a party's vault as a new process does. */
  ProtocolCore open(String name) {
    Vault before = vaults.remove(name);
    if (before != null) {
      before.close();
    }
    Vault vault = nativeCore.openVault(Objects.requireNonNull(dataKeys.get(name)).clone());
    vaults.put(name, vault);
    ProtocolCore core = new VaultCore(vault, Objects.requireNonNull(identities.get(name)).sealed());
    cores.put(name, core);
    return core;
  }

  /** The core that a party has now. */
  ProtocolCore core(String name) {
    return Objects.requireNonNull(cores.get(name));
  }

  /**
   * Signs with the evidence key that a party's vault has sealed, as engine/src/seal.rs draws it. A
   * corrupt party can do so, and nobody else.
   */
  byte[] signAs(String name, byte[] message) {
    byte[] blob = Objects.requireNonNull(identities.get(name)).sealed();
    int head = 4 + (blob[2] << 8) + blob[3];
    // The label after the head is empty: four bytes of its length.
    byte[] associated = Arrays.copyOf(Arrays.copyOf(blob, head), head + 4);
    GCMSIVBlockCipher cipher = new GCMSIVBlockCipher();
    cipher.init(
        false,
        new AEADParameters(
            new KeyParameter(Objects.requireNonNull(dataKeys.get(name))),
            8 * 16,
            Arrays.copyOfRange(blob, head, head + 12),
            associated));
    int sealedBytes = blob.length - head - 12;
    byte[] seed = new byte[cipher.getOutputSize(sealedBytes)];
    byte[] signature = new byte[Ed25519.SIGNATURE_SIZE];
    try {
      int done = cipher.processBytes(blob, head + 12, sealedBytes, seed, 0);
      cipher.doFinal(seed, done);
    } catch (InvalidCipherTextException e) {
      throw new IllegalStateException(e);
    }
    Ed25519.sign(seed, 0, message, 0, message.length, signature, 0);
    return signature;
  }

  /** A member as the core knows it. */
  static Party party(Installation i, int id) {
    return Party.newBuilder()
        .setId(id)
        .setEvidenceKey(
            ByteString.copyFrom(i.network.roster().byPartyId(id).orElseThrow().evidenceKey()))
        .build();
  }

  /**
   * The result of the coordinator's observer, from the envelopes that came to it.
   *
   * @param config of the session, but for its id and its parties
   */
  static Done combine(Installation i, SessionId session, SessionConfig.Builder config, int... set) {
    return combine(i, session, 1, config, set);
  }

  /**
   * The same of a session whose every party sends several broadcasts.
   *
   * @param broadcasts how many
   */
  static Done combine(
      Installation i, SessionId session, int broadcasts, SessionConfig.Builder config, int... set) {
    config.setSessionId(session.bytes());
    for (int id : set) {
      config.addParties(party(i, id));
    }
    Installation.until(
        "partials of " + session, () -> i.coordinator.partials(session) == broadcasts * set.length);
    try (MpcSession observer = NativeMpcCore.load().observe(config.build())) {
      for (var envelope : i.coordinator.envelopes) {
        if (envelope.session().equals(session.bytes())) {
          Step step = observer.handle(envelope.sender().partyId(), envelope.envelope());
          assertThat(step.hasAbort()).as(step.toString()).isFalse();
          if (step.hasDone()) {
            return step.getDone();
          }
        }
      }
    }
    throw new AssertionError("no signature");
  }

  @Override
  public void close() {
    vaults.values().forEach(Vault::close);
    assertThat(nativeCore.openHandles()).as("every session is closed").isZero();
  }
}
