package io.coterie.member;

import com.google.protobuf.ByteString;
import io.coterie.mpc.GroupVerifier;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.attestation.AttestationException;
import io.coterie.platform.attestation.TrustedGroup;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.core.v1.CheckGroup;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupChecked;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.custody.v1.GetGroupRequest;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.trust.Trust;
import io.grpc.Channel;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * The installation's answers about groups. A group is believed only as far as its issuers and
 * openers have signed it, with the keys of the trust file.
 */
public final class AttestedGroups {
  private final Trust trust;
  private final GroupVerifier core;

  /** Believes the requesters and parties of a trust file. */
  public AttestedGroups(Trust trust) {
    this(trust, NativeMpcCore.load());
  }

  AttestedGroups(Trust trust, GroupVerifier core) {
    this.trust = trust;
    this.core = core;
  }

  /**
   * A group whose parties have signed it.
   *
   * @param trusted name, epoch and parties
   * @param digest 32 bytes, which stand for the group in approvals
   * @param answer with what its parties have signed
   */
  public record Believed(TrustedGroup trusted, ByteString digest, Group answer) {
    /** As the core takes it. */
    public io.coterie.proto.core.v1.Group inCore() {
      return io.coterie.proto.core.v1.Group.newBuilder()
          .setParties(trusted.members().parties())
          .setAttested(answer.getAttested())
          .build();
    }
  }

  /**
   * Asks the coordinator for an epoch of a group and verifies the answer.
   *
   * @param group resource name, {@code groups/{group}}
   * @param patience how long to wait for the answer
   * @throws StatusRuntimeException if there is no such group, or no answer
   * @throws MemberException.NotBelieved saying what is not to be believed
   */
  public Believed fetch(Channel channel, String group, int epoch, Duration patience) {
    return require(
        group,
        epoch,
        GroupServiceGrpc.newBlockingStub(channel)
            .withDeadlineAfter(patience.toSeconds(), TimeUnit.SECONDS)
            .getGroup(GetGroupRequest.newBuilder().setName(group + "/epochs/" + epoch).build()));
  }

  /**
   * Verifies an answer about a group.
   *
   * @param group resource name that is meant
   * @param epoch that is meant
   * @throws MemberException.NotBelieved saying what is not to be believed
   */
  public Believed require(String group, int epoch, Group answer) {
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
    return new Believed(trusted, checked.getDigest(), answer);
  }

  /**
   * The error of an answer that is not to be believed.
   *
   * @param group resource name that was meant, or as the answer has it
   * @param why the rest of a sentence about the group
   */
  public static MemberException.NotBelieved refused(String group, String why) {
    return new MemberException.NotBelieved(
        (IntentVerifier.isGroupName(group) ? group : "a group")
            + " "
            + why
            + ". Do not use it; show the answer to the operators of the coordinator and the"
            + " parties.");
  }
}
