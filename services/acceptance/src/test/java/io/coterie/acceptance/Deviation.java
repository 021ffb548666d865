package io.coterie.acceptance;

import com.google.protobuf.ByteString;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.Vault;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.Verdict;
import io.coterie.proto.core.v1.VerifyCall;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * How a corrupt party leaves the protocol. Its envelopes are its own: it runs each session twice,
 * with the same identity and other randomness, and mixes what the two runs say, so that everything
 * wrong it sends bears its good signature.
 *
 * @param round the round from which, or in which, it deviates
 */
record Deviation(Kind kind, int round) {
  /** Kind of a deviation. */
  enum Kind {
    NONE,
    /** Sends nothing from that round on. */
    SILENT,
    /** Says in that round what the other run says. */
    OTHER_RUN,
    /** Tells the first peer what one run says and the others what the other says. */
    EQUIVOCATE,
    /** Flips a bit of each envelope's last byte: its signature, or the end of an unsigned body. */
    GARBLE,
    /** Sends everything it has ever sent in the session again, with each message. */
    REPLAY,
    /** Signing: sends the partial signature of another message. */
    WRONG_PARTIAL,
    /**
     * Ed25519 and BIP-340 signing: changes a bit of its partial signature, which ends the last body
     * and is not signed. Runs once, so that presignatures can be used. Asked for the signature that
     * it knows by its right one, it shows a wrong one.
     */
    WRONG_SHARE
  }

  /** Length of an unsigned header with its run nonce, as engine/src/envelope.rs draws it. */
  private static final int HEADER_BYTES = 62;

  /** The deviation of the corrupt party at the moment; {@link #PROPERTY} names it at its start. */
  static volatile Deviation current = new Deviation(Kind.NONE, 0);

  /** Set for the one signer that is corrupt. */
  static final String PROPERTY = "acceptance.corrupt";

  /** Wraps the core of the corrupt signer. Named in META-INF/spring.factories of the tests. */
  static final class Initializer extends WrappedCore {
    Initializer() {
      super(PROPERTY, TwoFacedCore::new);
    }
  }

  private record TwoFacedCore(MpcCore core) implements MpcCore {
    @Override
    public Verdict judge(SessionConfig config, Accusation accusation) {
      return core.judge(config, accusation);
    }

    @Override
    public boolean verify(VerifyCall call) {
      return core.verify(call);
    }

    @Override
    public Vault openVault(byte[] dataKey) {
      return new TwoFacedVault(core.openVault(dataKey));
    }

    @Override
    public MpcSession observe(SessionConfig config) {
      return core.observe(config);
    }
  }

  private record TwoFacedVault(Vault vault) implements ForwardingVault {
    @Override
    public MpcSession start(SessionConfig config, byte[] sealedIdentity, byte[] sealedShare) {
      Deviation deviation = current;
      MpcSession one = vault.start(config, sealedIdentity, sealedShare);
      if (deviation.kind() == Kind.NONE) {
        return one;
      }
      if (deviation.kind() == Kind.WRONG_SHARE) {
        return config.getPayload().isEmpty() ? one : new WrongShare(config, one);
      }
      SessionConfig other =
          deviation.kind() == Kind.WRONG_PARTIAL
              ? config.toBuilder()
                  .setSessionId(ByteString.copyFrom(random32()))
                  .setPayload(ByteString.copyFromUtf8("another message"))
                  .build()
              : config;
      return new TwoFaced(deviation, config, one, vault.start(other, sealedIdentity, sealedShare));
    }

    private static byte[] random32() {
      byte[] bytes = new byte[32];
      new SecureRandom().nextBytes(bytes);
      return bytes;
    }
  }

  private record WrongShare(SessionConfig config, MpcSession session) implements MpcSession {
    @Override
    public Step firstStep() {
      return altered(session.firstStep());
    }

    @Override
    public Step handle(int authenticatedSender, byte[] envelope) {
      return altered(session.handle(authenticatedSender, envelope));
    }

    private Step altered(Step step) {
      int last = config.getPresignatureId().isEmpty() ? 2 : 1;
      Step.Builder result = step.toBuilder().clearOutgoing();
      for (Outgoing honest : step.getOutgoingList()) {
        result.addOutgoing(honest.getRound() == last ? TwoFaced.garbled(honest) : honest);
      }
      if (step.hasDone() && !step.getDone().getSignature().isEmpty()) {
        // With its own right share it knows the signature, and does not give that away either.
        byte[] signature = step.getDone().getSignature().toByteArray();
        signature[signature.length - 1] ^= 1;
        result.getDoneBuilder().setSignature(ByteString.copyFrom(signature));
      }
      return result.build();
    }

    @Override
    public void close() {
      session.close();
    }
  }

  private static final class TwoFaced implements MpcSession {
    private final Deviation deviation;
    private final SessionConfig config;
    private final MpcSession one;
    private final MpcSession other;
    private final List<Outgoing> sent = new ArrayList<>();
    private final List<Outgoing> othersWords = new ArrayList<>();

    TwoFaced(Deviation deviation, SessionConfig config, MpcSession one, MpcSession other) {
      this.deviation = deviation;
      this.config = config;
      this.one = one;
      this.other = other;
    }

    @Override
    public Step firstStep() {
      return mix(one.firstStep(), other.firstStep());
    }

    @Override
    public Step handle(int authenticatedSender, byte[] envelope) {
      Step first = one.handle(authenticatedSender, envelope.clone());
      return mix(first, other.handle(authenticatedSender, envelope));
    }

    private Step mix(Step first, Step second) {
      othersWords.addAll(second.getOutgoingList());
      List<Outgoing> out = new ArrayList<>();
      for (Outgoing honest : first.getOutgoingList()) {
        out.addAll(altered(honest));
      }
      sent.addAll(first.getOutgoingList());
      if (deviation.kind() == Kind.REPLAY && !first.getOutgoingList().isEmpty()) {
        out.addAll(sent);
      }
      return first.toBuilder().clearOutgoing().addAllOutgoing(out).build();
    }

    private List<Outgoing> altered(Outgoing honest) {
      boolean now = honest.getRound() == deviation.round();
      return switch (deviation.kind()) {
        case NONE, REPLAY, WRONG_SHARE -> List.of(honest);
        case SILENT -> honest.getRound() >= deviation.round() ? List.of() : List.of(honest);
        case OTHER_RUN -> now ? List.of(othersWord(honest)) : List.of(honest);
        case EQUIVOCATE -> now && honest.getRecipient() == 0 ? split(honest) : List.of(honest);
        case GARBLE -> now ? List.of(garbled(honest)) : List.of(honest);
        case WRONG_PARTIAL -> List.of(withBodyOf(honest, othersWords.getFirst()));
      };
    }

    private Outgoing othersWord(Outgoing honest) {
      return othersWords.stream()
          .filter(o -> o.getRound() == honest.getRound())
          .filter(o -> o.getRecipient() == honest.getRecipient())
          .findFirst()
          .orElse(honest);
    }

    private List<Outgoing> split(Outgoing honest) {
      List<Outgoing> out = new ArrayList<>();
      config.getPartiesList().stream()
          .filter(p -> p.getId() != config.getSelf())
          .forEach(
              p ->
                  out.add(
                      (out.isEmpty() ? honest : othersWord(honest))
                          .toBuilder().setRecipient(p.getId()).build()));
      return out;
    }

    private static Outgoing garbled(Outgoing honest) {
      byte[] bytes = honest.getEnvelope().toByteArray();
      bytes[bytes.length - 1] ^= 1;
      return honest.toBuilder().setEnvelope(ByteString.copyFrom(bytes)).build();
    }

    /** The header of one envelope with the body of another; both unsigned and of one length. */
    private static Outgoing withBodyOf(Outgoing honest, Outgoing other) {
      byte[] bytes = Arrays.copyOf(honest.getEnvelope().toByteArray(), honest.getEnvelope().size());
      byte[] source = other.getEnvelope().toByteArray();
      System.arraycopy(source, HEADER_BYTES, bytes, HEADER_BYTES, bytes.length - HEADER_BYTES);
      return honest.toBuilder().setEnvelope(ByteString.copyFrom(bytes)).build();
    }

    @Override
    public void close() {
      one.close();
      other.close();
    }
  }
}
