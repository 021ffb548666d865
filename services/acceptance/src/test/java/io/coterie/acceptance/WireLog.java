package io.coterie.acceptance;

import com.google.protobuf.ByteString;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.Vault;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * What signers of Schnorr signatures show of their nonces, as an observer sees it: every commitment
 * belongs to one party in one session, for ever. Thread-safe.
 */
final class WireLog {
  /** Set for the coordinator whose observer is listened to. */
  static final String PROPERTY = "acceptance.wire-log";

  // Of an envelope's header, as engine/src/envelope.rs draws it.
  private static final int PROTOCOL_AT = 1;
  private static final int SESSION_AT = 3;
  private static final int ROUND_AT = 35;
  private static final int SENDER_AT = 37;
  private static final int RECIPIENT_AT = 39;
  private static final int BODY_AT = 46;

  /** Bytes of a point, of the protocols whose first round begins with two nonce commitments. */
  private static final Map<Integer, Integer> POINT_BYTES =
      Map.of(
          ProtocolId.PROTOCOL_ID_ED25519_SIGN_1_VALUE, 32,
          ProtocolId.PROTOCOL_ID_ED25519_SIGN_PRESIGNED_1_VALUE, 32,
          ProtocolId.PROTOCOL_ID_BIP340_SIGN_1_VALUE, 33,
          ProtocolId.PROTOCOL_ID_BIP340_SIGN_PRESIGNED_1_VALUE, 33);

  private static final Map<ByteString, ByteString> shownBy = new HashMap<>();
  private static final Set<ByteString> shownTwice = new HashSet<>();
  private static int signatures;

  private WireLog() {}

  /** Forgets everything. */
  static synchronized void clear() {
    shownBy.clear();
    shownTwice.clear();
    signatures = 0;
  }

  /** Nonce commitments seen. */
  static synchronized int commitments() {
    return shownBy.size();
  }

  /** Those that two parties, or two sessions, have shown. */
  static synchronized Set<ByteString> shownTwice() {
    return Set.copyOf(shownTwice);
  }

  /** Signatures that the observer combined. */
  static synchronized int signatures() {
    return signatures;
  }

  /** Takes note of an envelope that a party has sent. */
  static synchronized void saw(ByteString envelope) {
    Integer point = POINT_BYTES.get(envelope.byteAt(PROTOCOL_AT) << 8 | envelope.byteAt(2));
    if (point == null || envelope.byteAt(ROUND_AT) != 1) {
      return;
    }
    ByteString owner =
        envelope
            .substring(SESSION_AT, ROUND_AT)
            .concat(envelope.substring(SENDER_AT, RECIPIENT_AT));
    for (int at = BODY_AT; at < BODY_AT + 2 * point; at += point) {
      ByteString commitment = envelope.substring(at, at + point);
      // A repeated envelope shows what it has shown.
      ByteString before = shownBy.putIfAbsent(commitment, owner.concat(byteOf(at)));
      if (before != null && !before.equals(owner.concat(byteOf(at)))) {
        shownTwice.add(commitment);
      }
    }
  }

  private static ByteString byteOf(int value) {
    return ByteString.copyFrom(new byte[] {(byte) value});
  }

  private static synchronized void combined() {
    signatures++;
  }

  /** Wraps the coordinator's core. Named in META-INF/spring.factories of the tests. */
  static final class Initializer
      implements ApplicationContextInitializer<ConfigurableApplicationContext> {
    @Override
    public void initialize(ConfigurableApplicationContext context) {
      if (context.getEnvironment().getProperty(PROPERTY, Boolean.class, false)) {
        context
            .getBeanFactory()
            .addBeanPostProcessor(
                new BeanPostProcessor() {
                  @Override
                  public Object postProcessAfterInitialization(Object bean, String name) {
                    return bean instanceof MpcCore core ? new Listening(core) : bean;
                  }
                });
      }
    }
  }

  private record Listening(MpcCore core) implements MpcCore {
    @Override
    public Vault openVault(byte[] dataKey) {
      return core.openVault(dataKey);
    }

    @Override
    public MpcSession observe(SessionConfig config) {
      MpcSession session = core.observe(config);
      boolean schnorr = POINT_BYTES.containsKey(config.getProtocolValue());
      return new MpcSession() {
        @Override
        public Step firstStep() {
          return session.firstStep();
        }

        @Override
        public Step handle(int authenticatedSender, byte[] envelope) {
          saw(ByteString.copyFrom(envelope));
          Step step = session.handle(authenticatedSender, envelope);
          if (schnorr && step.hasDone()) {
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
}
