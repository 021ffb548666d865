package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.proto.core.v1.AttestGroup;
import io.coterie.proto.core.v1.AttestOpenersKey;
import io.coterie.proto.core.v1.CheckGroup;
import io.coterie.proto.core.v1.CreateOpenerKey;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupChecked;
import io.coterie.proto.core.v1.GroupParties;
import io.coterie.proto.core.v1.GroupTerms;
import io.coterie.proto.core.v1.NameIssuingKey;
import io.coterie.proto.core.v1.OpenersKey;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.party.v1.GroupKept;
import io.coterie.proto.party.v1.GroupPublished;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.IssuingKeyMade;
import io.coterie.proto.party.v1.OpenersKeyMade;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.group.GroupRecord.Share;
import io.coterie.signer.party.GroupCore;
import io.coterie.trust.Member;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The core's part of each step, and this party's answer once the step is on its disk. Steps are
 * cited as [D1] (docs/protocols/wbb.md).
 */
final class GroupSteps {
  /** Of a key that is generated. */
  private static final int FIRST_EPOCH = 1;

  private final GroupCalls core;
  private final GroupStore store;
  private final Member self;

  GroupSteps(GroupCore core, GroupStore store, Member self) {
    this.core = new GroupCalls(core, NotDoneException::of);
    this.store = store;
    this.self = self;
  }

  /** The work of a step that is not done. */
  sealed interface Work {
    /**
     * A session of the core.
     *
     * @param sealedShare that the core opens; empty if it opens none
     */
    record Session(SessionConfig config, ByteString sealedShare) implements Work {}

    /** A share that this party has drawn alone. */
    record Drawn(Share share) implements Work {}

    /** The group that all issuers have signed. */
    record Complete(ByteString attested) implements Work {}
  }

  /** This party's report of a step that its record has; empty if that is to be done. */
  Optional<GroupReport.Builder> answer(GroupPlan plan, GroupRecord record) throws NotDoneException {
    return switch (plan.making()) {
      case GroupStep.Opening _ ->
          record.opening() == null
              ? Optional.empty()
              : Optional.of(opening(plan, record, record.opening()));
      case GroupStep.Issuing(OpenersKey openers) ->
          record.issuing() == null
              ? Optional.empty()
              : Optional.of(issuing(plan, record.issuing(), openers));
      case GroupStep.Publish(OpenersKey openers) ->
          record.published().isEmpty()
              ? Optional.empty()
              : Optional.of(published(plan, record, openers));
      case GroupStep.Keep(ByteString attested) ->
          record.attested().isEmpty()
              ? Optional.empty()
              : Optional.of(kept(plan, record, attested));
    };
  }

  /** [G1.2] signs the openers' key, the only one that this party has for the epoch. */
  private GroupReport.Builder opening(GroupPlan plan, GroupRecord record, Share share)
      throws NotDoneException {
    AttestOpenersKey.Builder attest =
        AttestOpenersKey.newBuilder()
            .setOpeners(
                OpenersKey.newBuilder()
                    .setGroup(plan.group())
                    .setEpoch(plan.epoch())
                    .setKey(share.keyPublic()))
            .setParties(record.parties())
            .setParty(self.partyId())
            .setSealedShare(share.sealed());
    ByteString signature =
        core.call(GroupCall.newBuilder().setAttestOpenersKey(attest)).getAttested().getSignature();
    return GroupReport.newBuilder()
        .setOpenersKeyMade(
            OpenersKeyMade.newBuilder().setKeyPublic(share.keyPublic()).setSignature(signature));
  }

  private GroupReport.Builder issuing(GroupPlan plan, Share share, OpenersKey openers)
      throws NotDoneException {
    requireFor(share, plan, openers);
    return GroupReport.newBuilder()
        .setIssuingKeyMade(IssuingKeyMade.newBuilder().setKeyPublic(share.keyPublic()));
  }

  /** [D4.2] signs the public data, the only ones that this party has for the epoch. */
  private GroupReport.Builder published(GroupPlan plan, GroupRecord record, OpenersKey openers)
      throws NotDoneException {
    Share share = issuingShare(record);
    requireFor(share, plan, openers);
    AttestGroup.Builder attest =
        AttestGroup.newBuilder()
            .setParties(record.parties())
            .setPublished(record.published())
            .setParty(self.partyId())
            .setIssuers(share.keyPublic())
            .setSealedShare(share.sealed());
    ByteString signature =
        core.call(GroupCall.newBuilder().setAttestGroup(attest)).getAttested().getSignature();
    return GroupReport.newBuilder()
        .setGroupPublished(
            GroupPublished.newBuilder().setPublished(record.published()).setSignature(signature));
  }

  private GroupReport.Builder kept(GroupPlan plan, GroupRecord record, ByteString attested)
      throws NotDoneException {
    NotDoneException.unless(
        record.attested().equals(attested),
        RefusalReason.REFUSAL_REASON_GROUP_STEP,
        "this party keeps another group of that name and epoch");
    return GroupReport.newBuilder()
        .setGroupKept(
            GroupKept.newBuilder()
                .setDigest(checked(plan, record.parties(), attested).getDigest()));
  }

  /**
   * The work of a step, once everything that others have given for it was checked.
   *
   * @param record null if the epoch is not begun here
   */
  Work work(GroupPlan plan, @Nullable GroupRecord record) throws NotDoneException {
    GroupMembers members = plan.members();
    GroupParties parties = record == null ? members.parties() : record.parties();
    NotDoneException.unless(
        parties.equals(members.parties()),
        RefusalReason.REFUSAL_REASON_GROUP_STEP,
        "the roster has changed since the epoch was begun");
    return switch (plan.making()) {
      case GroupStep.Opening _ -> openersKey(plan);
      case GroupStep.Issuing(OpenersKey openers) -> {
        SessionConfig.Builder session =
            session(plan, ProtocolId.PROTOCOL_ID_ISSUING_KEYGEN)
                .setThreshold(members.issuerThreshold())
                .setKeyId(issuingKey(plan, openers))
                .setGroup(GroupTerms.newBuilder().setParties(parties).setOpeners(openers));
        yield new Work.Session(session.build(), ByteString.EMPTY);
      }
      case GroupStep.Publish(OpenersKey openers) -> {
        Share share = issuingShare(record);
        requireFor(share, plan, openers);
        SessionConfig.Builder session =
            session(plan, ProtocolId.PROTOCOL_ID_ISSUING_PUBLISH)
                .setThreshold(members.issuerThreshold())
                .setKeyId(share.keyPublic().getKeyId())
                .setGroup(GroupTerms.newBuilder().setParties(parties).setOpeners(openers));
        yield new Work.Session(session.build(), share.sealed());
      }
      case GroupStep.Keep(ByteString attested) -> complete(plan, record, attested);
    };
  }

  /** [G1] an auditor draws its key alone; several openers generate one. */
  private Work openersKey(GroupPlan plan) throws NotDoneException {
    String name = GroupMembers.openersKeyName(plan.intent());
    GroupMembers members = plan.members();
    if (members.openers().size() > 1) {
      return new Work.Session(
          session(plan, ProtocolId.PROTOCOL_ID_OPENING_KEYGEN)
              .setThreshold(members.openerThreshold())
              .setKeyId(name)
              .build(),
          ByteString.EMPTY);
    }
    CreateOpenerKey.Builder create =
        CreateOpenerKey.newBuilder().setKeyId(name).setParty(self.partyId());
    var made = core.call(GroupCall.newBuilder().setCreateOpenerKey(create)).getOpenerKeyCreated();
    return new Work.Drawn(new Share(made.getKeyPublic(), made.getSealedShare()));
  }

  /**
   * [D4.3] takes the group. It has this party's own signature, and this party signs one for a name
   * and epoch, so nothing else is to be compared.
   */
  private Work complete(GroupPlan plan, @Nullable GroupRecord record, ByteString attested)
      throws NotDoneException {
    boolean opens = plan.members().openers().contains(self);
    boolean issues = plan.members().issuers().contains(self);
    NotDoneException.unless(
        record != null
            && (!opens || record.opening() != null)
            && (!issues || !record.published().isEmpty()),
        RefusalReason.REFUSAL_REASON_GROUP_STEP,
        "this party has not signed the group");
    checked(plan, plan.members().parties(), attested);
    return new Work.Complete(attested);
  }

  /** [G3], [G4] checks a group and that it follows the epochs that this party knows. */
  private GroupChecked checked(GroupPlan plan, GroupParties parties, ByteString attested)
      throws NotDoneException {
    CheckGroup.Builder check =
        CheckGroup.newBuilder().setGroup(GroupCalls.group(parties, attested));
    for (GroupRecord earlier : store.attested(plan.group())) {
      if (earlier.epoch() < plan.epoch()) {
        check.addEarlier(GroupCalls.group(earlier.parties(), earlier.attested()));
      }
    }
    GroupChecked checked = core.call(GroupCall.newBuilder().setCheckGroup(check)).getGroupChecked();
    NotDoneException.unless(
        checked.getName().equals(plan.group()) && checked.getEpoch() == plan.epoch(),
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
        "the group is of another name or epoch than the intent");
    return checked;
  }

  private static Share issuingShare(@Nullable GroupRecord record) throws NotDoneException {
    Share share = record == null ? null : record.issuing();
    if (share == null) {
      throw new NotDoneException(
          RefusalReason.REFUSAL_REASON_GROUP_STEP, "this party has no share of the issuing key");
    }
    return share;
  }

  /** The issuing key is made for one openers' key, whose digest is its name. */
  private void requireFor(Share share, GroupPlan plan, OpenersKey openers) throws NotDoneException {
    NotDoneException.unless(
        share.keyPublic().getKeyId().equals(issuingKey(plan, openers)),
        RefusalReason.REFUSAL_REASON_GROUP_STEP,
        "this party's share of the issuing key is for another openers' key");
  }

  /** [D1] the name of the issuing key, if all openers have signed theirs for this epoch. */
  private String issuingKey(GroupPlan plan, OpenersKey openers) throws NotDoneException {
    NotDoneException.unless(
        openers.getGroup().equals(plan.group()) && openers.getEpoch() == plan.epoch(),
        RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
        "the openers' key is for another group or epoch than the intent");
    NameIssuingKey.Builder name =
        NameIssuingKey.newBuilder().setOpeners(openers).setParties(plan.members().parties());
    return core.call(GroupCall.newBuilder().setNameIssuingKey(name))
        .getIssuingKeyNamed()
        .getKeyId();
  }

  private SessionConfig.Builder session(GroupPlan plan, ProtocolId protocol) {
    List<Member> parties = plan.doers();
    return SessionConfig.newBuilder()
        .setProtocol(protocol)
        .setSessionId(plan.id().bytes())
        .setSelf(self.partyId())
        .setEpoch(FIRST_EPOCH)
        .addAllParties(parties.stream().map(GroupMembers::party).toList());
  }
}
