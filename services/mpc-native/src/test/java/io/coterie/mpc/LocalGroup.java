package io.coterie.mpc;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.AcceptAnswers;
import io.coterie.proto.core.v1.AnswerApplication;
import io.coterie.proto.core.v1.AnswersAccepted;
import io.coterie.proto.core.v1.Applied;
import io.coterie.proto.core.v1.Apply;
import io.coterie.proto.core.v1.ApprovalDecision;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.Approve;
import io.coterie.proto.core.v1.Approved;
import io.coterie.proto.core.v1.AssembleGroup;
import io.coterie.proto.core.v1.AttestGroup;
import io.coterie.proto.core.v1.AttestOpenersKey;
import io.coterie.proto.core.v1.CombineOpening;
import io.coterie.proto.core.v1.CountApprovals;
import io.coterie.proto.core.v1.CountRun;
import io.coterie.proto.core.v1.CreateOpenerKey;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Group;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupParties;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.GroupTerms;
import io.coterie.proto.core.v1.IssuerRecords;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.MemberRegistered;
import io.coterie.proto.core.v1.NameIssuingKey;
import io.coterie.proto.core.v1.OpenerKeyCreated;
import io.coterie.proto.core.v1.OpenersKey;
import io.coterie.proto.core.v1.OrderRun;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.RegisterMember;
import io.coterie.proto.core.v1.Reserve;
import io.coterie.proto.core.v1.RunCounted;
import io.coterie.proto.core.v1.RunOrdered;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.ShareOpening;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Three issuers and one auditor with a group of theirs, each with a vault of its own. */
final class LocalGroup implements AutoCloseable {
  static final int AUDITOR = 4;
  static final int MEMBER = 100;

  private static final byte[] NOTHING = {};
  private static final String NAME = "approvers";

  final LocalParties parties = new LocalParties(AUDITOR);
  final GroupVerifier verifier = parties.core;
  final GroupParties config;
  final OpenerKeyCreated opening;
  final Map<Integer, Done> issuing;
  final ByteString published;
  final Group group;

  LocalGroup() {
    List<Party> everybody = parties.keygen(2).getPartiesList();
    List<Party> issuers = everybody.subList(0, 3);
    config =
        GroupParties.newBuilder()
            .setInstallation("acme")
            .addAllIssuers(issuers)
            .setIssuerThreshold(2)
            .addOpeners(everybody.get(AUDITOR - 1))
            .setOpenerThreshold(1)
            .build();
    opening =
        by(
                AUDITOR,
                GroupCall.newBuilder()
                    .setCreateOpenerKey(
                        CreateOpenerKey.newBuilder().setKeyId("auditor").setParty(AUDITOR)))
            .getOpenerKeyCreated();
    OpenersKey unsigned =
        OpenersKey.newBuilder().setGroup(NAME).setEpoch(1).setKey(opening.getKeyPublic()).build();
    AttestOpenersKey.Builder attest =
        AttestOpenersKey.newBuilder()
            .setOpeners(unsigned)
            .setParties(config)
            .setParty(AUDITOR)
            .setSealedShare(opening.getSealedShare());
    ByteString signature =
        by(AUDITOR, GroupCall.newBuilder().setAttestOpenersKey(attest))
            .getAttested()
            .getSignature();
    OpenersKey openers = unsigned.toBuilder().addSignatures(from(AUDITOR, signature)).build();
    String key =
        verifier
            .call(
                GroupCall.newBuilder()
                    .setNameIssuingKey(
                        NameIssuingKey.newBuilder().setOpeners(openers).setParties(config))
                    .build())
            .getIssuingKeyNamed()
            .getKeyId();
    SessionConfig.Builder session =
        SessionConfig.newBuilder()
            .addAllParties(issuers)
            .setThreshold(2)
            .setKeyId(key)
            .setEpoch(1)
            .setGroup(GroupTerms.newBuilder().setParties(config).setOpeners(openers));
    SessionConfig keygen = session(session, ProtocolId.PROTOCOL_ID_ISSUING_KEYGEN);
    issuing = parties.run(keygen, id -> keygen, id -> NOTHING);
    SessionConfig publish = session(session, ProtocolId.PROTOCOL_ID_ISSUING_PUBLISH);
    published = parties.run(publish, id -> publish, this::share).get(1).getGroup();
    group =
        Group.newBuilder()
            .setParties(config)
            .setAttested(assemble(signatures()).getGroupChecked().getAttested())
            .build();
  }

  private SessionConfig session(SessionConfig.Builder session, ProtocolId protocol) {
    return session
        .setProtocol(protocol)
        .setSessionId(ByteString.copyFrom(parties.bytes(32)))
        .build();
  }

  private byte[] share(int issuer) {
    return issuing.get(issuer).getSealedShare().toByteArray();
  }

  static PartyBytes from(int party, ByteString value) {
    return PartyBytes.newBuilder().setParty(party).setValue(value).build();
  }

  /** A call by one of the parties. */
  GroupReply by(int party, GroupCall.Builder call) {
    return parties.vaults.get(party).call(call.build(), parties.identities.get(party).sealed());
  }

  KeyPublic issuingKey() {
    return issuing.get(1).getKeyPublic();
  }

  /** The issuers' signatures of the group. */
  List<PartyBytes> signatures() {
    List<PartyBytes> signatures = new ArrayList<>();
    issuing.forEach(
        (issuer, done) -> {
          AttestGroup.Builder attest =
              AttestGroup.newBuilder()
                  .setParties(config)
                  .setPublished(published)
                  .setParty(issuer)
                  .setIssuers(issuingKey())
                  .setSealedShare(done.getSealedShare());
          GroupReply reply = by(issuer, GroupCall.newBuilder().setAttestGroup(attest));
          signatures.add(from(issuer, reply.getAttested().getSignature()));
        });
    return signatures;
  }

  GroupReply assemble(List<PartyBytes> signatures) {
    return verifier.call(
        GroupCall.newBuilder()
            .setAssembleGroup(
                AssembleGroup.newBuilder()
                    .setParties(config)
                    .setPublished(published)
                    .setIssuers(issuingKey())
                    .addAllSignatures(signatures))
            .build());
  }

  static ApprovalRequest request(int number, ApprovalDecision decision) {
    byte[] digest = new byte[32];
    digest[0] = (byte) number;
    return ApprovalRequest.newBuilder()
        .setDigest(ByteString.copyFrom(digest))
        .setDecision(decision)
        .build();
  }

  GroupReply count(ApprovalRequest request, List<ByteString> approvals, int needed) {
    return verifier.call(
        GroupCall.newBuilder()
            .setCountApprovals(
                CountApprovals.newBuilder()
                    .setGroup(group)
                    .setRequest(request)
                    .addAllApprovals(approvals)
                    .setNeeded(needed))
            .build());
  }

  /** The auditor's share of the opening of an approval. */
  GroupReply share(ApprovalRequest request, ByteString approval) {
    ShareOpening.Builder share =
        ShareOpening.newBuilder()
            .setGroup(group)
            .setRequest(request)
            .setApproval(approval)
            .setParty(AUDITOR)
            .setSealedShare(opening.getSealedShare());
    return by(AUDITOR, GroupCall.newBuilder().setShareOpening(share));
  }

  GroupReply open(ApprovalRequest request, ByteString approval, ByteString share) {
    return verifier.call(
        GroupCall.newBuilder()
            .setCombineOpening(
                CombineOpening.newBuilder()
                    .setGroup(group)
                    .setRequest(request)
                    .setApproval(approval)
                    .addShares(from(AUDITOR, share)))
            .build());
  }

  /** A person who applies with a ticket, registers with all issuers, and joins with two of them. */
  final class Member implements AutoCloseable {
    final Vault vault = parties.core.openVault(parties.bytes(32));
    final Vault.SealedIdentity identity = vault.createIdentity("member");
    final ByteString ticket = ByteString.copyFrom(parties.bytes(32));
    final Map<Integer, MemberRegistered> records = new TreeMap<>();
    ByteString sealed = ByteString.EMPTY;
    ByteString point = ByteString.EMPTY;

    GroupReply call(GroupCall.Builder call) {
      return vault.call(call.build(), identity.sealed());
    }

    ByteString evidenceKey() {
      return ByteString.copyFrom(identity.evidenceKey());
    }

    Applied apply() {
      return call(GroupCall.newBuilder()
              .setApply(Apply.newBuilder().setGroup(group).setTicket(ticket)))
          .getApplied();
    }

    GroupReply reserve(ByteString application, IssuerRecords records) {
      return verifier.call(
          GroupCall.newBuilder()
              .setReserve(
                  Reserve.newBuilder()
                      .setGroup(group)
                      .setTicket(ticket)
                      .setIdentity(evidenceKey())
                      .setApplication(application)
                      .setRecords(records))
              .build());
    }

    /** Registers with every issuer. */
    Member register() {
      Applied applied = apply();
      Map<Integer, ByteString> reservations = new TreeMap<>();
      List<PartyBytes> shares = new ArrayList<>();
      issuing.forEach(
          (issuer, done) -> {
            GroupReply reserved =
                reserve(applied.getApplication(), IssuerRecords.getDefaultInstance());
            ByteString reservation = reserved.getReserved().getReservation();
            reservations.put(issuer, reservation);
            AnswerApplication.Builder answer =
                AnswerApplication.newBuilder()
                    .setGroup(group)
                    .setReservation(reservation)
                    .setParty(issuer)
                    .setSealedShare(done.getSealedShare());
            GroupReply reply = by(issuer, GroupCall.newBuilder().setAnswerApplication(answer));
            shares.add(from(issuer, reply.getApplicationAnswered().getShare()));
          });
      AcceptAnswers.Builder accept =
          AcceptAnswers.newBuilder()
              .setGroup(group)
              .setSealedApplicant(applied.getSealedApplicant())
              .addAllShares(shares);
      AnswersAccepted accepted =
          call(GroupCall.newBuilder().setAcceptAnswers(accept)).getAnswersAccepted();
      sealed = accepted.getSealedCandidate();
      point = accepted.getPoint();
      reservations.forEach(
          (issuer, reservation) -> {
            RegisterMember.Builder register =
                RegisterMember.newBuilder()
                    .setGroup(group)
                    .setReservation(reservation)
                    .addAllShares(shares)
                    .setAcceptance(accepted.getAcceptance());
            GroupReply reply =
                verifier.call(GroupCall.newBuilder().setRegisterMember(register).build());
            records.put(issuer, reply.getMemberRegistered());
          });
      return this;
    }

    /** Orders a run, which these issuers count. */
    SessionConfig ordered(int number, List<Integer> issuers) {
      ByteString session = ByteString.copyFrom(parties.bytes(32));
      OrderRun.Builder order =
          OrderRun.newBuilder()
              .setGroup(group)
              .setSealedCandidate(sealed)
              .setNumber(number)
              .setSessionId(session);
      RunOrdered ordered = call(GroupCall.newBuilder().setOrderRun(order)).getRunOrdered();
      sealed = ordered.getSealedCandidate();
      SessionConfig.Builder joining =
          SessionConfig.newBuilder()
              .setProtocol(ProtocolId.PROTOCOL_ID_ISSUING_JOIN)
              .setSessionId(session)
              .setThreshold(2)
              .setKeyId(NAME)
              .setEpoch(1)
              .setGroup(
                  GroupTerms.newBuilder().setParties(config).setAttested(group.getAttested()));
      for (int issuer : issuers) {
        CountRun.Builder count =
            CountRun.newBuilder()
                .setGroup(group)
                .setMember(records.get(issuer).getMember())
                .setPart(records.get(issuer).getPart())
                .setOrder(ordered.getOrder())
                .setSessionId(session);
        RunCounted counted = by(issuer, GroupCall.newBuilder().setCountRun(count)).getRunCounted();
        records.computeIfPresent(
            issuer, (id, record) -> record.toBuilder().setMember(counted.getMember()).build());
        joining.addParties(config.getIssuers(issuer - 1));
      }
      return joining
          .addParties(Party.newBuilder().setId(MEMBER).setEvidenceKey(evidenceKey()))
          .build();
    }

    MpcSession start(SessionConfig joining) {
      return vault.start(joining.toBuilder().setSelf(MEMBER).build(), identity.sealed(), NOTHING);
    }

    MpcSession startIssuer(int issuer, SessionConfig joining) {
      return parties.start(issuer, joining, share(issuer));
    }

    /** Joins in its first run. */
    Member join(List<Integer> issuers) {
      SessionConfig joining = ordered(1, issuers);
      Map<Integer, MpcSession> sessions = new TreeMap<>();
      issuers.forEach(issuer -> sessions.put(issuer, startIssuer(issuer, joining)));
      sessions.put(MEMBER, start(joining));
      sealed = LocalParties.run(sessions).get(MEMBER).getSealedShare();
      return this;
    }

    Approved approve(ApprovalRequest request) {
      Approve.Builder approve =
          Approve.newBuilder().setGroup(group).setRequest(request).setSealedMember(sealed);
      return call(GroupCall.newBuilder().setApprove(approve)).getApproved();
    }

    private byte[] share(int issuer) {
      return LocalGroup.this.share(issuer);
    }

    @Override
    public void close() {
      vault.close();
    }
  }

  @Override
  public void close() {
    parties.close();
  }
}
