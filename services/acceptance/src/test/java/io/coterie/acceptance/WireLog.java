package io.coterie.acceptance;

import com.google.protobuf.ByteString;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.Vault;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.Verdict;
import io.coterie.proto.core.v1.VerifyCall;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Nonces that signers of randomised signatures show, as an observer sees them: every point belongs
 * to one session, and in FROST to one party of it, for ever; a party that runs the session again
 * has another one. Also everything that one signer's core lets out. Thread-safe.
 */
final class WireLog {
  /** Set for the coordinator whose observer is listened to, and for signers that are overheard. */
  static final String PROPERTY = "acceptance.wire-log";

  // Of an envelope's header, as engine/src/envelope.rs draws it.
  private static final int PROTOCOL_AT = 1;
  private static final int SESSION_AT = 3;
  private static final int ROUND_AT = 35;
  private static final int SENDER_AT = 37;
  private static final int RECIPIENT_AT = 39;
  private static final int RUN_AT = 46;
  private static final int BODY_AT = 62;

  /**
   * Where a protocol shows nonces.
   *
   * @param round whose broadcast begins with them
   * @param points how many there are
   * @param bytes of each
   * @param joint all parties of a session show the same
   */
  private record Nonces(int round, int points, int bytes, boolean joint) {}

  private static final Map<Integer, Nonces> NONCES =
      Map.of(
          ProtocolId.PROTOCOL_ID_ED25519_SIGN_VALUE, new Nonces(1, 2, 32, false),
          ProtocolId.PROTOCOL_ID_ED25519_SIGN_PRESIGNED_VALUE, new Nonces(1, 2, 32, false),
          ProtocolId.PROTOCOL_ID_BIP340_SIGN_VALUE, new Nonces(1, 2, 33, false),
          ProtocolId.PROTOCOL_ID_BIP340_SIGN_PRESIGNED_VALUE, new Nonces(1, 2, 33, false),
          ProtocolId.PROTOCOL_ID_ECDSA_SIGN_VALUE, new Nonces(3, 1, 33, true),
          ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED_VALUE, new Nonces(1, 1, 33, true));

  private static final Map<ByteString, ByteString> shownBy = new HashMap<>();
  private static final Map<ByteString, ByteString> shownIn = new HashMap<>();
  private static final List<ByteString> overheard = new ArrayList<>();
  private static final Set<ByteString> shownTwice = new HashSet<>();
  private static int sessions;
  private static int signatures;

  private WireLog() {}

  /** Forgets everything. */
  static synchronized void clear() {
    shownBy.clear();
    shownIn.clear();
    overheard.clear();
    shownTwice.clear();
    sessions = 0;
    signatures = 0;
  }

  /** Different points seen. */
  static synchronized int points() {
    return shownBy.size();
  }

  /** Those that two sessions, two runs of one session, or two parties of FROST have shown. */
  static synchronized Set<ByteString> shownTwice() {
    return Set.copyOf(shownTwice);
  }

  /**
   * Signing sessions that the observer has followed; one whose order is given again counts twice.
   */
  static synchronized int sessions() {
    return sessions;
  }

  /** Signatures that the observer combined. */
  static synchronized int signatures() {
    return signatures;
  }

  /** Takes note of an envelope that a party has sent. */
  static synchronized void saw(ByteString envelope) {
    Nonces nonces = NONCES.get(envelope.byteAt(PROTOCOL_AT) << 8 | envelope.byteAt(2));
    if (nonces == null || envelope.byteAt(ROUND_AT) != nonces.round()) {
      return;
    }
    ByteString session = envelope.substring(SESSION_AT, ROUND_AT);
    ByteString owner =
        nonces.joint() ? session : session.concat(envelope.substring(SENDER_AT, RECIPIENT_AT));
    for (int i = 0; i < nonces.points(); i++) {
      int at = BODY_AT + i * nonces.bytes();
      ByteString point = envelope.substring(at, at + nonces.bytes());
      // A repeated envelope shows what it has shown.
      ByteString before = shownBy.putIfAbsent(point, owner.concat(byteOf(at)));
      if (before != null && !before.equals(owner.concat(byteOf(at)))) {
        shownTwice.add(point);
      }
      ByteString run = envelope.substring(RUN_AT, BODY_AT);
      before = shownIn.putIfAbsent(point.concat(envelope.substring(SENDER_AT, RECIPIENT_AT)), run);
      if (before != null && !before.equals(run)) {
        shownTwice.add(point);
      }
    }
  }

  /** Messages of overheard signers in a round: of each session, the body of each run. */
  static synchronized Collection<Map<ByteString, ByteString>> runs(int round) {
    Map<ByteString, Map<ByteString, ByteString>> sessions = new HashMap<>();
    for (ByteString envelope : overheard) {
      if (envelope.byteAt(ROUND_AT) == round) {
        sessions
            .computeIfAbsent(envelope.substring(SESSION_AT, ROUND_AT), _ -> new HashMap<>())
            .put(envelope.substring(RUN_AT, BODY_AT), envelope.substring(BODY_AT));
      }
    }
    return sessions.values();
  }

  private static synchronized void overhear(Step step) {
    step.getOutgoingList().forEach(outgoing -> overheard.add(outgoing.getEnvelope()));
  }

  private static ByteString byteOf(int value) {
    return ByteString.copyFrom(new byte[] {(byte) value});
  }

  private static synchronized void followed() {
    sessions++;
  }

  private static synchronized void combined() {
    signatures++;
  }

  /** Wraps the core. Named in META-INF/spring.factories of the tests. */
  static final class Initializer extends WrappedCore {
    Initializer() {
      super(PROPERTY, Listening::new);
    }
  }

  private record Listening(MpcCore core) implements MpcCore {
    @Override
    public Vault openVault(byte[] dataKey) {
      return new ListeningVault(core.openVault(dataKey));
    }

    @Override
    public Verdict judge(SessionConfig config, Accusation accusation) {
      return core.judge(config, accusation);
    }

    @Override
    public boolean verify(VerifyCall call) {
      return core.verify(call);
    }

    @Override
    public MpcSession observe(SessionConfig config) {
      MpcSession session = core.observe(config);
      boolean signing = NONCES.containsKey(config.getProtocolValue());
      if (signing) {
        followed();
      }
      return new MpcSession() {
        @Override
        public Step firstStep() {
          return session.firstStep();
        }

        @Override
        public Step handle(int authenticatedSender, byte[] envelope) {
          saw(ByteString.copyFrom(envelope));
          Step step = session.handle(authenticatedSender, envelope);
          if (signing && step.hasDone()) {
            combined();
          }
          return step;
        }

        @Override
        public void close() {
          session.close();
        }
      };
    }
  }

  private record ListeningVault(Vault vault) implements ForwardingVault {
    @Override
    public MpcSession start(SessionConfig config, byte[] sealedIdentity, byte[] sealedShare) {
      MpcSession session = vault.start(config, sealedIdentity, sealedShare);
      return new MpcSession() {
        @Override
        public Step firstStep() {
          return heard(session.firstStep());
        }

        @Override
        public Step handle(int authenticatedSender, byte[] envelope) {
          return heard(session.handle(authenticatedSender, envelope));
        }

        private Step heard(Step step) {
          overhear(step);
          return step;
        }

        @Override
        public void close() {
          session.close();
        }
      };
    }
  }
}
