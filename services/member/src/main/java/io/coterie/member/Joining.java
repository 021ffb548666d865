package io.coterie.member;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.member.MemberFolder.Fact;
import io.coterie.mpc.MpcException;
import io.coterie.mpc.MpcSession;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.core.v1.AcceptAnswers;
import io.coterie.proto.core.v1.Apply;
import io.coterie.proto.core.v1.Group;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.GroupTerms;
import io.coterie.proto.core.v1.OrderRun;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.custody.v1.ApplyForMembershipRequest;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.proto.custody.v1.IssuerShare;
import io.coterie.proto.custody.v1.JoinGroupRequest;
import io.coterie.proto.custody.v1.JoinGroupResponse;
import io.coterie.proto.custody.v1.JoinStart;
import io.coterie.proto.custody.v1.MemberEnvelope;
import io.coterie.proto.custody.v1.RegisterMemberRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Member;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientResponseObserver;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * The way of a member from its ticket to its key, in steps that are stored in its folder before
 * anything of them is sent; a join that was interrupted goes on where it was. Steps are cited as
 * [R1] (docs/protocols/wbb.md).
 */
public final class Joining {
  /** Runs of the join that a ticket pays for. */
  public static final int MAX_RUNS = 8;

  /** The steps that a join tells of. */
  public enum Milestone {
    /** The member's application is on the disk. */
    APPLIED,
    /** Enough issuers have answered it. */
    ANSWERED,
    /** Enough issuers have the member's record. */
    REGISTERED,
    /** One of the ticket's runs is spent, and begins. */
    RUN_ORDERED,
    /** The member's key is on the disk. */
    JOINED
  }

  private static final SecureRandom RANDOM = new SecureRandom();

  private final MemberFolder folder;
  private final GroupMembers members;
  private final ByteString answer;
  private final String name;
  private final int epoch;
  private final Group group;
  private final SignedIntent ticket;
  private final io.grpc.Channel channel;
  private final Duration patience;
  private final Consumer<Milestone> progress;

  /**
   * A join; nothing is done yet.
   *
   * @param believed group whose parties have signed it
   * @param ticket for the folder's identity and this group
   * @param channel to the coordinator; stays open
   * @param patience how long to wait for each answer, whole seconds
   * @param progress is told each step once it is done, on the thread that joins; steps of an
   *     earlier call are not told again
   * @throws MemberException.Unfit if the ticket is for another identity or group
   */
  public Joining(
      MemberFolder folder,
      AttestedGroups.Believed believed,
      Ticket ticket,
      io.grpc.Channel channel,
      Duration patience,
      Consumer<Milestone> progress) {
    if (!ticket.isFor(folder)) {
      throw new MemberException.Unfit(
          "the ticket is for another identity than that of the member folder");
    }
    if (!ticket.group().equals(believed.trusted().group())
        || ticket.epoch() != believed.trusted().epoch()) {
      throw new MemberException.Unfit("the ticket is for another group, or another epoch of it");
    }
    this.folder = folder;
    this.members = believed.trusted().members();
    this.name = believed.trusted().group();
    this.epoch = believed.trusted().epoch();
    this.answer = believed.answer().toByteString();
    this.group = believed.inCore();
    this.ticket = ticket.signed();
    this.channel = channel;
    this.patience = patience;
    this.progress = progress;
  }

  /**
   * Goes on until the folder has the member's key.
   *
   * @throws MemberException if a step fails; most may be repeated, and {@link
   *     MemberException.TicketSpent} needs another ticket
   * @throws StatusRuntimeException if the coordinator or its issuers refuse, or do not answer
   */
  public Membership join() throws InterruptedException {
    if (folder.has(Fact.TICKET) && !folder.get(Fact.TICKET).equals(ticket.toByteString())) {
      throw new MemberException.Folder(
          "the member folder is for another ticket: use a folder for each");
    }
    try {
      if (!folder.has(Fact.APPLICANT_SEALED)) {
        apply();
      }
      if (!folder.has(Fact.CANDIDATE_SEALED)) {
        accept();
      }
      if (!folder.has(Fact.MEMBERSHIP_SEALED)) {
        run(register());
      }
    } catch (MpcException e) {
      throw folder.broken(e);
    }
    return folder
        .membership()
        .orElseThrow(() -> new IllegalStateException("the join has stored no key"));
  }

  /** [R1]. */
  private void apply() {
    Apply.Builder apply =
        Apply.newBuilder().setGroup(group).setTicket(IntentVerifier.digest(ticket.getPayload()));
    var applied = call(GroupCall.newBuilder().setApply(apply), "the application").getApplied();
    folder
        .set(Fact.TICKET, ticket.toByteString())
        .set(Fact.APPLICANT_SEALED, applied.getSealedApplicant())
        .set(Fact.APPLICATION, applied.getApplication())
        .save();
    progress.accept(Milestone.APPLIED);
  }

  /** [U3], [R3] with the answers of the issuers. */
  private void accept() {
    var answers =
        stub()
            .applyForMembership(
                ApplyForMembershipRequest.newBuilder()
                    .setTicket(ticket)
                    .setApplication(folder.get(Fact.APPLICATION))
                    .build());
    AcceptAnswers.Builder accept =
        AcceptAnswers.newBuilder()
            .setGroup(group)
            .setSealedApplicant(folder.get(Fact.APPLICANT_SEALED));
    Contributions shares = new Contributions();
    answers.getSharesList().forEach(share -> shares.add(share.getIssuer(), share.getShare()));
    var accepted =
        required(
                shares.use(
                    left ->
                        reply(
                            GroupCall.newBuilder()
                                .setAcceptAnswers(accept.clearShares().addAllShares(left)))),
                "the answer of the issuers")
            .getAnswersAccepted();
    RegisterMemberRequest.Builder registration =
        RegisterMemberRequest.newBuilder().setTicket(ticket);
    // The issuers refuse a list with one that does not hold.
    for (PartyBytes share : shares.left()) {
      registration.addShares(
          IssuerShare.newBuilder().setIssuer(share.getParty()).setShare(share.getValue()));
    }
    folder
        .set(Fact.CANDIDATE_SEALED, accepted.getSealedCandidate())
        .set(Fact.ACCEPTANCE, accepted.getAcceptance())
        .set(Fact.POINT, accepted.getPoint())
        .set(
            Fact.REGISTRATION,
            registration.setAcceptance(accepted.getAcceptance()).build().toByteString())
        .save();
    progress.accept(Milestone.ANSWERED);
  }

  /** [U4] the issuers that have the member's record, by the coordinator's word. */
  private List<Member> register() {
    RegisterMemberRequest request;
    try {
      request = RegisterMemberRequest.parseFrom(folder.get(Fact.REGISTRATION));
    } catch (InvalidProtocolBufferException e) {
      throw new MemberException.Folder("the registration in the member folder does not decode");
    }
    List<Integer> ids = stub().registerMember(request).getIssuersList();
    List<Member> registered =
        new ArrayList<>(members.issuers().stream().filter(m -> ids.contains(m.partyId())).toList());
    if (registered.size() < members.issuerThreshold()) {
      throw AttestedGroups.refused(name, "has too few issuers with the member's record");
    }
    progress.accept(Milestone.REGISTERED);
    // Others than in the run before, one of which may have been at fault.
    Collections.rotate(registered, folder.runs());
    List<Member> chosen = new ArrayList<>(registered.subList(0, members.issuerThreshold()));
    chosen.sort(Comparator.comparingInt(Member::partyId));
    return chosen;
  }

  /** [R6], [T] one run of the join, which is counted before it is ordered. */
  private void run(List<Member> issuers) throws InterruptedException {
    int number = folder.runs() + 1;
    if (number > MAX_RUNS) {
      throw new MemberException.TicketSpent(
          "the ticket has paid for "
              + MAX_RUNS
              + " runs of the join, and none went well: ask for a ticket of the next epoch");
    }
    byte[] id = new byte[32];
    RANDOM.nextBytes(id);
    ByteString session = ByteString.copyFrom(id);
    OrderRun.Builder order =
        OrderRun.newBuilder()
            .setGroup(group)
            .setSealedCandidate(folder.get(Fact.CANDIDATE_SEALED))
            .setNumber(number)
            .setSessionId(session);
    var ordered = call(GroupCall.newBuilder().setOrderRun(order), "the run").getRunOrdered();
    folder.set(Fact.CANDIDATE_SEALED, ordered.getSealedCandidate()).setRuns(number).save();
    progress.accept(Milestone.RUN_ORDERED);
    try (MpcSession core =
        folder.vault().start(session(session, issuers), folder.sealedIdentity(), new byte[0])) {
      ByteString key =
          new Stream(channel, patience)
              .run(
                  JoinStart.newBuilder()
                      .setTicket(ticket)
                      .setRunOrder(ordered.getOrder())
                      .setSessionId(session)
                      .addAllIssuers(issuers.stream().map(Member::partyId).toList())
                      .build(),
                  core);
      folder.set(Fact.GROUP, answer).set(Fact.MEMBERSHIP_SEALED, key).save();
      progress.accept(Milestone.JOINED);
    }
  }

  private SessionConfig session(ByteString id, List<Member> issuers) {
    int self = members.memberNumber();
    List<Party> parties = new ArrayList<>(issuers.stream().map(GroupMembers::party).toList());
    parties.add(Party.newBuilder().setId(self).setEvidenceKey(folder.get(Fact.IDENTITY)).build());
    parties.sort(Comparator.comparingInt(Party::getId));
    return SessionConfig.newBuilder()
        .setProtocol(ProtocolId.PROTOCOL_ID_ISSUING_JOIN)
        .setSessionId(id)
        .setSelf(self)
        .addAllParties(parties)
        .setThreshold(members.issuerThreshold())
        .setKeyId(name)
        .setEpoch(epoch)
        .setGroup(
            GroupTerms.newBuilder().setParties(group.getParties()).setAttested(group.getAttested()))
        .build();
  }

  private GroupReply call(GroupCall.Builder call, String what) {
    return required(reply(call), what);
  }

  private GroupReply reply(GroupCall.Builder call) {
    return folder.vault().call(call.build(), folder.sealedIdentity());
  }

  /** The core's reply, unless it refuses bytes of others. */
  private GroupReply required(GroupReply reply, String what) {
    if (reply.hasGroupRefused()) {
      throw AttestedGroups.refused(
          name,
          "is shown with bytes that do not hold, in "
              + what
              + ": "
              + reply.getGroupRefused().getDetail());
    }
    return reply;
  }

  private GroupServiceGrpc.GroupServiceBlockingStub stub() {
    return GroupServiceGrpc.newBlockingStub(channel)
        .withDeadlineAfter(patience.toSeconds(), TimeUnit.SECONDS);
  }

  /** The stream of one run: the member's session talks to its issuers. */
  static final class Stream implements ClientResponseObserver<JoinGroupRequest, JoinGroupResponse> {
    /** A response, or the end of the stream: a failure or nothing. */
    private sealed interface Arrived {
      record Response(JoinGroupResponse response) implements Arrived {}

      record Failure(Throwable cause) implements Arrived {}

      record End() implements Arrived {}
    }

    private final BlockingQueue<Arrived> arrived = new LinkedBlockingQueue<>();
    private final Duration patience;
    private final ClientCallStreamObserver<JoinGroupRequest> requests;

    /** Whether nobody takes responses any more. */
    private volatile boolean over;

    Stream(io.grpc.Channel channel, Duration patience) {
      this.patience = patience;
      this.requests =
          (ClientCallStreamObserver<JoinGroupRequest>)
              GroupServiceGrpc.newStub(channel)
                  .withDeadlineAfter(patience.toSeconds(), TimeUnit.SECONDS)
                  .joinGroup(this);
    }

    /** One response at a time, so that what a coordinator sends stays with it. */
    @Override
    public void beforeStart(ClientCallStreamObserver<JoinGroupRequest> stream) {
      stream.disableAutoRequestWithInitial(1);
    }

    @Override
    public void onNext(JoinGroupResponse response) {
      if (over) {
        return;
      }
      arrived.add(new Arrived.Response(response));
    }

    @Override
    public void onError(Throwable cause) {
      arrived.add(new Arrived.Failure(cause));
    }

    @Override
    public void onCompleted() {
      arrived.add(new Arrived.End());
    }

    /** The member's key. */
    ByteString run(JoinStart start, MpcSession core) throws InterruptedException {
      requests.onNext(JoinGroupRequest.newBuilder().setStart(start).build());
      Step step = core.firstStep();
      while (true) {
        send(step);
        switch (step.getProgressCase()) {
          case DONE -> {
            end();
            return step.getDone().getSealedShare();
          }
          case ABORT -> {
            end();
            throw new MemberException.RunAborted(
                "the run of the join has ended: "
                    + step.getAbort().getCause().name()
                    + ", culprits "
                    + step.getAbort().getCulpritsList()
                    + ", suspects "
                    + step.getAbort().getSuspectsList()
                    + ". Join again: another run may have other issuers.");
          }
          case WAITING, DROPPED, PROGRESS_NOT_SET -> step = next(core);
        }
      }
    }

    /** The coordinator may say its last words, which nobody keeps. */
    private void end() {
      over = true;
      requests.onCompleted();
      requests.request(Integer.MAX_VALUE);
    }

    private Step next(MpcSession core) throws InterruptedException {
      while (true) {
        Arrived next = arrived.poll(patience.toSeconds(), TimeUnit.SECONDS);
        if (next instanceof Arrived.Response) {
          requests.request(1);
        }
        switch (next) {
          case Arrived.Response(JoinGroupResponse response) when response.hasEnvelope() -> {
            MemberEnvelope envelope = response.getEnvelope();
            // The coordinator says whose it is; the core looks at the signature.
            return core.handle(envelope.getIssuer(), envelope.getEnvelope().toByteArray());
          }
          case Arrived.Response _ -> {
            // The end, by the coordinator's word. It says nothing that the session does not.
          }
          case Arrived.Failure(Throwable cause) ->
              throw Status.fromThrowable(cause)
                  .asRuntimeException(Status.trailersFromThrowable(cause));
          case Arrived.End _ ->
              throw new MemberException.RunUnanswered(
                  "the coordinator has ended the run: join again");
          case null ->
              throw new MemberException.RunUnanswered(
                  "the issuers did not answer in time: join again");
        }
      }
    }

    private void send(Step step) {
      for (Outgoing outgoing : step.getOutgoingList()) {
        try {
          requests.onNext(
              JoinGroupRequest.newBuilder()
                  .setEnvelope(
                      MemberEnvelope.newBuilder()
                          .setIssuer(outgoing.getRecipient())
                          .setEnvelope(outgoing.getEnvelope()))
                  .build());
        } catch (IllegalStateException e) {
          // The stream is over; its end is in the queue.
          return;
        }
      }
    }
  }
}
