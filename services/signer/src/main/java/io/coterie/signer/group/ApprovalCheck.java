package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.intent.ApprovedRequest;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.limit.Rate;
import io.coterie.proto.core.v1.ApprovalDecision;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.CheckGroup;
import io.coterie.proto.core.v1.CountApprovals;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupChecked;
import io.coterie.proto.core.v1.GroupParties;
import io.coterie.proto.core.v1.GroupRefused;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.custody.v1.Approvers;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.ApprovalGate;
import io.coterie.signer.order.NeededApprovals;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.party.GroupCore;
import io.coterie.trust.Roster;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts approvals under the groups that this party keeps itself, in their latest epochs: a later
 * epoch revokes the members of the one before. Every approval has to hold, so that a requester
 * learns of the one that does not. Thread-safe.
 */
public final class ApprovalCheck implements ApprovalGate {
  /**
   * Lists that do not hold, or are not the first of their request that held, which are looked at at
   * once, of one requester by one coordinator.
   */
  static final int BURST = 20;

  /** The same each second after that. */
  static final int PER_SECOND = 1;

  private final GroupStore groups;
  private final Roster roster;
  private final GroupCore core;
  private final LongSupplier nanoTime;

  /** Requests of which it is known, for each sender, which list held. */
  private static final int REMEMBERED = 64;

  /** By requester and coordinator: one that sends bad lists leaves the requester its others. */
  private final Map<Sender, Lists> lists = new ConcurrentHashMap<>();

  /** The last group that was found good, by name and epoch. */
  private final Map<Epoch, Checked> checked = new ConcurrentHashMap<>();

  private record Sender(String requester, String coordinator) {}

  private record Epoch(String group, int epoch) {}

  /**
   * A list that held is counted once, because a coordinator may show it as often as it likes: many
   * orders end before their claim costs their coordinator anything.
   */
  private static final class Lists {
    private final Rate rate;
    private final Map<ByteString, Held> held =
        new LinkedHashMap<>(16, 0.75f, true) {
          @Override
          protected boolean removeEldestEntry(Map.Entry<ByteString, Held> eldest) {
            return size() > REMEMBERED;
          }
        };

    Lists(long nowNanos) {
      rate = new Rate(BURST, PER_SECOND, nowNanos);
    }

    private synchronized @Nullable Held of(ByteString request) {
      return held.get(request);
    }

    private synchronized void held(ByteString request, Held list) {
      held.putIfAbsent(request, list);
    }
  }

  /**
   * @param list digest of group, number and approvals
   */
  private record Held(ByteString list, Counted counted) {}

  /** A group as it was read, and the digest that stands for it in approvals. */
  private record Checked(GroupParties parties, ByteString attested, ByteString digest) {
    boolean isOf(GroupRecord group) {
      return parties.equals(group.parties()) && attested.equals(group.attested());
    }
  }

  /**
   * @param roster says whose signatures make a group
   * @param nanoTime a clock that only goes forward
   */
  public ApprovalCheck(GroupStore groups, Roster roster, GroupCore core, LongSupplier nanoTime) {
    this.groups = groups;
    this.roster = roster;
    this.core = core;
    this.nanoTime = nanoTime;
  }

  @Override
  public Counted count(NeededApprovals needed, SessionPlan.Request request, String coordinator)
      throws RefusedException {
    SigningIntent intent = request.toSign();
    if (intent == null) {
      throw new IllegalStateException("only a signature has approvals");
    }
    require(intent.hasApprovers(), "the intent names no approvers", needed);
    Approvers approvers = intent.getApprovers();
    require(
        approvers.getGroup().equals(needed.group()),
        "the intent names " + approvers.getGroup() + " as its approvers",
        needed);
    List<GroupRecord> kept = groups.attested(needed.group());
    require(!kept.isEmpty(), "this party does not keep that group", needed);
    GroupRecord latest = kept.getLast();
    require(
        approvers.getEpoch() == latest.epoch(),
        "the intent names epoch %d of its approvers, and this party's latest is %d"
            .formatted(approvers.getEpoch(), latest.epoch()),
        needed);
    ByteString group = digest(latest, needed);
    require(
        approvers.getDigest().equals(group),
        "the intent names another group of that name and epoch than this party keeps",
        needed);
    List<ByteString> approvals = request.approvals();
    require(
        approvals.size() >= needed.needed(),
        "there are %d approvals".formatted(approvals.size()),
        needed);
    Lists known =
        lists.computeIfAbsent(
            new Sender(request.requester(), coordinator), _ -> new Lists(nanoTime.getAsLong()));
    ByteString digest = ApprovedRequest.digest(request.requester(), request.intentDigest());
    ByteString list =
        IntentVerifier.digest(
            group
                .concat(ByteString.copyFrom(new byte[] {(byte) needed.needed()}))
                .concat(ByteString.copyFrom(approvals)));
    Held before = known.of(digest);
    if (before != null && before.list().equals(list)) {
      return before.counted();
    }
    long now = nanoTime.getAsLong();
    RefusedException.unless(
        before == null ? known.rate.mayTake(now) : known.rate.take(now),
        RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED,
        "too many requests of this requester came with approvals that do not hold, or with others"
            + " than before");
    GroupReply reply = count(latest, approve(digest), approvals, needed.needed());
    if (reply.hasGroupRefused()) {
      boolean _ = known.rate.take(nanoTime.getAsLong());
      throw missing(cause(kept, digest, approvals, reply.getGroupRefused()), needed);
    }
    Counted counted =
        new Counted(latest.group(), latest.epoch(), reply.getApprovalsCounted().getTagsList());
    known.held(digest, new Held(list, counted));
    return counted;
  }

  /** Which approval does not count, and why. */
  private String cause(
      List<GroupRecord> kept, ByteString digest, List<ByteString> approvals, GroupRefused refused)
      throws RefusedException {
    if (!refused.hasPlace()) {
      return refused.getDetail();
    }
    int place = refused.getPlace();
    return "approval %d of %d does not count: ".formatted(place + 1, approvals.size())
        + switch (refused.getReason()) {
          case GROUP_REFUSAL_COUNTED_TWICE -> "counted twice, an earlier one is by the same member";
          case GROUP_REFUSAL_WRONG_PROOF -> wrongProof(kept, digest, approvals.get(place));
          case GROUP_REFUSAL_NOT_ISSUED -> "not by a member of the group in this epoch";
          default -> "no approval, " + refused.getDetail();
        };
  }

  /**
   * Says what a proof that is not one of this request may be a proof of. It takes two more counts
   * of one approval at most, so that a bad one costs little more than a good one.
   */
  private String wrongProof(List<GroupRecord> kept, ByteString digest, ByteString approval)
      throws RefusedException {
    ApprovalRequest rejection =
        approve(digest).toBuilder().setDecision(ApprovalDecision.APPROVAL_DECISION_REJECT).build();
    if (count(kept.getLast(), rejection, List.of(approval), 1).hasApprovalsCounted()) {
      return "it says that the request must not be done";
    }
    if (kept.size() > 1) {
      GroupRecord before = kept.get(kept.size() - 2);
      if (count(before, approve(digest), List.of(approval), 1).hasApprovalsCounted()) {
        return "of an earlier epoch, " + before.epoch();
      }
    }
    return "not of this request, or its proof is invalid";
  }

  private static ApprovalRequest approve(ByteString digest) {
    return ApprovalRequest.newBuilder()
        .setDigest(digest)
        .setDecision(ApprovalDecision.APPROVAL_DECISION_APPROVE)
        .build();
  }

  private GroupReply count(
      GroupRecord group, ApprovalRequest request, List<ByteString> approvals, int needed)
      throws RefusedException {
    return core.call(
        GroupCall.newBuilder()
            .setCountApprovals(
                CountApprovals.newBuilder()
                    .setGroup(GroupCalls.group(group.parties(), group.attested()))
                    .setRequest(request)
                    .addAllApprovals(approvals)
                    .setNeeded(needed))
            .build());
  }

  /**
   * The digest of a group. The store is not believed: the group has to be the one of its place
   * there, signed by issuers and openers of this party's own roster.
   */
  private ByteString digest(GroupRecord group, NeededApprovals needed) throws RefusedException {
    Epoch epoch = new Epoch(group.group(), group.epoch());
    Checked known = checked.get(epoch);
    if (known == null || !known.isOf(group)) {
      require(
          GroupMembers.of(group.parties(), roster).isPresent(),
          "the roster has changed since the epoch was made, so a later epoch is needed",
          needed);
      CheckGroup.Builder check =
          CheckGroup.newBuilder().setGroup(GroupCalls.group(group.parties(), group.attested()));
      GroupReply reply = core.call(GroupCall.newBuilder().setCheckGroup(check).build());
      GroupChecked found = reply.getGroupChecked();
      require(
          reply.hasGroupChecked()
              && found.getName().equals(group.group())
              && found.getEpoch() == group.epoch(),
          "this party's store has something else in the place of that epoch",
          needed);
      known = new Checked(group.parties(), group.attested(), found.getDigest());
      checked.put(epoch, known);
    }
    return known.digest();
  }

  private static void require(boolean condition, String otherwise, NeededApprovals needed)
      throws RefusedException {
    if (!condition) {
      throw missing(otherwise, needed);
    }
  }

  private static RefusedException missing(String cause, NeededApprovals needed) {
    return new RefusedException(
        RefusalReason.REFUSAL_REASON_APPROVALS_MISSING,
        "%s; needed are %d of %s".formatted(cause, needed.needed(), needed.group()));
  }
}
