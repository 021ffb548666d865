package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditRecord;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.KeyTrouble;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Checks of a schedule after faults and lies have stopped: the stores, and that work goes on. */
final class Ending {

  /** The name of these exclusions in the coverage. */
  static final String EXCLUDED_FOR_ENDS = "excluded for ends in a multiplication";

  private static final Duration PATIENCE = Duration.ofSeconds(20);
  private static final Duration REFRESH_PATIENCE = Duration.ofSeconds(60);
  private static final int PAGE = 500;

  private final World world;
  private final SimulatedCoordinator coordinator;
  private final List<SimulatedParty> parties;

  Ending(World world, SimulatedCoordinator coordinator, List<SimulatedParty> parties) {
    this.world = world;
    this.coordinator = coordinator;
    this.parties = parties;
  }

  void check() {
    world.checker().checkSignatures();
    coordinator
        .followed()
        .forEach(each -> world.checker().violated(Breach.SESSION_WITHOUT_END, each.toString()));
    if (world.setting().requests()) {
      world.requests().check();
    }
    for (SimulatedKey key : coordinator.keys()) {
      checkExclusions(key.name);
      checkEpochs(key.name);
      checkProgress(key);
    }
    for (SimulatedParty party : parties) {
      if (!world.setting().isCorrupt(party.id())) {
        checkAudit(party);
      }
      if (world.setting().isSound(party.id())) {
        checkFence(party);
      }
    }
  }

  /** A store begins another log with its fence. */
  private void checkFence(SimulatedParty party) {
    LedgerPosition position = party.store().claims().position();
    if (position.log().number() != 1) {
      world.checker().violated(Breach.FENCED, party.member().name() + ", " + position);
    }
  }

  private void checkExclusions(String key) {
    for (SimulatedParty party : parties) {
      if (world.setting().isCorrupt(party.id())) {
        continue;
      }
      Set<Integer> excluded = party.shares().excluded(key);
      int epoch = active(party, key).map(KeyShare::epoch).orElse(0);
      for (SimulatedParty peer : parties) {
        if (peer != party) {
          Multiplications.Ends ends = party.multiplications().ends(key, epoch, peer.id());
          checkExclusion(party, peer.id(), key, ends);
        }
      }
      if (excluded.contains(KeyShareStore.ITSELF) && world.setting().isSound(party.id())) {
        world
            .checker()
            .violated(
                Breach.HONEST_CONVICTED, party.member().name() + " excludes itself from " + key);
      }
      if (excluded.contains(KeyShareStore.EVERY_PARTY) && !party.hasFailedCommits()) {
        world.checker().violated(Breach.FROZEN, party.member().name() + ", " + key);
      }
    }
  }

  /**
   * A party excludes an honest peer for one reason: its own process has ended too often in a
   * multiplication with it, by what the world saw. It counts no other ends, and misses none.
   */
  private void checkExclusion(
      SimulatedParty party, int peer, String key, Multiplications.Ends ends) {
    KeyShareStore shares = party.shares();
    boolean excluded = shares.excluded(key).contains(peer);
    int counted =
        shares.troubles().stream()
            .filter(trouble -> trouble.key().equals(key) && trouble.party() == peer)
            .mapToInt(KeyTrouble::ends)
            .findFirst()
            .orElse(0);
    String where = "party-" + peer + " from " + key + " by " + party.member().name();
    if (excluded && ends.possible() >= KeyTrouble.EXCLUDE_AT) {
      world.coverage().count(EXCLUDED_FOR_ENDS);
    } else if (excluded && world.setting().isSound(peer)) {
      world.checker().violated(Breach.HONEST_CONVICTED, "exclusion of " + where);
    }
    boolean missed =
        world.setting().isSound(party.id())
            && (ends.certain() >= KeyTrouble.WARN_AT && counted < ends.certain()
                || ends.certain() >= KeyTrouble.EXCLUDE_AT && !excluded);
    if (missed || counted > ends.possible()) {
      world.checker().violated(Breach.MISCOUNTED, counted + " and not " + ends + ", " + where);
    }
  }

  private static Optional<KeyShare> active(SimulatedParty party, String key) {
    return party.store().shares().find(key).filter(share -> share.state() == KeyShare.State.ACTIVE);
  }

  private void checkEpochs(String key) {
    KeyShare latest = latest(key).orElse(null);
    if (latest == null) {
      world.checker().violated(Breach.SPLIT, key + " has no share that is used");
      return;
    }
    Set<Integer> epochs = new HashSet<>();
    for (SimulatedParty party : parties) {
      if (world.setting().isSound(party.id()) && latest.members().contains(party.id())) {
        epochs.add(active(party, key).map(KeyShare::epoch).orElse(0));
      }
    }
    if (epochs.size() > 1) {
      world.checker().violated(Breach.SPLIT, key + " " + epochs);
    }
  }

  /** The share of the latest epoch that a sound party uses. */
  private Optional<KeyShare> latest(String key) {
    return parties.stream()
        .filter(party -> world.setting().isSound(party.id()))
        .flatMap(party -> active(party, key).stream())
        .max(Comparator.comparingInt(KeyShare::epoch));
  }

  /**
   * As many honest parties as the threshold that may use the key together sign. If there are not so
   * many, a refresh makes them, as long as every party of the key has its share.
   */
  private void checkProgress(SimulatedKey key) {
    KeyShare latest = latest(key.name).orElse(null);
    if (latest == null) {
      return;
    }
    int threshold = latest.threshold();
    if (latest.parties().stream().filter(id -> !world.setting().isCorrupt(id)).count()
        < threshold) {
      world.coverage().count("progress not possible " + key.name);
      return;
    }
    key.current = latest.keyPublic();
    key.holders = latest.parties();
    Ordered order = null;
    // A party whose store went back may learn of it by the first session that multiplies.
    for (int attempt = 1; attempt <= 2; attempt++) {
      if (able(key.name).size() < threshold) {
        if (!canBeRefreshed(latest(key.name).orElse(latest))) {
          world.coverage().count("progress not possible " + key.name);
          return;
        }
        Ordered refresh = coordinator.refresh(key);
        if (!world.waitFor(REFRESH_PATIENCE, () -> able(key.name).size() >= threshold)) {
          world.checker().violated(Breach.NO_PROGRESS, refresh.toString());
          return;
        }
        world.coverage().count("repaired " + key.name);
        key.current = latest(key.name).orElse(latest).keyPublic();
      }
      List<SimulatedParty> set = able(key.name).subList(0, threshold);
      Ordered signing = coordinator.sign(key, set.stream().map(SimulatedParty::id).toList());
      if (world.waitFor(PATIENCE, () -> world.checker().isSigned(signing.session()))) {
        world.coverage().count("progress " + key.name);
        if (world.setting().requests()) {
          world.requests().checkProgress(key);
        }
        return;
      }
      order = signing;
      if (able(key.name).containsAll(set)) {
        break;
      }
    }
    world.checker().violated(Breach.NO_PROGRESS, String.valueOf(order));
  }

  /** All parties of a key have a share of one epoch, and none has frozen it. */
  private boolean canBeRefreshed(KeyShare latest) {
    boolean can = true;
    for (SimulatedParty party : parties) {
      if (latest.parties().contains(party.id())) {
        KeyShareStore shares = party.store().shares();
        can &=
            active(party, latest.key())
                .filter(share -> share.epoch() == latest.epoch() && !share.left())
                .isPresent();
        can &= !shares.excluded(latest.key()).contains(KeyShareStore.EVERY_PARTY);
        can &= shares.decliners(latest.key()).isEmpty();
        can &= shares.pending(latest.key()).isEmpty();
      }
    }
    return can;
  }

  /** Honest parties that use the latest epoch and exclude neither themselves nor each other. */
  private List<SimulatedParty> able(String key) {
    int epoch = latest(key).map(KeyShare::epoch).orElse(0);
    List<SimulatedParty> able = new ArrayList<>();
    for (SimulatedParty party : parties) {
      if (!world.setting().isCorrupt(party.id())
          && active(party, key).filter(share -> share.epoch() == epoch && !share.left()).isPresent()
          && mayWorkWith(party, key, able)) {
        able.add(party);
      }
    }
    return able;
  }

  private static boolean mayWorkWith(
      SimulatedParty party, String key, List<SimulatedParty> others) {
    Set<Integer> excluded = party.store().shares().excluded(key);
    return !excluded.contains(KeyShareStore.EVERY_PARTY)
        && !excluded.contains(KeyShareStore.ITSELF)
        && others.stream()
            .noneMatch(
                other ->
                    excluded.contains(other.id())
                        || other.store().shares().excluded(key).contains(party.id()));
  }

  /** Every session of a request that a sound party ran is in its trail. */
  private void checkAudit(SimulatedParty party) {
    String name = party.member().name();
    if (!(party.store().audit().verify() instanceof AuditTrail.Verification.Intact)) {
      world.checker().violated(Breach.AUDIT_BROKEN, name + ": a link is broken");
    }
    if (!world.setting().isSound(party.id())) {
      return;
    }
    Set<String> accepted = new HashSet<>();
    for (long next = 1; ; ) {
      List<AuditRecord> page = party.store().audit().read(next, PAGE);
      for (AuditRecord record : page) {
        if (record.event().action().equals("order.accept")
            && record.event().outcome().equals("accepted")) {
          accepted.add(record.event().fields().get("session_id"));
        }
      }
      if (page.size() < PAGE) {
        break;
      }
      next += page.size();
    }
    for (ByteString session : world.checker().ran(party.id())) {
      if (!accepted.contains(HexFormat.of().formatHex(session.toByteArray()))) {
        world
            .checker()
            .violated(Breach.AUDIT_BROKEN, name + " ran " + world.checker().name(session));
      }
    }
  }
}
