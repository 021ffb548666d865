package io.coterie.simulation;

import io.coterie.mpc.MpcCore;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.mpc.Vault;
import io.coterie.signer.nativecore.VaultCore;
import io.coterie.signer.party.ProtocolCore;
import java.util.Map;
import java.util.TreeMap;

/** Where the cores of a schedule come from: one for each process of a party. */
sealed interface Cores {
  /** New ones. */
  static Cores of(Setting setting, Chance chance) {
    return setting.nativeCore()
        ? new Native(setting.parties(), chance)
        : new Fast(setting.parties());
  }

  /** Public evidence key of each party, by id. */
  Map<Integer, byte[]> evidence();

  /** The core of a new process. */
  Opened open(int party, Chance chance);

  /** The core of a coordinator. */
  MpcCore observer();

  /**
   * The core of a process.
   *
   * @param close ends it with the process
   */
  record Opened(ProtocolCore core, Runnable close) {}

  /** A core that does no cryptography. */
  record Fast(int parties) implements Cores {
    @Override
    public Map<Integer, byte[]> evidence() {
      Map<Integer, byte[]> keys = new TreeMap<>();
      for (int party = 1; party <= parties; party++) {
        keys.put(party, Identities.evidenceKey(party));
      }
      return keys;
    }

    @Override
    public Opened open(int party, Chance chance) {
      return new Opened(new FastCore(party, chance), () -> {});
    }

    @Override
    public MpcCore observer() {
      return new FastObserver();
    }
  }

  /**
   * The native core. It draws its own randomness: nothing in a schedule depends on the bytes that
   * it makes.
   */
  final class Native implements Cores {
    private static final NativeMpcCore CORE = NativeMpcCore.load();

    private final Map<Integer, byte[]> dataKeys = new TreeMap<>();
    private final Map<Integer, Vault.SealedIdentity> identities = new TreeMap<>();

    Native(int parties, Chance chance) {
      for (int party = 1; party <= parties; party++) {
        byte[] dataKey = chance.bytes(32);
        dataKeys.put(party, dataKey);
        try (Vault vault = CORE.openVault(dataKey.clone())) {
          identities.put(party, vault.createIdentity(Identities.party(party)));
        }
      }
    }

    private Vault.SealedIdentity identity(int party) {
      Vault.SealedIdentity identity = identities.get(party);
      if (identity == null) {
        throw new IllegalArgumentException("no party " + party);
      }
      return identity;
    }

    @Override
    public Map<Integer, byte[]> evidence() {
      Map<Integer, byte[]> keys = new TreeMap<>();
      identities.forEach((party, identity) -> keys.put(party, identity.evidenceKey()));
      return keys;
    }

    @Override
    public Opened open(int party, Chance chance) {
      byte[] dataKey = dataKeys.getOrDefault(party, new byte[0]);
      Vault vault = CORE.openVault(dataKey.clone());
      return new Opened(new VaultCore(vault, identity(party).sealed()), vault::close);
    }

    @Override
    public MpcCore observer() {
      return CORE;
    }
  }
}
