package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.mpc.GroupVerifier;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.AssembleGroup;
import io.coterie.proto.core.v1.CheckGroup;
import io.coterie.proto.core.v1.Group;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.OpenersKey;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.KeepGroup;
import io.coterie.proto.party.v1.MakeIssuingKey;
import io.coterie.proto.party.v1.MakeOpenersKey;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.PublishGroup;
import io.coterie.trust.Member;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** One group in the making: a requester's intent, and a coordinator that orders each step. */
final class GroupMaking {
  private static final SecureRandom RANDOM = new SecureRandom();
  static final GroupVerifier VERIFIER = NativeMpcCore.load();

  private final Installation i;
  final SignedIntent intent;
  final GroupMembers members;
  final String group;
  final int epoch;

  GroupMaking(Installation i, GroupIntent.Builder wish) {
    this.i = i;
    this.intent =
        new IntentSigner("wallet", i.wallet.getPrivate())
            .sign(wish.setInstallation(i.network.roster().installation()).build());
    this.group = wish.getGroup();
    this.epoch = wish.getEpoch();
    this.members = GroupMembers.of(verified(), i.network.roster()).orElseThrow();
  }

  private VerifiedIntent.GroupCreation verified() {
    try {
      return (VerifiedIntent.GroupCreation)
          IntentVerifier.verify(intent, _ -> Optional.of(i.wallet.getPublic()));
    } catch (io.coterie.platform.intent.IntentException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A group of all three parties, two of whom issue, and two open. */
  static GroupIntent.Builder wish(String group, int epoch) {
    return GroupIntent.newBuilder()
        .setRequestId(Installation.requestId())
        .setGroup(group)
        .setEpoch(epoch)
        .setIssuerThreshold(2)
        .addAllIssuers(NativeParties.NAMES)
        .setOpenerThreshold(2)
        .addAllOpeners(NativeParties.NAMES)
        .setPurpose("approvers of withdrawals")
        .setNotAfter(Installation.in(Duration.ofMinutes(5)));
  }

  GroupOrder.Builder order() {
    byte[] nonce = new byte[32];
    RANDOM.nextBytes(nonce);
    return GroupOrder.newBuilder()
        .setCoordinatorNonce(ByteString.copyFrom(nonce))
        .setSignedIntent(intent)
        .setDeadline(Installation.in(Duration.ofSeconds(20)));
  }

  GroupOrder.Builder opening() {
    return order().setMakeOpenersKey(MakeOpenersKey.getDefaultInstance());
  }

  GroupOrder.Builder issuing(OpenersKey openers) {
    return order().setMakeIssuingKey(MakeIssuingKey.newBuilder().setOpeners(openers));
  }

  GroupOrder.Builder publish(OpenersKey openers) {
    return order().setPublishGroup(PublishGroup.newBuilder().setOpeners(openers));
  }

  GroupOrder.Builder keep(ByteString attested) {
    return order().setKeepGroup(KeepGroup.newBuilder().setAttested(attested));
  }

  /** Sends an order; returns the id of its session. */
  SessionId give(GroupOrder.Builder order, Collection<Member> to) {
    ByteString bytes = order.build().toByteString();
    i.coordinator.tell(PartyMessage.newBuilder().setGroupOrder(bytes).build(), to);
    return SessionId.ofOrder(bytes);
  }

  /** The next report of a party about an order. */
  GroupReport awaitFrom(Member party, SessionId session) {
    List<GroupReport> found = new ArrayList<>();
    Installation.until(
        party.name() + " reports",
        () -> {
          i.coordinator.groupReports.removeIf(
              message -> {
                GroupReport report = Installation.parse(message.body()).getGroupReport();
                boolean wanted =
                    found.isEmpty()
                        && message.sender().equals(party)
                        && report.getSessionId().equals(session.bytes());
                if (wanted) {
                  found.add(report);
                }
                return wanted;
              });
          return !found.isEmpty();
        });
    return found.getFirst();
  }

  /** Gives an order to these, and awaits the report of each, by id. */
  Map<Integer, GroupReport> done(GroupOrder.Builder order, List<Member> by) {
    SessionId session = give(order, by);
    Map<Integer, GroupReport> reports = new TreeMap<>();
    by.forEach(party -> reports.put(party.partyId(), awaitFrom(party, session)));
    return reports;
  }

  OpenersKey openersKey() {
    return openersKey(done(opening(), members.openers()));
  }

  OpenersKey openersKey(Map<Integer, GroupReport> made) {
    assertThat(made.values()).allMatch(GroupReport::hasOpenersKeyMade, "made");
    List<KeyPublic> keys =
        made.values().stream().map(r -> r.getOpenersKeyMade().getKeyPublic()).distinct().toList();
    assertThat(keys).hasSize(1);
    OpenersKey.Builder key =
        OpenersKey.newBuilder().setGroup(group).setEpoch(epoch).setKey(keys.getFirst());
    made.forEach(
        (party, report) ->
            key.addSignatures(from(party, report.getOpenersKeyMade().getSignature())));
    return key.build();
  }

  static PartyBytes from(int party, ByteString value) {
    return PartyBytes.newBuilder().setParty(party).setValue(value).build();
  }

  /** Has the issuing key made; returns its public data. */
  KeyPublic issuingKey(OpenersKey openers) {
    List<KeyPublic> keys =
        done(issuing(openers), members.issuers()).values().stream()
            .peek(report -> assertThat(report.hasIssuingKeyMade()).as("%s", report).isTrue())
            .map(report -> report.getIssuingKeyMade().getKeyPublic())
            .distinct()
            .toList();
    assertThat(keys).hasSize(1);
    return keys.getFirst();
  }

  /** Has the group published; returns it with the signatures of all issuers. */
  ByteString published(OpenersKey openers, KeyPublic issuing) {
    AssembleGroup.Builder assemble =
        AssembleGroup.newBuilder().setParties(members.parties()).setIssuers(issuing);
    done(publish(openers), members.issuers())
        .forEach(
            (party, report) -> {
              assertThat(report.hasGroupPublished()).as("%s", report).isTrue();
              assemble
                  .setPublished(report.getGroupPublished().getPublished())
                  .addSignatures(from(party, report.getGroupPublished().getSignature()));
            });
    return VERIFIER
        .call(GroupCall.newBuilder().setAssembleGroup(assemble).build())
        .getGroupChecked()
        .getAttested();
  }

  /** Every step; returns the group that all its parties keep. */
  ByteString made() {
    OpenersKey openers = openersKey();
    ByteString attested = published(openers, issuingKey(openers));
    assertThat(done(keep(attested), members.all()).values()).allMatch(GroupReport::hasGroupKept);
    return attested;
  }

  /** The core's word on a group, for anybody with the roster. */
  GroupReply check(ByteString attested) {
    return VERIFIER.call(
        GroupCall.newBuilder()
            .setCheckGroup(
                CheckGroup.newBuilder()
                    .setGroup(
                        Group.newBuilder().setParties(members.parties()).setAttested(attested)))
            .build());
  }
}
