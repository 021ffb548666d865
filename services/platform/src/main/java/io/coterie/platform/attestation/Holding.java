package io.coterie.platform.attestation;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.trust.Trust;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The parties of a key from its creation, or from a reshare on, until the next one. Refreshes
 * change neither them nor the threshold.
 *
 * @param reshareEpoch that the reshare made; 0: the creation
 * @param requester name of the one that asked for that session
 * @param threshold parties that sign
 * @param holders names of the parties by their ids
 */
public record Holding(
    int reshareEpoch, String requester, int threshold, SortedMap<Integer, String> holders) {
  public Holding {
    holders = Collections.unmodifiableSortedMap(new TreeMap<>(holders));
  }

  /** The holding after a session that made or reshared the key; empty if it refreshed the key. */
  static Optional<Holding> of(CompletedSession session) {
    int epoch = session.keyPublic().getEpoch();
    return session.intent() instanceof VerifiedIntent.KeyRefresh
        ? Optional.empty()
        : Optional.of(
            new Holding(
                session.intent() instanceof VerifiedIntent.KeyReshare ? epoch : 0,
                session.intent().requester(),
                session.keyPublic().getThreshold(),
                session.holders()));
  }

  /**
   * Refuses fewer parties than today's trust file allows: with as many corrupt ones as that, a
   * thief of a requester's key shows any session. One of the parties may be honest, and kept to the
   * highest floors of all requesters that could have asked for a reshare of the key or made it. A
   * creation is held to those of its requester alone.
   *
   * @param key resource name
   */
  void requireFloors(String key, Trust trust) throws AttestationException {
    boolean created = reshareEpoch == 0;
    String place = created ? "its creation" : "its reshare to epoch " + reshareEpoch;
    for (Trust.Requester each : trust.requesters()) {
      if (created ? each.name().equals(requester) : each.bounds(key)) {
        TrustedIntent.requireFloors(place, threshold, holders.size(), each);
      }
    }
  }

  /**
   * Whether these are as many parties as today's trust file asks for. Others may be made up by a
   * thief of a requester's key and as many corrupt parties.
   *
   * @param key resource name
   */
  public boolean reachesFloors(String key, Trust trust) {
    try {
      requireFloors(key, trust);
      return true;
    } catch (AttestationException _) {
      return false;
    }
  }

  /**
   * The epoch that the last reshare of an attestation made, unverified; 0 if it shows none.
   *
   * @throws IllegalArgumentException if public data in it do not decode
   */
  public static int reshareEpoch(Attestation attestation) {
    for (Completion completion : attestation.getCompletionsList().reversed()) {
      if (isReshare(completion)) {
        return keyPublic(completion).getEpoch();
      }
    }
    return 0;
  }

  /**
   * Public data of the session that made the key, or of the reshare that made an epoch, unverified.
   *
   * @param reshareEpoch 0: the creation
   * @throws IllegalArgumentException if public data in it do not decode
   */
  public static Optional<KeyPublic> keyPublic(Attestation attestation, int reshareEpoch) {
    List<Completion> completions = attestation.getCompletionsList();
    if (reshareEpoch == 0) {
      return completions.stream().findFirst().map(Holding::keyPublic);
    }
    return completions.stream()
        .filter(Holding::isReshare)
        .map(Holding::keyPublic)
        .filter(made -> made.getEpoch() == reshareEpoch)
        .findFirst();
  }

  private static boolean isReshare(Completion completion) {
    return completion
        .getSignedIntent()
        .getPayloadType()
        .equals(VerifiedIntent.KeyReshare.PAYLOAD_TYPE);
  }

  private static KeyPublic keyPublic(Completion completion) {
    try {
      return KeyPublic.parseFrom(completion.getKeyPublic());
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalArgumentException("the public data of an attestation do not decode", e);
    }
  }
}
