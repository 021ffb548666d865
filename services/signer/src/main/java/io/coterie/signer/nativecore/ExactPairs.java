package io.coterie.signer.nativecore;

import com.google.protobuf.ByteString;
import io.coterie.mpc.Vault;
import io.coterie.platform.protocol.ExactProtocol;
import io.coterie.proto.core.v1.DropPair;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The set-ups that this party's vault has with each of its peers for imported keys, and the steps
 * that need them. They live as long as the process, as those of the vault do. Thread-safe.
 */
final class ExactPairs {
  private static final byte[] STEP_TAG = "coterie/exact-step/1".getBytes(StandardCharsets.US_ASCII);

  private final Vault vault;
  private final byte[] sealedIdentity;
  private final Starter starter;

  /** The session that set a pair up. */
  private final Map<Name, ByteString> setUps = new ConcurrentHashMap<>();

  private record Name(String key, int self, int peer) {}

  /** Starts one session of the core. */
  @FunctionalInterface
  interface Starter {
    ProtocolCore.Run start(SessionConfig config, ByteString sealedShare) throws RefusedException;
  }

  ExactPairs(Vault vault, byte[] sealedIdentity, Starter starter) {
    this.vault = vault;
    this.sealedIdentity = sealedIdentity;
    this.starter = starter;
  }

  /** The ids of the other parties of a session, ascending. */
  static List<Integer> peers(SessionConfig session) {
    return session.getPartiesList().stream()
        .map(Party::getId)
        .filter(id -> id != session.getSelf())
        .toList();
  }

  /**
   * The configuration of a step of a session with one of its parties. Both have the same, but for
   * themselves.
   */
  static SessionConfig.Builder step(SessionConfig session, int peer, ExactProtocol protocol) {
    SessionConfig.Builder step =
        SessionConfig.newBuilder()
            .setProtocol(protocol.id())
            .setSessionId(stepId(session, peer, protocol))
            .setSelf(session.getSelf())
            .setThreshold(session.getThreshold())
            .setKeyId(session.getKeyId())
            .setEpoch(session.getEpoch());
    session.getPartiesList().stream()
        .filter(party -> party.getId() == peer || party.getId() == session.getSelf())
        .forEach(step::addParties);
    return step;
  }

  /** The id of a step: no two steps of any sessions have the same. */
  static ByteString stepId(SessionConfig session, int peer, ExactProtocol protocol) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update(STEP_TAG);
      digest.update(session.getSessionId().asReadOnlyByteBuffer());
      digest.update(
          ByteBuffer.allocate(3 * Integer.BYTES)
              .putInt(protocol.id().getNumber())
              .putInt(Math.min(session.getSelf(), peer))
              .putInt(Math.max(session.getSelf(), peer))
              .flip());
      return ByteString.copyFrom(digest.digest());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }

  ProtocolCore.Run start(SessionConfig step, ByteString sealedShare) throws RefusedException {
    return starter.start(step, sealedShare);
  }

  /** The session that set this party up with a peer; empty if none did, or it has ended. */
  Optional<ByteString> setUp(SessionConfig session, int peer) {
    return Optional.ofNullable(setUps.get(name(session, peer)));
  }

  /** A session has set this party up with a peer, in place of any earlier one. */
  void settled(SessionConfig session, int peer) {
    setUps.put(name(session, peer), stepId(session, peer, ExactProtocol.PAIR));
  }

  /**
   * Sets up anew next time. Sessions that are under way go on: one that did not come to its end may
   * have found another set-up in the vault than this knows of.
   */
  void doubt(SessionConfig session, int peer) {
    setUps.remove(name(session, peer));
  }

  /** Ends the set-up with a peer, and everything that was made with it. */
  void drop(SessionConfig session, int peer) {
    drop(name(session, peer));
  }

  /** The same, if this session set the pair up, and no later one has. */
  void dropOwn(SessionConfig session, int peer) {
    if (setUps.remove(name(session, peer), stepId(session, peer, ExactProtocol.PAIR))) {
      drop(name(session, peer));
    }
  }

  /** The same with every peer of a key. */
  void drop(String key) {
    setUps.keySet().stream().filter(name -> name.key.equals(key)).forEach(this::drop);
  }

  private static Name name(SessionConfig session, int peer) {
    return new Name(session.getKeyId(), session.getSelf(), peer);
  }

  private void drop(Name name) {
    setUps.remove(name);
    vault.call(
        ImportCall.newBuilder()
            .setDropPair(
                DropPair.newBuilder().setKeyId(name.key).setParty(name.self).setPeer(name.peer))
            .build(),
        sealedIdentity);
  }
}
