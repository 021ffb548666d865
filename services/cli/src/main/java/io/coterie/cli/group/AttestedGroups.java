package io.coterie.cli.group;

import com.google.protobuf.ByteString;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.mpc.GroupVerifier;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.attestation.AttestationException;
import io.coterie.platform.attestation.TrustedGroup;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.core.v1.CheckGroup;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupChecked;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.custody.v1.Group;
import io.coterie.trust.Trust;

/**
 * The installation's answers about groups. A group is believed only as far as its issuers and
 * openers have signed it, with the keys of the trust file.
 */
final class AttestedGroups {
  private final Trust trust;
  private final GroupVerifier core;

  AttestedGroups(Trust trust) {
    this(trust, NativeMpcCore.load());
  }

  AttestedGroups(Trust trust, GroupVerifier core) {
    this.trust = trust;
    this.core = core;
  }

  /**
   * A group whose parties have signed it.
   *
   * @param digest 32 bytes, which stand for the group in approvals
   */
  record Believed(TrustedGroup trusted, ByteString digest) {}

  /**
   * Verifies an answer about a group.
   *
   * @param group resource name that is meant
   * @param epoch that is meant
   * @throws CliException saying what is not to be believed
   */
  Believed require(String group, int epoch, Group answer) {
    TrustedGroup trusted;
    try {
      trusted = TrustedGroup.of(group, answer, trust);
    } catch (AttestationException e) {
      throw refused(group, "is not attested: " + e.getMessage());
    }
    if (trusted.epoch() != epoch) {
      throw refused(group, "is shown with epoch " + trusted.epoch() + " and not " + epoch);
    }
    CheckGroup.Builder check =
        CheckGroup.newBuilder()
            .setGroup(
                io.coterie.proto.core.v1.Group.newBuilder()
                    .setParties(trusted.members().parties())
                    .setAttested(answer.getAttested()));
    GroupReply reply = core.call(GroupCall.newBuilder().setCheckGroup(check).build());
    if (reply.hasGroupRefused()) {
      throw refused(group, "is not signed by its parties: " + reply.getGroupRefused().getDetail());
    }
    GroupChecked checked = reply.getGroupChecked();
    if (!checked.getName().equals(group) || checked.getEpoch() != epoch) {
      throw refused(group, "is shown with what its parties have signed of another one");
    }
    return new Believed(trusted, checked.getDigest());
  }

  static CliException refused(String group, String why) {
    return new CliException(
        ExitCode.REFUSED,
        (IntentVerifier.isGroupName(group) ? group : "a group")
            + " "
            + why
            + ". Do not use it; show the answer to the operators of the coordinator and the"
            + " parties.");
  }
}
