package io.coterie.simulation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Speaks for all corrupt parties of a schedule. They run the real signer, so their lies reach every
 * round; the liar turns each message that the signer sends into what leaves.
 */
final class Liar {
  private static final int FLOOD = 100;
  private static final int MAX_KNOWN = 256;

  /**
   * Of 1000 members that a lying party should tell of a share, so many hear that it has none. More
   * than of other messages: shares are few, and the lie matters only if some hear the truth.
   */
  private static final int DENIED_PER_MILLE = 500;

  /** The lies about an envelope of the core. */
  private static final List<Lie> OF_ENVELOPES =
      List.of(
          Lie.WITHHOLDS,
          Lie.ALTERS,
          Lie.EQUIVOCATES,
          Lie.SWAPS,
          Lie.REPLAYS,
          Lie.FLOODS,
          Lie.CLAIMS_OTHER_RUN,
          Lie.DECLINES_FALSELY);

  private final Chance messages;
  private final Faults faults;
  private final Coverage coverage;
  private final int perMille;

  /** Messages that corrupt parties have sent. */
  private int sent;

  /** Decides about the message that is being sent. */
  private Chance chance;

  private boolean silent = true;

  /** Bodies that corrupt parties have sent or received, the latest last. */
  private final List<byte[]> known = new ArrayList<>();

  /** The lie about a broadcast is the same for all its recipients. */
  private final Map<ByteString, @Nullable Lie> ofBroadcasts = new HashMap<>();

  /** Sessions of which a corrupt party has said that it declines them. */
  private final Set<ByteString> declined = new HashSet<>();

  /**
   * @param perMille of 1000 messages so many are lied about
   */
  Liar(Chance chance, Faults faults, Coverage coverage, int perMille) {
    this.messages = chance;
    this.chance = chance;
    this.faults = faults;
    this.coverage = coverage;
    this.perMille = perMille;
  }

  /** From now on it lies. */
  void begin() {
    silent = false;
  }

  /** From now on it tells the truth. */
  void stop() {
    silent = true;
  }

  /** Whether a corrupt party has said that it does not contribute to a session. */
  boolean hasDeclined(ByteString session) {
    return declined.contains(session);
  }

  /** A message came to a corrupt party. */
  void hears(byte[] body) {
    if (known.size() == MAX_KNOWN) {
      known.removeFirst();
    }
    known.add(body.clone());
  }

  /** The bodies that leave in the place of this one. */
  List<byte[]> tells(Member to, byte[] body, boolean broadcast) {
    hears(body);
    chance = messages.part(Integer.toString(++sent));
    PartyMessage message = parse(body);
    if (message == null) {
      throw new IllegalStateException("a signer sent what does not decode");
    }
    if (message.getReport().hasDeclined()) {
      // Nobody knows whether that is true.
      declined.add(message.getReport().getSessionId());
    }
    if (silent) {
      return List.of(body);
    }
    return switch (message.getBodyCase()) {
      case ENVELOPE -> envelope(to, body, message.getEnvelope(), broadcast);
      case CLAIM_COUNT, CLAIM_MEMORY -> ledger(body, message);
      case REPORT -> report(to, body, message.getReport());
      default -> lies(Lie.WITHHOLDS) ? told(Lie.WITHHOLDS, List.of()) : List.of(body);
    };
  }

  private boolean lies(Lie lie) {
    return lies(lie, perMille);
  }

  private boolean lies(Lie lie, int oftenPerMille) {
    return chance.perMille(oftenPerMille) && faults.strikes(lie.label());
  }

  /** Tells some members of a share that it has stored, and others that it has none. */
  private List<byte[]> report(Member to, byte[] body, SessionReport report) {
    boolean ofShare = report.getCompleted().hasKeyPublic() && to.role() == Member.Role.PARTY;
    if (ofShare && perMille > 0 && lies(Lie.DECLINES_FALSELY, DENIED_PER_MILLE)) {
      byte[] decline = PartyNetwork.declined(new SessionId(report.getSessionId())).toByteArray();
      return told(Lie.DECLINES_FALSELY, List.of(decline));
    }
    return lies(Lie.WITHHOLDS) ? told(Lie.WITHHOLDS, List.of()) : List.of(body);
  }

  private List<byte[]> ledger(byte[] body, PartyMessage message) {
    if (!lies(Lie.REMEMBERS_OLD)) {
      return List.of(body);
    }
    for (byte[] older : known) {
      PartyMessage other = parse(older);
      if (other != null && other.getBodyCase() == message.getBodyCase()) {
        return told(Lie.REMEMBERS_OLD, List.of(older));
      }
    }
    return List.of(body);
  }

  private List<byte[]> envelope(Member to, byte[] body, SessionEnvelope due, boolean broadcast) {
    ByteString key = due.getEnvelope();
    if (!broadcast || !ofBroadcasts.containsKey(key)) {
      Lie drawn = chance.any(OF_ENVELOPES);
      ofBroadcasts.put(key, lies(drawn) ? drawn : null);
    }
    Lie lie = ofBroadcasts.get(key);
    return lie == null ? List.of(body) : lie(lie, to, body, due);
  }

  private List<byte[]> lie(Lie lie, Member to, byte[] body, SessionEnvelope due) {
    FastEnvelope envelope = FastEnvelope.decode(due.getEnvelope().toByteArray());
    return switch (lie) {
      case WITHHOLDS -> told(lie, List.of());
      case REPLAYS -> told(lie, List.of(body, chance.any(known)));
      case FLOODS -> told(lie, flood(body, due));
      case DECLINES_FALSELY -> {
        declined.add(due.getSessionId());
        byte[] decline = PartyNetwork.declined(new SessionId(due.getSessionId())).toByteArray();
        yield told(lie, List.of(body, decline));
      }
      case EQUIVOCATES ->
          (to.partyId() & 1) == 0 ? List.of(body) : told(lie, List.of(altered(due, envelope)));
      case ALTERS -> told(lie, List.of(altered(due, envelope)));
      case CLAIMS_OTHER_RUN ->
          envelope == null
              ? List.of(body)
              : told(lie, List.of(message(due, envelope.ofRun(envelope.run() + 1).encode())));
      case SWAPS -> {
        FastEnvelope other = other(envelope);
        yield envelope == null || other == null
            ? List.of(body)
            : told(lie, List.of(message(due, envelope.with(other.body()).encode())));
      }
      default -> throw new IllegalStateException(lie + " is no lie about an envelope");
    };
  }

  private List<byte[]> flood(byte[] body, SessionEnvelope due) {
    List<byte[]> flood = new ArrayList<>();
    flood.add(body);
    for (int i = 0; i < FLOOD; i++) {
      SessionEnvelope.Builder unasked = due.toBuilder();
      if ((i & 1) == 0) {
        unasked.setSessionId(ByteString.copyFrom(chance.bytes(SessionId.LENGTH)));
      } else {
        unasked.setEnvelope(ByteString.copyFrom(chance.bytes(64)));
      }
      flood.add(PartyMessage.newBuilder().setEnvelope(unasked).build().toByteArray());
    }
    return flood;
  }

  private static byte[] altered(SessionEnvelope due, @Nullable FastEnvelope envelope) {
    if (envelope != null) {
      return message(due, envelope.with(envelope.body() ^ 1).encode());
    }
    byte[] bytes = due.getEnvelope().toByteArray();
    bytes[bytes.length - 1] ^= 1;
    return message(due, ByteString.copyFrom(bytes));
  }

  private static byte[] message(SessionEnvelope due, ByteString envelope) {
    return PartyMessage.newBuilder()
        .setEnvelope(due.toBuilder().setEnvelope(envelope))
        .build()
        .toByteArray();
  }

  /** Another envelope of the core that is known. */
  private @Nullable FastEnvelope other(@Nullable FastEnvelope than) {
    for (byte[] body : known.reversed()) {
      PartyMessage message = parse(body);
      if (message != null && message.hasEnvelope()) {
        FastEnvelope envelope =
            FastEnvelope.decode(message.getEnvelope().getEnvelope().toByteArray());
        if (envelope != null && than != null && envelope.body() != than.body()) {
          return envelope;
        }
      }
    }
    return null;
  }

  private static @Nullable PartyMessage parse(byte[] body) {
    try {
      return PartyMessage.parseFrom(body);
    } catch (InvalidProtocolBufferException e) {
      return null;
    }
  }

  private List<byte[]> told(Lie lie, List<byte[]> instead) {
    coverage.count(lie.label());
    return instead;
  }
}
