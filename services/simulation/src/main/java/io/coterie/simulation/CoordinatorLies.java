package io.coterie.simulation;

import io.coterie.proto.custody.v1.Scheme;
import java.util.ArrayList;
import java.util.List;

/** The lies of a coordinator: orders that an honest one would not give. */
final class CoordinatorLies {
  /** So many of the latest orders are replayed more often. */
  private static final int LATELY = 10;

  /** New shares take about as long. */
  private static final long SOON_NANOS = 300_000_000;

  /** Those that break most without the rule against them are told more often. */
  private static final List<Lie> LIES =
      List.of(
          Lie.REPLAYS_ORDER,
          Lie.REPLAYS_ORDER,
          Lie.ORDERS_TWICE,
          Lie.ORDERS_TWICE,
          Lie.ORDERS_TWICE,
          Lie.ORDERS_OTHER_INTENT,
          Lie.EQUIVOCATES_ORDER,
          Lie.FORGES_INTENT,
          Lie.ORDERS_FORBIDDEN,
          Lie.ORDERS_OTHER_EPOCH,
          Lie.CANCELS,
          Lie.ORDERS_SOME,
          Lie.SPENDS_TWICE);

  private final SimulatedCoordinator coordinator;

  CoordinatorLies(SimulatedCoordinator coordinator) {
    this.coordinator = coordinator;
  }

  /**
   * Tells a lie, if there is an occasion for it.
   *
   * @param chance decides which
   */
  void tellOne(Chance chance) {
    Lie lie = chance.any(LIES);
    if (tell(lie, chance)) {
      coordinator.world().coverage().count(lie.label());
    }
  }

  private boolean tell(Lie lie, Chance chance) {
    SimulatedKey key = coordinator.anyKey();
    return switch (lie) {
      case REPLAYS_ORDER -> replay(chance);
      case ORDERS_TWICE -> orderTwice(chance);
      case ORDERS_OTHER_INTENT -> orderOtherIntent(chance);
      case EQUIVOCATES_ORDER -> equivocate(key);
      case FORGES_INTENT -> {
        coordinator.sign(coordinator.newRequest(key, false), coordinator.quorum(key));
        yield true;
      }
      case ORDERS_FORBIDDEN -> {
        SimulatedKey bls = coordinator.key(World.BLS_KEY);
        String id = coordinator.requestId();
        coordinator.sign(
            coordinator.request(id, bls, chance.bytes(Intents.TOO_LONG), true),
            coordinator.quorum(bls));
        yield true;
      }
      case ORDERS_OTHER_EPOCH -> orderOtherEpoch(key, chance);
      case CANCELS -> cancel(chance);
      case ORDERS_SOME -> orderSome(key);
      case SPENDS_TWICE -> spendTwice();
      default -> throw new IllegalStateException(lie + " is no lie of a coordinator");
    };
  }

  private boolean replay(Chance chance) {
    List<Ordered> orders = coordinator.orders();
    if (orders.isEmpty()) {
      return false;
    }
    int among = chance.perMille(500) ? Math.min(LATELY, orders.size()) : orders.size();
    Ordered old = orders.get(orders.size() - 1 - chance.below(among));
    coordinator.send(
        old, chance.perMille(500) ? old.parties() : List.of(chance.any(old.parties())));
    return true;
  }

  private boolean orderTwice(Chance chance) {
    List<SigningRequest> random =
        coordinator.requests().stream()
            .filter(request -> request.key().scheme != Scheme.SCHEME_BLS12381)
            .toList();
    if (random.isEmpty()) {
      return false;
    }
    SigningRequest request = chance.perMille(300) ? random.getLast() : chance.any(random);
    coordinator.sign(request, coordinator.quorum(request.key()));
    return true;
  }

  private boolean orderOtherIntent(Chance chance) {
    if (coordinator.requests().isEmpty()) {
      return false;
    }
    SigningRequest used = chance.any(coordinator.requests());
    coordinator.sign(
        coordinator.request(used.id(), used.key(), chance.bytes(16), true),
        coordinator.quorum(used.key()));
    return true;
  }

  private boolean equivocate(SimulatedKey key) {
    SigningRequest request = coordinator.newRequest(key, true);
    List<Integer> parties = coordinator.quorum(key);
    for (int party : parties) {
      coordinator.send(coordinator.signOrder(request, parties), List.of(party));
    }
    return true;
  }

  private boolean orderOtherEpoch(SimulatedKey key, Chance chance) {
    int epoch = SimulatedCoordinator.known(key).getEpoch();
    int other = epoch > 1 && chance.perMille(700) ? epoch - 1 : epoch + 1;
    coordinator.sign(coordinator.newRequest(key, true), coordinator.quorum(key), other);
    return true;
  }

  /** Orders a signature with shares that are being made. */
  void orderEarly(SimulatedKey key, Chance chance) {
    int epoch = SimulatedCoordinator.known(key).getEpoch() + 1;
    coordinator
        .world()
        .timeline()
        .in(
            chance.between(0, SOON_NANOS),
            () -> {
              coordinator.sign(coordinator.newRequest(key, true), coordinator.quorum(key), epoch);
              coordinator.world().coverage().count(Lie.ORDERS_OTHER_EPOCH.label());
            });
  }

  private boolean cancel(Chance chance) {
    List<Ordered> orders = coordinator.orders();
    if (orders.isEmpty()) {
      return false;
    }
    coordinator.cancel(orders.get(Math.max(0, orders.size() - 1 - chance.below(3))));
    return true;
  }

  private boolean orderSome(SimulatedKey key) {
    List<Integer> parties = coordinator.quorum(key);
    Ordered order = coordinator.signOrder(coordinator.newRequest(key, true), parties);
    List<Integer> some = new ArrayList<>(parties);
    some.removeLast();
    coordinator.send(order, some);
    return true;
  }

  private boolean spendTwice() {
    if (!coordinator.hasStock()) {
      return false;
    }
    SimulatedCoordinator.Stock one = coordinator.takeStock();
    coordinator.signPresigned(one, coordinator.newRequest(one.key(), true));
    coordinator.signPresigned(one, coordinator.newRequest(one.key(), true));
    return true;
  }
}
