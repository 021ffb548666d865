package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.Signature;
import io.coterie.coordinator.session.ToSign;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.party.v1.CancelAnswer;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/** Holds what clients are told of their requests against what the parties did. */
final class RequestChecker {

  /** Steps of threads that come between the end of the patience and the answer. */
  private static final Duration SLACK = Duration.ofMillis(50);

  private final World world;
  private final Map<String, Request> requests = new LinkedHashMap<>();
  private final Map<ByteString, VerifiedIntent.Cancellation> cancellations = new HashMap<>();

  /** The words that honest parties have given. */
  private final Set<SignedReceipt> given = new HashSet<>();

  /** A request of a client, and the most that it was told of it. */
  private static final class Request {
    final SigningRequest asked;
    final Holders holders;
    Told told = Told.NOTHING;

    /** The same of what the coordinator has stored. */
    Told stored = Told.NOTHING;

    Request(SigningRequest asked, Holders holders) {
      this.asked = asked;
      this.holders = holders;
    }
  }

  /** The parties that the intent of a request is for. */
  record Holders(Set<Integer> parties, int threshold) {
    static Holders of(KeyPublic key) {
      Set<Integer> parties = new TreeSet<>();
      key.getVerificationSharesList().forEach(share -> parties.add(share.getParty()));
      return new Holders(parties, key.getThreshold());
    }
  }

  /**
   * An end that a client was told.
   *
   * @param rank a later end never has a lower one
   * @param signature empty but when signed
   */
  private record Told(int rank, ByteString signature) {
    static final Told NOTHING = new Told(0, ByteString.EMPTY);
    static final Told UNKNOWN = new Told(1, ByteString.EMPTY);
    static final Told CLAIMED_NEVER = new Told(2, ByteString.EMPTY);

    /** So many parties have said that they never sign that lies alone cannot explain it. */
    static final Told NEVER = new Told(4, ByteString.EMPTY);

    static Told signed(ByteString signature) {
      return new Told(3, signature);
    }

    boolean isSigned() {
      return !signature.isEmpty();
    }

    boolean isNever() {
      return equals(NEVER);
    }
  }

  /**
   * A call of a client.
   *
   * @param before the end that was stored, as a client knew when it called
   * @param latestNanos by then it has an answer
   */
  record Call(Request request, Told before, long latestNanos) {}

  RequestChecker(World world) {
    this.world = world;
  }

  /**
   * A client has a new request.
   *
   * @param holders the parties of its reshare epoch
   */
  void begun(SigningRequest request, Holders holders) {
    requests.put(request.id(), new Request(request, holders));
  }

  /** The request of a client with this id; empty if no client has one. */
  Optional<SigningRequest> request(String id) {
    return Optional.ofNullable(requests.get(id)).map(request -> request.asked);
  }

  /** A client has signed that a request be cancelled. */
  void cancels(VerifiedIntent.Cancellation cancellation) {
    cancellations.put(cancellation.digest(), cancellation);
  }

  /** The cancellation with this digest of its payload. */
  VerifiedIntent.Cancellation cancellation(ByteString digest) {
    VerifiedIntent.Cancellation cancellation = cancellations.get(digest);
    if (cancellation == null) {
      throw new IllegalStateException("nobody has cancelled this");
    }
    return cancellation;
  }

  /** An honest party answers a cancellation. */
  void answers(CancelAnswer answer) {
    if (answer.hasReceipt()) {
      given.add(answer.getReceipt());
    }
  }

  // ---- calls -----------------------------------------------------------------------------------

  /** A client calls. */
  Call called(SigningRequest asked, Duration patience) {
    Request request = of(asked.id());
    return new Call(
        request, request.stored, world.timeline().nanos() + patience.plus(SLACK).toNanos());
  }

  private Request of(String id) {
    Request request = requests.get(id);
    if (request == null) {
      throw new IllegalStateException("no client has asked for " + id);
    }
    return request;
  }

  /** A client is answered. */
  void answered(Call call) {
    if (world.timeline().nanos() > call.latestNanos()) {
      violated(Breach.LATE, call.request());
    }
  }

  /** A client is told how its request has ended. */
  void answered(Call call, SigningRecord record) {
    answered(call);
    told(
        call,
        switch (record.state()) {
          case SIGNED -> signed(call.request(), record);
          case NOT_SIGNED -> never(call.request(), record.receipts());
          case UNKNOWN -> Told.UNKNOWN;
          default -> {
            violated(Breach.REQUEST_WITHOUT_END, call.request());
            yield Told.NOTHING;
          }
        },
        true);
  }

  /**
   * A client that cancels is told that its request is never signed.
   *
   * @param stored whether the coordinator had the request: of one that it has never seen it stores
   *     no end, and may say later that it knows none
   */
  void never(Call call, List<SignedReceipt> receipts, boolean stored) {
    answered(call);
    told(call, never(call.request(), receipts), stored);
  }

  private void told(Call call, Told now, boolean stored) {
    Request request = call.request();
    Told known = request.told;
    boolean other =
        now.isSigned() && known.isSigned() && !known.signature().equals(now.signature());
    boolean both = now.isSigned() && known.isNever() || now.isNever() && known.isSigned();
    // Of calls at the same time, the later answer may be the earlier end.
    if (now.rank() < call.before().rank() || other || both) {
      violated(Breach.CHANGED, request);
    }
    if (now.rank() > known.rank()) {
      request.told = now;
    }
    if (stored && now.rank() > request.stored.rank()) {
      request.stored = now;
    }
  }

  private Told signed(Request request, SigningRecord record) {
    SigningRecord.Result result = record.result();
    SigningRequest asked = request.asked;
    ToSign what = asked.toSign(SimulatedCoordinator.known(asked.key()));
    ResultVerifier verifier = Replica.verifiers(world).get(asked.key().scheme);
    if (result == null
        || verifier == null
        || !result.publicKey().equals(what.publicKey())
        || !verifier.verifies(
            what.publicKey(),
            what.payload(),
            new Signature(result.signature(), result.recoveryId()))
        || !world.checker().canBeSigned(asked.cause())) {
      violated(Breach.FALSE_SIGNATURE, request);
    }
    return result == null ? Told.NOTHING : Told.signed(result.signature());
  }

  private Told never(Request request, List<SignedReceipt> receipts) {
    Set<Integer> parties = new TreeSet<>();
    for (SignedReceipt envelope : receipts) {
      int party =
          Receipts.read(envelope)
              .filter(receipt -> isAbout(receipt, request))
              .map(Receipt::getParty)
              .orElse(0);
      if (request.holders.parties().contains(party)
          && (world.setting().isCorrupt(party) || given.contains(envelope))) {
        parties.add(party);
      }
    }
    int enough = request.holders.parties().size() - request.holders.threshold() + 1;
    if (parties.size() != receipts.size() || parties.size() < enough) {
      violated(Breach.NO_PROOF, request);
    }
    parties.removeIf(party -> !world.setting().isSound(party));
    return parties.size() >= enough ? Told.NEVER : Told.CLAIMED_NEVER;
  }

  private static boolean isAbout(Receipt receipt, Request request) {
    return receipt.getKind() == Receipt.Kind.NEVER
        && receipt.getRequestId().equals(request.asked.id())
        && receipt.getKey().equals(request.asked.key().name);
  }

  // ---- the end ---------------------------------------------------------------------------------

  /** Requests, in the order in which they came. */
  List<SigningRequest> requests() {
    return requests.values().stream().map(request -> request.asked).toList();
  }

  /** No request is signed of which a client was told that nobody will sign it. */
  void check() {
    for (Request request : requests.values()) {
      if (request.told.isNever() && world.checker().canBeSigned(request.asked.cause())) {
        violated(Breach.SIGNED_AFTER_ALL, request);
      }
    }
  }

  void violated(Breach what, SigningRequest request) {
    world.checker().violated(what, request.id() + " for " + request.key().name);
  }

  private void violated(Breach what, Request request) {
    violated(what, request.asked);
  }

  /** Whether a client was told a signature of a request. */
  boolean isTold(SigningRequest request) {
    return of(request.id()).told.isSigned();
  }
}
