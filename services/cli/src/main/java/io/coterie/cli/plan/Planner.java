package io.coterie.cli.plan;

import io.coterie.cli.plan.Floor.Operation;
import io.coterie.cli.plan.Floor.Places;
import io.coterie.cli.plan.Floor.Sending;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** Where messaging and coordinator are best placed for parties in given regions. */
public final class Planner {
  /**
   * A placement with what it costs, in milliseconds from a client's call to its answer.
   *
   * @param signers regions of the parties that sign fastest, which the coordinator chooses
   * @param sign a signature in one round: BLS, or with a presignature
   * @param signEcdsa an ECDSA signature without one
   * @param keygen BLS key generation among all parties
   */
  public record Plan(
      String messaging,
      String coordinator,
      String client,
      List<String> signers,
      double sign,
      double signEcdsa,
      double keygen) {
    public Plan {
      signers = List.copyOf(signers);
    }
  }

  private static final Comparator<Plan> BEST =
      Comparator.comparingDouble(Plan::sign)
          .thenComparingDouble(Plan::keygen)
          .thenComparing(Plan::messaging)
          .thenComparing(Plan::coordinator);

  private final Regions regions;
  private final Floor floor;

  public Planner(Regions regions) {
    this.regions = regions;
    this.floor = new Floor(regions::oneWayMillis, Sending.AT_ONCE);
  }

  /**
   * All placements, the fastest signature first.
   *
   * @param parties region of each party
   * @param threshold parties that sign
   * @param client region of the callers; empty: wherever the coordinator is
   * @param candidates regions in which messaging and coordinator may be
   * @throws IllegalArgumentException for a region that is not in the matrix, or a threshold that
   *     these parties cannot reach
   */
  public List<Plan> plans(
      List<String> parties, int threshold, String client, List<String> candidates) {
    if (threshold < 1 || threshold > parties.size()) {
      throw new IllegalArgumentException(
          "%d of %d parties cannot sign".formatted(threshold, parties.size()));
    }
    Stream.of(parties, candidates, client.isEmpty() ? List.<String>of() : List.of(client))
        .flatMap(List::stream)
        .forEach(regions::require);
    List<Plan> plans = new ArrayList<>();
    for (String messaging : candidates) {
      for (String coordinator : candidates) {
        plans.add(
            plan(
                parties,
                threshold,
                messaging,
                coordinator,
                client.isEmpty() ? coordinator : client));
      }
    }
    plans.sort(BEST);
    return plans;
  }

  private Plan plan(
      List<String> parties, int threshold, String messaging, String coordinator, String client) {
    // All messages pass messaging, so who is nearer to it is faster in every round.
    List<String> signers =
        parties.stream()
            .sorted(
                Comparator.comparingDouble(
                    p -> regions.oneWayMillis(messaging, p) + regions.oneWayMillis(p, messaging)))
            .limit(threshold)
            .toList();
    Places few = new Places(client, coordinator, messaging, signers);
    return new Plan(
        messaging,
        coordinator,
        client,
        signers,
        floor.millis(Operation.SIGN, few),
        floor.millis(Operation.SIGN_ECDSA, few),
        floor.millis(Operation.KEYGEN_BLS, new Places(client, coordinator, messaging, parties)));
  }
}
