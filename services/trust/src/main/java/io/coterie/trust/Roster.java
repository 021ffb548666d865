package io.coterie.trust;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;

/**
 * The pinned members of one installation. The operator of a party decides whom it trusts: nothing
 * is ever learned from the network.
 *
 * @param installation its name, 1 to 63 of {@code [a-z0-9-]}; no two installations have the same,
 *     because what is signed for one must mean nothing in another
 * @param version grows with every change
 * @param members at most {@value #MAX_MEMBERS}, ordered by name
 * @param former parties that left, and evidence keys that a party has no more; at most {@value
 *     #MAX_FORMER}
 */
public record Roster(
    String installation, long version, List<Member> members, List<FormerParty> former) {
  /** Twenty parties of a key, several keys' worth of parties, and the coordinator's replicas. */
  public static final int MAX_MEMBERS = 100;

  /** Every member replaced ten times. */
  public static final int MAX_FORMER = 1000;

  public Roster {
    if (!Member.isName(installation)) {
      throw new IllegalArgumentException(
          "installation '" + installation + "' is not 1 to 63 of [a-z0-9-]");
    }
    former = List.copyOf(former);
    if (former.size() > MAX_FORMER) {
      throw new IllegalArgumentException("more than " + MAX_FORMER + " former parties");
    }
    members = members.stream().sorted(Comparator.comparing(Member::name)).toList();
    if (members.isEmpty() || members.size() > MAX_MEMBERS) {
      throw new IllegalArgumentException(
          "a roster has 1 to " + MAX_MEMBERS + " members, not " + members.size());
    }
    Set<Object> seen = new HashSet<>();
    for (Member m : members) {
      if (!Member.isName(m.name())) {
        throw new IllegalArgumentException(
            "member name '" + m.name() + "' is not 1 to 63 of [a-z0-9-]");
      }
      requireUnique(seen, m.name(), "name", m);
      requireUnique(seen, List.of(m.aci(), m.deviceId()), "aci and device", m);
      if (m.identityKey().length != 33) {
        throw new IllegalArgumentException(
            m.name() + ": identityKey has " + m.identityKey().length + " bytes, not 33");
      }
      if (m.deviceId() < 1 || m.deviceId() > 127) {
        throw new IllegalArgumentException(
            m.name() + ": deviceId " + m.deviceId() + " is not 1 to 127");
      }
      switch (m.role()) {
        case PARTY -> {
          if (m.partyId() < 1 || m.partyId() > Member.MAX_PARTY_ID) {
            throw new IllegalArgumentException(
                m.name() + ": partyId " + m.partyId() + " is not 1 to " + Member.MAX_PARTY_ID);
          }
          if (m.evidenceKey().length != Member.EVIDENCE_KEY_BYTES) {
            throw new IllegalArgumentException(
                m.name() + ": evidenceKey has " + m.evidenceKey().length + " bytes, not 32");
          }
          requireUnique(seen, m.partyId(), "partyId", m);
        }
        case COORDINATOR -> {
          if (m.partyId() != 0) {
            throw new IllegalArgumentException(m.name() + ": a coordinator has no partyId");
          }
        }
      }
    }
    requireIdsOfOneParty(members, former);
  }

  /**
   * A party may change its name or its evidence key. Another one under its id would speak for it
   * about the time before it came.
   */
  private static void requireIdsOfOneParty(List<Member> members, List<FormerParty> former) {
    Map<Integer, List<FormerParty>> byId = new TreeMap<>();
    former.forEach(f -> byId.computeIfAbsent(f.partyId(), _ -> new ArrayList<>()).add(f));
    for (Member m : members) {
      List<FormerParty> before = byId.get(m.partyId());
      if (m.role() == Member.Role.PARTY && before != null) {
        before.add(new FormerParty(m.name(), m.partyId(), m.evidenceKey(), 1));
      }
    }
    byId.forEach(
        (id, others) -> {
          Deque<FormerParty> same = new ArrayDeque<>(List.of(others.removeFirst()));
          while (!same.isEmpty() && !others.isEmpty()) {
            FormerParty one = same.remove();
            others.stream().filter(one::isSameAs).forEach(same::add);
            others.removeIf(one::isSameAs);
          }
          if (!others.isEmpty()) {
            throw new IllegalArgumentException(
                others.getFirst().name() + ": partyId " + id + " was another party's");
          }
        });
  }

  /** A roster from which nobody has left. */
  public Roster(String installation, long version, List<Member> members) {
    this(installation, version, members, List.of());
  }

  private static void requireUnique(Set<Object> seen, Object value, String what, Member m) {
    if (!seen.add(value)) {
      throw new IllegalArgumentException(m.name() + ": " + what + " occurs twice in the roster");
    }
  }

  /** The member of that name. */
  public Optional<Member> byName(String name) {
    return members.stream().filter(m -> m.name().equals(name)).findFirst();
  }

  /** The party of that id. */
  public Optional<Member> byPartyId(int partyId) {
    return members.stream()
        .filter(m -> m.role() == Member.Role.PARTY && m.partyId() == partyId)
        .findFirst();
  }

  /** The member with that account and device. */
  public Optional<Member> byAddress(UUID aci, int deviceId) {
    return members.stream()
        .filter(m -> m.aci().equals(aci) && m.deviceId() == deviceId)
        .findFirst();
  }

  /** All coordinators. */
  public List<Member> coordinators() {
    return members.stream().filter(m -> m.role() == Member.Role.COORDINATOR).toList();
  }

  /** Ids that a name of a party stands for, or has stood for. */
  public Set<Integer> partyIds(String name) {
    Set<Integer> ids = new HashSet<>();
    byName(name).filter(m -> m.role() == Member.Role.PARTY).ifPresent(m -> ids.add(m.partyId()));
    former.stream().filter(f -> f.name().equals(name)).forEach(f -> ids.add(f.partyId()));
    return ids;
  }

  /** The evidence keys that a party may have signed with about an epoch of a key. */
  public List<byte[]> evidenceKeys(int partyId, int epoch) {
    List<byte[]> keys = new ArrayList<>();
    byPartyId(partyId).ifPresent(m -> keys.add(m.evidenceKey()));
    former.stream()
        .filter(f -> f.partyId() == partyId && epoch <= f.lastEpoch())
        .forEach(f -> keys.add(f.evidenceKey()));
    return keys;
  }
}
