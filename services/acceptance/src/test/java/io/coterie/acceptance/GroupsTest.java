package io.coterie.acceptance;

import static io.coterie.acceptance.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.acceptance.SharedCluster.Running;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.attestation.AttestationException;
import io.coterie.platform.attestation.TrustedGroup;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.core.v1.CheckGroup;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupChecked;
import io.coterie.proto.custody.v1.CreateGroupRequest;
import io.coterie.proto.custody.v1.GetGroupRequest;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.ListGroupsRequest;
import io.coterie.trust.TrustFile;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Groups of approvers, made by the parties of an installation over the real channel. */
@ExtendWith(SharedCluster.class)
class GroupsTest {

  private static GroupIntent.Builder intent(Running shared, String group, int epoch) {
    return GroupIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setGroup("groups/" + group)
        .setEpoch(epoch)
        .setIssuerThreshold(2)
        .addAllIssuers(shared.cluster().partyNames())
        .setOpenerThreshold(2)
        .addAllOpeners(shared.cluster().partyNames())
        .setPurpose("acceptance")
        .setNotAfter(WalletBackend.notAfter());
  }

  private static CreateGroupRequest request(WalletBackend wallet, GroupIntent.Builder intent) {
    return CreateGroupRequest.newBuilder()
        .setSignedIntent(wallet.intents().sign(intent.build()))
        .build();
  }

  /** The group as a client with the trust file and the core believes it. */
  private static GroupChecked believed(Running shared, Group group)
      throws AttestationException, IOException {
    TrustedGroup trusted =
        TrustedGroup.of(
            group.getGroup(),
            group,
            TrustFile.read(shared.cluster().folder().resolve("trust.json")).verified().trust());
    GroupChecked checked =
        NativeMpcCore.load()
            .call(
                GroupCall.newBuilder()
                    .setCheckGroup(
                        CheckGroup.newBuilder()
                            .setGroup(
                                io.coterie.proto.core.v1.Group.newBuilder()
                                    .setParties(trusted.members().parties())
                                    .setAttested(group.getAttested())))
                    .build())
            .getGroupChecked();
    assertThat(checked.getName()).isEqualTo(trusted.group());
    assertThat(checked.getEpoch()).isEqualTo(trusted.epoch());
    return checked;
  }

  @Test
  void a_group_is_made_once_by_all_parties_and_attested_by_them(Running shared) throws Exception {
    WalletBackend wallet = shared.wallet();
    CreateGroupRequest request = request(wallet, intent(shared, "payments", 1));
    Group group = wallet.groups().createGroup(request);
    assertThat(group.getName()).isEqualTo("groups/payments/epochs/1");
    assertThat(group.getState()).isEqualTo(Group.State.ACTIVE);
    GroupChecked checked = believed(shared, group);
    assertThat(checked.getIssuers().getThreshold()).isEqualTo(2);
    assertThat(checked.getIssuers().getVerificationSharesList()).hasSize(3);

    assertThat(wallet.groups().createGroup(request)).as("the same request").isEqualTo(group);
    refused(
        ErrorReason.GROUP_EXISTS,
        () -> wallet.groups().createGroup(request(wallet, intent(shared, "payments", 1))));
    Group later = wallet.groups().createGroup(request(wallet, intent(shared, "payments", 2)));
    assertThat(believed(shared, later).getDigest()).isNotEqualTo(checked.getDigest());
    assertThat(
            wallet.groups().getGroup(GetGroupRequest.newBuilder().setName(group.getName()).build()))
        .isEqualTo(group);
    assertThat(wallet.groups().listGroups(ListGroupsRequest.getDefaultInstance()).getGroupsList())
        .contains(group, later);
  }

  @Test
  void requests_that_parties_or_coordinator_must_not_serve_are_refused(Running shared) {
    WalletBackend wallet = shared.wallet();
    refused(
        ErrorReason.PARTY_UNKNOWN,
        () ->
            wallet
                .groups()
                .createGroup(request(wallet, intent(shared, "strangers", 1).addOpeners("nobody"))));
    refused(
        ErrorReason.THRESHOLD_INVALID,
        () ->
            wallet
                .groups()
                .createGroup(request(wallet, intent(shared, "alone", 1).setIssuerThreshold(1))));
    refused(
        ErrorReason.GROUP_NOT_FOUND,
        () ->
            wallet
                .groups()
                .getGroup(
                    GetGroupRequest.newBuilder().setName("groups/payments/epochs/77").build()));
    refused(
        ErrorReason.RESOURCE_NAME_INVALID,
        () ->
            wallet
                .groups()
                .getGroup(GetGroupRequest.newBuilder().setName("groups/payments").build()));
    // The auditor may have keys of another name made, and no group.
    WalletBackend auditor = shared.cluster().backend("auditor");
    refused(
        ErrorReason.FORBIDDEN,
        () -> auditor.groups().createGroup(request(auditor, intent(shared, "forbidden", 1))));
    assertThat(List.of(wallet.groups().listGroups(ListGroupsRequest.getDefaultInstance())))
        .allMatch(
            list -> list.getGroupsList().stream().noneMatch(g -> g.getName().contains("alone")));
  }
}
