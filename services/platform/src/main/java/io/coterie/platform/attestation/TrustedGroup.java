package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationException.require;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Group;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Trust;

/**
 * The word of a requester on an epoch of a group, as far as the trust file bears it out: it says
 * whose signatures the group has to have. The core checks those, with {@code CheckGroup} for these
 * members; then the group is believed if its name and epoch are these.
 *
 * @param group resource name, {@code groups/{group}}
 * @param epoch that was asked for
 * @param members issuers and openers, with the keys of the trust file
 * @param intentDigest SHA-256 of the payload of the intent that asked for it
 */
public record TrustedGroup(String group, int epoch, GroupMembers members, ByteString intentDigest) {

  /**
   * Verifies who asked for a group and of whom.
   *
   * @param group resource name that the caller means
   * @param answer of the coordinator, not believed otherwise
   * @throws AttestationException saying what is not to be believed
   */
  public static TrustedGroup of(String group, Group answer, Trust trust)
      throws AttestationException {
    String place = "the group";
    require(IntentVerifier.isGroupName(answer.getGroup()), AttestationProblem.GROUP_NAME_MALFORMED);
    require(answer.getGroup().equals(group), AttestationProblem.GROUP_OTHER);
    require(
        answer.getState() == Group.State.ACTIVE,
        AttestationProblem.NOT_ACTIVE,
        answer.getState().name());
    TrustedIntent asked = TrustedIntent.of(group, place, answer.getSignedIntent(), trust);
    if (!(asked.intent() instanceof VerifiedIntent.GroupCreation creation)) {
      throw new AttestationException(AttestationProblem.INTENT_KIND, place);
    }
    asked.requireRight(KeyRight.CREATE);
    TrustedIntent.requireFloors(
        place, creation.issuerThreshold(), creation.issuers().size(), asked.requester());
    require(
        creation.epoch() == answer.getEpoch(), AttestationProblem.GROUP_EPOCH_OTHER, "the intent");
    GroupMembers members =
        GroupMembers.of(creation, trust.roster())
            .orElseThrow(
                () ->
                    new AttestationException(
                        AttestationProblem.GROUP_PARTY_UNKNOWN,
                        GroupMembers.unknown(creation, trust.roster()).orElse("")));
    return new TrustedGroup(group, creation.epoch(), members, creation.digest());
  }
}
