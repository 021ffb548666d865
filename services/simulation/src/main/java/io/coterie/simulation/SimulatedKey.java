package io.coterie.simulation;

import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** A key that the parties have. */
final class SimulatedKey {
  final String name;
  final Scheme scheme;

  /** Public data in the latest epoch that a party has said it uses; null before. */
  @Nullable KeyPublic current;

  /** Ids of the parties that hold a share of it. */
  List<Integer> holders = List.of();

  /** The epoch that the last reshare made; 0 if there was none. */
  int reshareEpoch;

  /** The latest epoch's users. */
  final Set<Integer> users = new TreeSet<>();

  SimulatedKey(String name, Scheme scheme) {
    this.name = name;
    this.scheme = scheme;
  }

  /** The same key as another schedule knows it. */
  SimulatedKey copy() {
    SimulatedKey copy = new SimulatedKey(name, scheme);
    copy.current = current;
    copy.holders = holders;
    copy.reshareEpoch = reshareEpoch;
    copy.users.addAll(users);
    return copy;
  }

  Protocol protocol(Protocol.Operation operation) {
    return Protocol.of(scheme, operation).orElseThrow();
  }
}
