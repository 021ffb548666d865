package io.coterie.signer.claim;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Done;
import io.coterie.signer.claim.ClaimLedger.Binding;
import io.coterie.signer.order.SessionPlan;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Which session each request is bound to at this party, and what has become of that session: for
 * schemes whose signatures are random, so that a request never has two (docs/adr/0017). The ledger
 * keeps the bindings themselves; memory has the known ends of their sessions, and a session without
 * one counts as "it may still become a signature". Thread-safe.
 */
public final class RequestBindings {
  /** Requests that are remembered; beyond, the one bound first is forgotten. */
  public static final int MAX = 8192;

  /** Sessions declined by others that are remembered, in case their orders come later. */
  private static final int MAX_HEARD = 1024;

  /** The fate of this party's contribution to the session. */
  private enum State {
    /** The session runs, and the contribution has not left this party. */
    HELD,
    /** It has left; the signature was not seen. */
    GIVEN,
    /** The signature was seen. */
    SIGNED,
    /**
     * It has left, and the contributions of others have not come, although they may not be made any
     * more.
     */
    LAPSED,
    /** There will be no signature of that session. */
    OVER
  }

  private record Request(String requester, String requestId) {}

  private static final class Entry {
    final Binding binding;
    final Set<Integer> parties;
    State state;
    final List<ByteString> sent = new ArrayList<>();
    boolean given;

    /** Whether this party may have contributed to an earlier session of the request. */
    boolean before;

    /** Whether the claim on disk has the contribution: another process would give it. */
    boolean stored;

    Set<Integer> missing = Set.of();
    @Nullable Done signature;

    Entry(Binding binding, Collection<Integer> parties, State state) {
      this.binding = binding;
      this.parties = Set.copyOf(parties);
      this.state = state;
      this.given = state != State.HELD;
      this.stored = !binding.envelope().isEmpty();
      if (given && !binding.envelope().isEmpty()) {
        sent.add(binding.envelope());
      }
    }
  }

  /** The judgement of a request's binding on a session that is to serve it. */
  public sealed interface Verdict {
    /**
     * It may.
     *
     * @param instead the session that the request was bound to; null if there is none
     */
    record Free(@Nullable SessionId instead) implements Verdict {}

    /** Not while that session runs here, whose contribution has not left this party. */
    record Held(SessionId session) implements Verdict {}

    /**
     * It may not.
     *
     * @param order of the session that the request is bound to, without its intent
     */
    record Bound(ByteString order) implements Verdict {}
  }

  /**
   * The memory of this party of a session of the past.
   *
   * @param sent its broadcasts
   * @param signature that came of it; empty if it was not seen
   * @param declined whether this party has contributed nothing, and never will, also after a start
   */
  public record Answer(
      List<ByteString> sent, ByteString signature, OptionalInt recoveryId, boolean declined) {}

  private final Map<SessionId, Entry> bySession = new HashMap<>();
  private final LinkedHashMap<Request, Entry> byRequest = new LinkedHashMap<>();

  private final Map<SessionId, Set<Integer>> heard =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<SessionId, Set<Integer>> eldest) {
          return size() > MAX_HEARD;
        }
      };

  /**
   * Takes up what an earlier process has left.
   *
   * @param parties ids of the parties of an order
   */
  public synchronized void load(
      List<Binding> bindings, Function<ByteString, Set<Integer>> parties) {
    for (Binding binding : bindings) {
      add(new Entry(binding, parties.apply(binding.order()), State.GIVEN), null);
    }
  }

  private void add(Entry entry, @Nullable SessionId instead) {
    Entry before =
        byRequest.putLast(new Request(entry.binding.requester(), entry.binding.requestId()), entry);
    if (before != null) {
      entry.before = before.given || before.before;
      bySession.remove(before.binding.session());
    } else if (instead != null) {
      // The entry was forgotten for others since it was judged, and with it what was given.
      entry.before = true;
    }
    bySession.put(entry.binding.session(), entry);
    if (byRequest.size() > MAX) {
      Entry oldest = byRequest.pollFirstEntry().getValue();
      bySession.remove(oldest.binding.session());
    }
  }

  /** Whether a request may be served by a session of these parties. */
  public Verdict judge(SessionPlan plan) {
    return judge(plan, false);
  }

  /**
   * Whether a request may be served by a session of these parties.
   *
   * @param strict whether nobody is believed that a session to which this party has contributed
   *     makes no signature
   */
  public synchronized Verdict judge(SessionPlan plan, boolean strict) {
    SessionPlan.Request asked = plan.asked();
    Entry entry = byRequest.get(new Request(asked.requester(), asked.requestId()));
    if (entry == null || entry.binding.session().equals(plan.id())) {
      return new Verdict.Free(null);
    }
    boolean free =
        switch (entry.state) {
          case HELD, GIVEN, SIGNED -> false;
          case LAPSED -> plan.partyIds().stream().noneMatch(entry.missing::contains);
          case OVER -> true;
        };
    if (free && !(strict && (entry.given || entry.before))) {
      return new Verdict.Free(entry.binding.session());
    }
    return entry.state == State.HELD
        ? new Verdict.Held(entry.binding.session())
        : new Verdict.Bound(entry.binding.order());
  }

  /** The contribution of this party to a request, as far as this process knows. */
  public sealed interface Standing {
    /** Nothing is known of it. */
    record Unknown() implements Standing {}

    /** It may have contributed. */
    record Given() implements Standing {}

    /** It has contributed, and has seen the signature. */
    record Signed(Done signature) implements Standing {}

    /** It may be about to contribute to that session, and has contributed to none before. */
    record Held(SessionId session) implements Standing {}

    /** It has contributed to no session, and that one, the last, has ended. */
    record Over(SessionId session) implements Standing {}
  }

  /** The standing of a request. */
  public synchronized Standing standing(String requester, String requestId) {
    Entry entry = byRequest.get(new Request(requester, requestId));
    if (entry == null) {
      return new Standing.Unknown();
    }
    if (entry.signature != null) {
      return new Standing.Signed(entry.signature);
    }
    if (entry.given || entry.before) {
      return new Standing.Given();
    }
    return entry.state == State.HELD
        ? new Standing.Held(entry.binding.session())
        : new Standing.Over(entry.binding.session());
  }

  /** This party never signs for a request: nothing binds it any more. */
  public synchronized void cancelled(String requester, String requestId) {
    Entry entry = byRequest.remove(new Request(requester, requestId));
    if (entry != null) {
      bySession.remove(entry.binding.session());
    }
  }

  /** The order of the session that keeps a request from another one; empty if it is not known. */
  public ByteString boundOrder(SessionPlan plan) {
    return judge(plan) instanceof Verdict.Bound bound ? bound.order() : ByteString.EMPTY;
  }

  /**
   * The claim of a binding is on disk; nothing of its session has left, and it may be too late.
   *
   * @param instead the session that the request was bound to before; null if there was none
   */
  public synchronized void bound(
      Binding binding, Collection<Integer> parties, @Nullable SessionId instead) {
    add(new Entry(binding, parties, State.HELD), instead);
  }

  /**
   * A broadcast of a session is about to leave.
   *
   * @param last whether it is this party's contribution to the signature
   * @return whether it may
   */
  public synchronized boolean sent(SessionId session, ByteString envelope, boolean last) {
    Entry entry = bySession.get(session);
    if (entry == null || entry.state == State.LAPSED || entry.state == State.OVER) {
      return false;
    }
    if (!entry.sent.contains(envelope)) {
      entry.sent.add(envelope);
    }
    if (last && entry.state == State.HELD) {
      entry.state = State.GIVEN;
      entry.given = true;
    }
    return true;
  }

  /** The signature of a session was seen. */
  public synchronized void signed(SessionId session, Done signature) {
    Entry entry = bySession.get(session);
    if (entry != null) {
      entry.state = State.SIGNED;
      entry.signature = signature;
      // Nobody needs the contributions.
      entry.sent.clear();
    }
  }

  /**
   * The session ran out of time with this party's contribution given away.
   *
   * @param missing parties whose contributions have not come
   */
  public synchronized void lapsed(SessionId session, Collection<Integer> missing) {
    Entry entry = bySession.get(session);
    if (entry != null && entry.state == State.GIVEN && !missing.isEmpty()) {
      entry.state = State.LAPSED;
      entry.missing = new HashSet<>(missing);
    }
  }

  /** The contributions that came make no signature. */
  public synchronized void failed(SessionId session) {
    Entry entry = bySession.get(session);
    if (entry != null && entry.state != State.SIGNED) {
      entry.state = State.OVER;
    }
  }

  /**
   * The session has ended here.
   *
   * @return whether this party's contribution has not left it, and never will
   */
  public synchronized boolean ended(SessionId session) {
    Entry entry = bySession.get(session);
    if (entry == null || entry.state != State.HELD) {
      return false;
    }
    entry.state = State.OVER;
    return true;
  }

  /** The contribution to a session is not on disk any more. */
  public synchronized void withheld(SessionId session) {
    Entry entry = bySession.get(session);
    if (entry != null) {
      entry.stored = false;
    }
  }

  /**
   * A party says that it will contribute nothing to a session.
   *
   * @return whether a request is bound to that session here, and the party is one of it
   */
  public synchronized boolean declined(SessionId session, int party) {
    heard.computeIfAbsent(session, _ -> new HashSet<>()).add(party);
    Entry entry = bySession.get(session);
    if (entry == null || !entry.parties.contains(party)) {
      return false;
    }
    if (entry.state != State.SIGNED) {
      entry.state = State.OVER;
    }
    return true;
  }

  /** Whether one of those parties has said that it will contribute nothing to a session. */
  public synchronized boolean isDeclined(SessionId session, Collection<Integer> parties) {
    return parties.stream().anyMatch(heard.getOrDefault(session, Set.of())::contains);
  }

  /** The answer about a session that was ordered again. */
  public synchronized Answer answer(SessionId session) {
    Entry entry = bySession.get(session);
    if (entry == null) {
      return new Answer(List.of(), ByteString.EMPTY, OptionalInt.empty(), false);
    }
    Done done = entry.signature;
    return new Answer(
        List.copyOf(entry.sent),
        done == null ? ByteString.EMPTY : done.getSignature(),
        done != null && done.hasRecoveryId()
            ? OptionalInt.of(done.getRecoveryId())
            : OptionalInt.empty(),
        entry.state == State.OVER && !entry.given && !entry.stored);
  }
}
