package io.coterie.cli.plan;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToDoubleBiFunction;

/**
 * The time that a protocol needs because messages travel, if nothing else took any: its latency on
 * infinitely fast machines. Every message between members goes through messaging.
 *
 * <pre>
 * signing:        client -> coordinator, order, the protocol's rounds, coordinator -> client
 * key generation: client -> coordinator, order, four rounds, "completed", coordinator -> client
 * </pre>
 */
public final class Floor {
  /** How a broadcast travels. */
  public enum Sending {
    /** To all recipients at once: one message, or one for each. */
    AT_ONCE,
    /** To one recipient after another, each when messaging has accepted the one before. */
    ONE_AFTER_ANOTHER
  }

  /** The kind of message that travels in a round. */
  public enum Round {
    /** The same for all, in the sending mode of the installation. */
    BROADCAST,
    /** One message for each peer, always at once. */
    PRIVATE,
    /** One message, to the coordinator alone. */
    ANSWER
  }

  /** An operation, with the rounds between the parties. */
  public enum Operation {
    /** BLS: a signature in one round, of which nobody but the coordinator hears. */
    SIGN(Round.ANSWER),
    /** ECDSA and FROST with a presignature: in one round, too. */
    SIGN_PRESIGNED(Round.BROADCAST),
    /** FROST without a presignature. */
    SIGN_FROST(Round.BROADCAST, Round.BROADCAST),
    /** ECDSA without a presignature. */
    SIGN_ECDSA(Round.PRIVATE, Round.PRIVATE, Round.BROADCAST),
    /** BLS key generation, and the report of each party that it has its share. */
    KEYGEN_BLS(Round.BROADCAST, Round.BROADCAST, Round.PRIVATE, Round.BROADCAST, Round.BROADCAST);

    private final List<Round> rounds;

    Operation(Round... rounds) {
      this.rounds = List.of(rounds);
    }

    /**
     * One-way delays on the path of the answer if all distances are equal and nobody is together.
     */
    public int oneWayDelays() {
      int clientAndBack = 2;
      int order = 2;
      return clientAndBack + order + 2 * rounds.size();
    }
  }

  /**
   * Where everybody is.
   *
   * @param parties those that take part, in the order in which others send to them
   */
  public record Places(String client, String coordinator, String messaging, List<String> parties) {
    public Places {
      parties = List.copyOf(parties);
    }
  }

  private final ToDoubleBiFunction<String, String> oneWayMillis;
  private final Sending sending;

  /**
   * @param oneWayMillis time of a message from one place to another
   */
  public Floor(ToDoubleBiFunction<String, String> oneWayMillis, Sending sending) {
    this.oneWayMillis = oneWayMillis;
    this.sending = sending;
  }

  /** Milliseconds from the client's call to its answer. */
  public double millis(Operation operation, Places places) {
    int coordinator = places.parties().size();
    List<String> members = new ArrayList<>(places.parties());
    members.add(places.coordinator());
    Network network = new Network(members, places.messaging());

    double[] ready = new double[members.size()];
    double asked = travel(places.client(), places.coordinator());
    network.broadcast(coordinator, asked, coordinator, ready);
    for (int round = 0; round < operation.rounds.size(); round++) {
      boolean last = round == operation.rounds.size() - 1;
      double[] next = ready.clone();
      next[coordinator] = asked;
      for (int party = 0; party < coordinator; party++) {
        switch (operation.rounds.get(round)) {
          case BROADCAST ->
              network.broadcast(party, ready[party], last ? members.size() : coordinator, next);
          case PRIVATE -> network.each(party, ready[party], coordinator, next);
          case ANSWER -> network.hear(party, coordinator, ready[party], next);
        }
      }
      ready = next;
    }
    return ready[coordinator] + travel(places.coordinator(), places.client());
  }

  private double travel(String from, String to) {
    return from.equals(to) ? 0 : oneWayMillis.applyAsDouble(from, to);
  }

  /** Members at places, and who has heard everything by when. */
  private final class Network {
    private final double[] toMessaging;
    private final double[] fromMessaging;

    Network(List<String> members, String messaging) {
      toMessaging = all(members, m -> travel(m, messaging));
      fromMessaging = all(members, m -> travel(messaging, m));
    }

    private double[] all(Collection<String> members, Function<String, Double> one) {
      return members.stream().mapToDouble(one::apply).toArray();
    }

    /** One member sends to the first {@code recipients} but itself; the coordinator comes last. */
    void broadcast(int from, double start, int recipients, double[] heard) {
      if (sending == Sending.AT_ONCE) {
        each(from, start, recipients, heard);
        return;
      }
      double sent = start;
      for (int to = 0; to < recipients; to++) {
        if (to != from) {
          hear(from, to, sent, heard);
          sent += toMessaging[from] + fromMessaging[from];
        }
      }
    }

    void each(int from, double start, int recipients, double[] heard) {
      for (int to = 0; to < recipients; to++) {
        if (to != from) {
          hear(from, to, start, heard);
        }
      }
    }

    /** One member sends to one other. */
    void hear(int from, int to, double sent, double[] heard) {
      heard[to] = Math.max(heard[to], sent + toMessaging[from] + fromMessaging[to]);
    }
  }
}
