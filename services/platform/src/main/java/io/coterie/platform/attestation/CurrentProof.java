package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationException.require;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.proto.custody.v1.Key;
import io.coterie.trust.Trust;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The holders of a key that have answered a client's challenge: they use the very shares that the
 * key's attestation shows. docs/threat-model.md says how much that proves.
 *
 * @param confirming names of those that say so, in ascending order of their party ids
 * @param undecided names of those among them that also keep another share of the key, which they
 *     may come to use
 * @param holders number of all holders, n
 * @param threshold parties needed to sign, t
 */
public record CurrentProof(
    List<String> confirming, List<String> undecided, int holders, int threshold) {

  public CurrentProof {
    confirming = List.copyOf(confirming);
    undecided = List.copyOf(undecided);
  }

  /**
   * Verifies the statements of an answer.
   *
   * @param key as that answer attests it
   * @param answer of the coordinator
   * @param challenge that the caller has drawn for it, {@link CurrentStatement#CHALLENGE_BYTES}
   *     bytes
   * @throws AttestationException if a statement is not a holder's own answer to that challenge, or
   *     shows a later epoch than the attestation
   */
  public static CurrentProof of(AttestedKey key, Key answer, ByteString challenge, Trust trust)
      throws AttestationException {
    Map<Integer, String> names = new HashMap<>();
    List<Integer> ids =
        key.keyPublic().getVerificationSharesList().stream()
            .map(VerificationShare::getParty)
            .sorted()
            .toList();
    for (int i = 0; i < ids.size(); i++) {
      names.put(ids.get(i), key.parties().get(i));
    }
    Completion last =
        answer.getAttestation().getCompletions(answer.getAttestation().getCompletionsCount() - 1);
    ByteString digest = IntentVerifier.digest(last.getKeyPublic());
    List<String> confirming = new ArrayList<>();
    List<String> undecided = new ArrayList<>();
    int previous = 0;
    for (EpochStatement sent : answer.getCurrentList()) {
      int party = sent.getParty();
      require(party > previous, AttestationProblem.CURRENT_ORDER);
      previous = party;
      String name = names.get(party);
      if (name == null) {
        throw new AttestationException(AttestationProblem.CURRENT_STRANGER, party);
      }
      require(
          CurrentStatement.isSigned(trust.roster(), key.name(), key.fingerprint(), sent, challenge),
          AttestationProblem.CURRENT_SIGNATURE,
          name);
      require(
          Integer.compareUnsigned(sent.getEpoch(), key.epoch()) <= 0,
          AttestationProblem.CURRENT_LATER,
          name,
          Integer.toUnsignedString(sent.getEpoch()),
          key.epoch());
      if (sent.getEpoch() == key.epoch()
          && sent.getSessionId().equals(last.getSessionId())
          && sent.getKeyPublicDigest().equals(digest)) {
        confirming.add(name);
        if (sent.getUndecided()) {
          undecided.add(name);
        }
      }
    }
    return new CurrentProof(confirming, undecided, ids.size(), key.threshold());
  }

  /**
   * How many must say so: n - t + 1. Fewer than t are left then, so every t holders that might have
   * gone on to a refreshed epoch include one that has said that it did not. A reshare may need
   * fewer users than t; {@link #undecided} has the parties that know of one.
   */
  public int needed() {
    return holders - threshold + 1;
  }

  /** Whether enough holders say so. */
  public boolean holds() {
    return confirming.size() >= needed();
  }
}
