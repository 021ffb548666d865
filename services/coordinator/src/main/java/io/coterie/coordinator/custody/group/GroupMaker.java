package io.coterie.coordinator.custody.group;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.custody.request.Pace;
import io.coterie.coordinator.custody.request.Run;
import io.coterie.coordinator.custody.request.RunLimits;
import io.coterie.coordinator.custody.request.Stopping;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.mpc.EvidenceJudge;
import io.coterie.mpc.GroupVerifier;
import io.coterie.mpc.MpcException;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.AssembleGroup;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.GroupTerms;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.NameIssuingKey;
import io.coterie.proto.core.v1.OpenersKey;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.KeepGroup;
import io.coterie.proto.party.v1.MakeIssuingKey;
import io.coterie.proto.party.v1.MakeOpenersKey;
import io.coterie.proto.party.v1.PublishGroup;
import io.coterie.trust.Member;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes a group through its steps, one order after another, and puts what the parties have made
 * together. It keeps no secret and is believed by nobody: each party checks what the others have
 * signed, and clients check the group. Steps are cited as [D1] (docs/protocols/wbb.md).
 */
public final class GroupMaker {
  private static final Logger log = LoggerFactory.getLogger(GroupMaker.class);

  /** Callers may ask for another group after these; another order of the same changes nothing. */
  private static final Set<ErrorReason> FINAL =
      Set.of(ErrorReason.PARTY_MISBEHAVED, ErrorReason.GROUP_CREATION_FAILED);

  /** How long the report of a party is on its way. */
  private static final Duration TELLING = Duration.ofMillis(500);

  private final GroupOrders orders;
  private final GroupVerifier core;
  private final EvidenceJudge judge;
  private final PartyLink link;
  private final AdaptiveTimeout timeout;
  private final RunLimits limits;
  private final Stopping stopping;
  private final ReplicaTime time;
  private final Clock clock;

  public GroupMaker(
      GroupOrders orders,
      GroupVerifier core,
      EvidenceJudge judge,
      PartyLink link,
      AdaptiveTimeout timeout,
      RunLimits limits,
      Stopping stopping,
      ReplicaTime time,
      Clock clock) {
    this.orders = orders;
    this.core = core;
    this.judge = judge;
    this.link = link;
    this.timeout = timeout;
    this.limits = limits;
    this.stopping = stopping;
    this.time = time;
    this.clock = clock;
  }

  /** How it ended. */
  sealed interface End {
    /** Every party of the group keeps it. */
    record Made(ByteString attested) implements End {}

    record Failed(Failure failure) implements End {}

    /** Another replica works on the request now. */
    record Lost() implements End {}

    /** This replica stops; another one goes on. */
    record Stopped() implements End {}
  }

  /** Epochs that may be made at once. */
  int maxRuns() {
    return limits.maxRuns();
  }

  /**
   * Refuses an intent that names a party which the roster lacks.
   *
   * @throws io.coterie.platform.error.CustodyException naming it, or all of them while there is no
   *     channel: without a roster, names mean nothing
   */
  void requireParties(String resource, VerifiedIntent.GroupCreation intent) {
    SecureChannel channel =
        link.channel()
            .orElseThrow(() -> Failure.outOfReach(resource, intent.issuers()).toException());
    Optional<String> unknown = GroupMembers.unknown(intent, channel.roster());
    if (unknown.isPresent()) {
      throw Failure.parties(
              ErrorReason.PARTY_UNKNOWN, resource, List.of(unknown.get()), 0, "not_in_roster")
          .toException();
    }
  }

  /**
   * Makes an epoch of a group.
   *
   * @param isMine whether this replica is to go on; asked before each further order
   */
  End make(VerifiedIntent.GroupCreation intent, Run<?> run, BooleanSupplier isMine)
      throws InterruptedException {
    return new Making(intent, run, isMine).run();
  }

  /** A request has an end. */
  private static final class Ended extends Exception {
    private static final long serialVersionUID = 1L;
    private final transient End end;

    Ended(End end) {
      super(null, null, false, false);
      this.end = end;
    }
  }

  /** The orders for one request: a thread's state. */
  private final class Making {
    private final VerifiedIntent.GroupCreation intent;
    private final Run<?> run;
    private final BooleanSupplier isMine;
    private final Pace pace = new Pace(stopping, time);
    private @Nullable GroupMembers ordered;

    Making(VerifiedIntent.GroupCreation intent, Run<?> run, BooleanSupplier isMine) {
      this.intent = intent;
      this.run = run;
      this.isMine = isMine;
    }

    End run() throws InterruptedException {
      try {
        OpenersKey openers = openersKey();
        String name = issuingKeyName(openers);
        KeyPublic issuing =
            same(
                done(
                    GroupMembers::issuers,
                    order().setMakeIssuingKey(MakeIssuingKey.newBuilder().setOpeners(openers)),
                    members ->
                        session(ProtocolId.PROTOCOL_ID_ISSUING_KEYGEN, members.issuers())
                            .setThreshold(members.issuerThreshold())
                            .setKeyId(name)
                            .setGroup(
                                GroupTerms.newBuilder()
                                    .setParties(members.parties())
                                    .setOpeners(openers))),
                report -> report.getIssuingKeyMade().getKeyPublic());
        // Nobody signs the messages of a publication, so there is nothing to judge it by.
        Map<Integer, GroupReport> published =
            done(
                GroupMembers::issuers,
                order().setPublishGroup(PublishGroup.newBuilder().setOpeners(openers)),
                _ -> SessionConfig.newBuilder());
        ByteString attested = assembled(issuing, published);
        done(
            GroupMembers::all,
            order().setKeepGroup(KeepGroup.newBuilder().setAttested(attested)),
            _ -> SessionConfig.newBuilder());
        return new End.Made(attested);
      } catch (Ended e) {
        return e.end;
      }
    }

    /** [G1] the openers' key, with the signatures of all openers. */
    private OpenersKey openersKey() throws InterruptedException, Ended {
      Map<Integer, GroupReport> made =
          done(
              GroupMembers::openers,
              order().setMakeOpenersKey(MakeOpenersKey.getDefaultInstance()),
              members ->
                  session(ProtocolId.PROTOCOL_ID_OPENING_KEYGEN, members.openers())
                      .setThreshold(members.openerThreshold())
                      .setKeyId(GroupMembers.openersKeyName(intent)));
      KeyPublic shared = same(made, report -> report.getOpenersKeyMade().getKeyPublic());
      OpenersKey.Builder key =
          OpenersKey.newBuilder().setGroup(intent.key()).setEpoch(intent.epoch()).setKey(shared);
      made.forEach(
          (party, report) ->
              key.addSignatures(from(party, report.getOpenersKeyMade().getSignature())));
      return key.build();
    }

    /** A key generation as those describe it that judge what was said in it. */
    private static SessionConfig.Builder session(ProtocolId protocol, List<Member> parties) {
      return SessionConfig.newBuilder()
          .setProtocol(protocol)
          .setEpoch(1)
          .addAllParties(parties.stream().map(GroupMembers::party).toList());
    }

    /** [D1] the name that the issuing key gets, if every opener has signed. */
    private String issuingKeyName(OpenersKey openers) throws Ended {
      GroupMembers members = members();
      NameIssuingKey.Builder name =
          NameIssuingKey.newBuilder().setParties(members.parties()).setOpeners(openers);
      return checked(members.openers(), GroupCall.newBuilder().setNameIssuingKey(name))
          .getIssuingKeyNamed()
          .getKeyId();
    }

    /** The core's reply about what these parties have given. */
    private GroupReply checked(List<Member> parties, GroupCall.Builder call) throws Ended {
      GroupReply reply = core.call(call.build());
      if (reply.hasGroupRefused()) {
        throw failed(GroupFailures.of(run.resource, parties, reply.getGroupRefused()));
      }
      return reply;
    }

    private GroupOrder.Builder order() {
      return GroupOrder.newBuilder().setSignedIntent(intent.envelope());
    }

    private static PartyBytes from(int party, ByteString value) {
      return PartyBytes.newBuilder().setParty(party).setValue(value).build();
    }

    /** The part of their reports that all parties of a session have to agree on. */
    private <T> T same(Map<Integer, GroupReport> reports, Function<GroupReport, T> part)
        throws Ended {
      List<T> parts = reports.values().stream().map(part).distinct().toList();
      if (parts.size() != 1) {
        throw failed(
            Failure.parties(
                ErrorReason.GROUP_CREATION_FAILED, run.resource, List.of(), 0, "different_keys"));
      }
      return parts.getFirst();
    }

    /** [D4.3] the group with the signatures of all issuers. */
    private ByteString assembled(KeyPublic key, Map<Integer, GroupReport> published) throws Ended {
      GroupMembers members = members();
      ByteString group = same(published, report -> report.getGroupPublished().getPublished());
      AssembleGroup.Builder assemble =
          AssembleGroup.newBuilder()
              .setParties(members.parties())
              .setIssuers(key)
              .setPublished(group);
      published.forEach(
          (party, report) ->
              assemble.addSignatures(from(party, report.getGroupPublished().getSignature())));
      return checked(members.issuers(), GroupCall.newBuilder().setAssembleGroup(assemble))
          .getGroupChecked()
          .getAttested();
    }

    /** Those who had the last order. */
    private GroupMembers members() {
      return Objects.requireNonNull(ordered, "nobody had an order");
    }

    private GroupMembers members(SecureChannel channel) throws Ended {
      return GroupMembers.of(intent, channel.roster())
          .orElseThrow(
              () ->
                  failed(
                      Failure.parties(
                          ErrorReason.PARTY_UNKNOWN,
                          run.resource,
                          GroupMembers.unknown(intent, channel.roster()).stream().toList(),
                          0,
                          "not_in_roster")));
    }

    /**
     * Gives an order until all have done it, or one of them never will.
     *
     * @param judged the session of the order, by which evidence of it is judged; empty if there is
     *     none
     */
    private Map<Integer, GroupReport> done(
        Function<GroupMembers, List<Member>> doers,
        GroupOrder.Builder order,
        Function<GroupMembers, SessionConfig.Builder> judged)
        throws InterruptedException, Ended {
      int attempt = 0;
      while (!stopping.hasBegun()) {
        if (!isMine.getAsBoolean()) {
          log.warn("this replica leaves a group to another one, which works on it now");
          throw new Ended(new End.Lost());
        }
        Instant now = clock.instant();
        if (now.isAfter(intent.notAfter())) {
          throw failed(run.lastFailureOrExpiry());
        }
        if (attempt >= limits.maxSessions()) {
          throw failed(run.lastFailureOrExpiry());
        }
        Optional<SecureChannel> channel = link.channel();
        if (channel.isEmpty()) {
          run.failedFor(Failure.outOfReach(run.resource, intent.issuers()));
          pace.pause();
          continue;
        }
        GroupMembers members = members(channel.get());
        ordered = members;
        List<Member> parties = doers.apply(members);
        List<Member> away =
            parties.stream().filter(p -> !channel.get().reachable().contains(p)).toList();
        if (!away.isEmpty()) {
          run.failedFor(Failure.outOfReach(run.resource, away.stream().map(Member::name).toList()));
          pace.pauseUntilReachable(channel.get(), away);
          continue;
        }
        GroupOrders.Given given = given(channel.get(), parties, order, now, attempt);
        Map<Integer, GroupReport> reports = given.reports();
        attempt++;
        SessionConfig session = judged.apply(members).setSessionId(given.session().bytes()).build();
        Optional<Failure> failure =
            GroupFailures.of(run.resource, parties, reports, abort -> isProven(session, abort));
        if (failure.isEmpty()) {
          return reports;
        }
        run.failedFor(failure.get());
        log.warn(
            "a step of {} was not done: {} {}",
            run.resource,
            failure.get().reason(),
            failure.get().metadata());
        if (!mayRepeat(failure.get(), reports)) {
          throw failed(failure.get());
        }
        pace.pause();
      }
      throw new Ended(new End.Stopped());
    }

    /** Whether the evidence convicts the one party that is named, by the parties' own judge. */
    private boolean isProven(SessionConfig session, Abort abort) {
      if (session.getPartiesCount() == 0
          || abort.getCulpritsCount() != 1
          || abort.getEvidenceCount() == 0) {
        return false;
      }
      Accusation accusation =
          Accusation.newBuilder()
              .setCauseValue(abort.getCauseValue())
              .setAccused(abort.getCulprits(0))
              .addAllEvidence(abort.getEvidenceList())
              .build();
      try {
        return judge.judge(session, accusation) == Verdict.VERDICT_PROVEN;
      } catch (MpcException e) {
        log.warn("a party accuses another one of nothing that can be judged", e);
        return false;
      }
    }

    private GroupOrders.Given given(
        SecureChannel channel,
        List<Member> parties,
        GroupOrder.Builder order,
        Instant now,
        int attempt)
        throws InterruptedException {
      Duration patience = timeout.next(attempt);
      Instant deadline = now.plus(patience).plus(limits.clockSkew());
      // The parties say at the deadline, by their own clocks, whom they have waited for.
      Duration untilTold = patience.plus(limits.clockSkew().multipliedBy(3)).plus(TELLING);
      long began = time.nanos();
      GroupOrders.Given given =
          orders.give(
              channel,
              parties,
              order.clone(),
              untilTold,
              deadline.isAfter(intent.notAfter()) ? intent.notAfter() : deadline,
              run.trace.traceparent());
      if (given.reports().size() == parties.size()
          && given.reports().values().stream().allMatch(GroupFailures::isDone)) {
        timeout.succeeded(time.nanos() - began);
      }
      return given;
    }

    /**
     * Whether another order for the same step can succeed. A party that has done its part never
     * does it again with others, who have not.
     */
    private boolean mayRepeat(Failure failure, Map<Integer, GroupReport> reports) {
      return failure.reason().isTransient()
          && !FINAL.contains(failure.reason())
          // To keep the group is no session: each party does it by itself.
          && reports.values().stream()
              .allMatch(report -> report.hasGroupKept() || !GroupFailures.isDone(report));
    }

    /** The end of the request: its epoch is spent. */
    private Ended failed(Failure failure) {
      boolean convicts = failure.reason() == ErrorReason.PARTY_MISBEHAVED;
      return new Ended(
          new End.Failed(
              failure.reason().isTransient() && !convicts
                  ? failure.as(ErrorReason.GROUP_CREATION_FAILED)
                  : failure));
    }
  }
}
