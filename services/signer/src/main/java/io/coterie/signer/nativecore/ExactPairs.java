package io.coterie.signer.nativecore;

import com.google.protobuf.ByteString;
import io.coterie.mpc.Vault;
import io.coterie.platform.protocol.ExactProtocol;
import io.coterie.proto.core.v1.DropPair;
import io.coterie.proto.core.v1.FindPair;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The set-ups that this party's vault has with each of its peers for imported keys, and the steps
 * that need them. The vault knows them; they live as long as it does. Thread-safe.
 */
final class ExactPairs {
  private static final byte[] STEP_TAG = "coterie/exact-step/1".getBytes(StandardCharsets.US_ASCII);

  private final Vault vault;
  private final byte[] sealedIdentity;
  private final Starter starter;

  /** The run that sets a pair up now. Guarded by itself. */
  private final Map<Name, SetsUp> settingUp = new HashMap<>();

  /**
   * The last set-up of each pair. The vault has it under the key's name, which a share of another
   * import can have, too.
   */
  private final Map<Name, Made> made = new ConcurrentHashMap<>();

  /** A lock for each pair, under which its set-ups end, so that each run notes its own. */
  private final Map<Name, Object> ends = new ConcurrentHashMap<>();

  private final CircuitRoom room = new CircuitRoom();

  private record Name(String key, int self, int peer) {}

  private record Made(ByteString setUp, ByteString sealedShare) {}

  /** A run that sets a pair up if it has to. */
  interface SetsUp {
    /** Whether nobody waits for it. */
    boolean isBackground();

    /** Another run sets the pair up: this one need not. Called by any thread. */
    void giveWay();
  }

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

  /** Takes room for a run; see {@link CircuitRoom#take}. */
  CircuitRoom.Place room(int peer, int blocks, CircuitRoom.Use use) throws RefusedException {
    return room.take(peer, blocks, use);
  }

  /**
   * Gives a run that sets a pair up a message of the peer.
   *
   * @param sealedShare that it does so with
   */
  Step pair(
      SessionConfig session,
      int peer,
      ByteString sealedShare,
      ProtocolCore.Run run,
      byte[] envelope) {
    Name name = name(session, peer);
    synchronized (ends.computeIfAbsent(name, _ -> new Object())) {
      Step step = run.handle(peer, envelope);
      if (step.hasDone()) {
        made.put(name, new Made(setUp(session, peer), sealedShare));
      }
      return step;
    }
  }

  /**
   * The set-up of this party with a peer that was made with this share; empty if there is none, or
   * one that another share of that name was used for.
   */
  ByteString setUp(SessionConfig session, int peer, ByteString sealedShare) {
    ByteString present = setUp(session, peer);
    return new Made(present, sealedShare).equals(made.get(name(session, peer)))
        ? present
        : ByteString.EMPTY;
  }

  /** The set-up of this party with a peer, by its name at both; empty if there is none. */
  ByteString setUp(SessionConfig session, int peer) {
    FindPair call =
        FindPair.newBuilder()
            .setKeyId(session.getKeyId())
            .setParty(session.getSelf())
            .setPeer(peer)
            .build();
    return vault
        .call(ImportCall.newBuilder().setFindPair(call).build(), sealedIdentity)
        .getPairFound()
        .getSetUp();
  }

  /**
   * A run is about to set this party up with a peer. The later of two set-ups ends the other, so
   * one in the background gives way to that of a signature.
   *
   * @return false if the run itself has to give way
   */
  boolean beginSetUp(SessionConfig session, int peer, SetsUp run) {
    synchronized (settingUp) {
      SetsUp other = settingUp.get(name(session, peer));
      if (other != null && run.isBackground()) {
        return false;
      }
      if (other != null && other.isBackground()) {
        other.giveWay();
      }
      settingUp.put(name(session, peer), run);
      return true;
    }
  }

  /** A run does not set this party up with a peer any more. */
  void endSetUp(SessionConfig session, int peer, SetsUp run) {
    synchronized (settingUp) {
      settingUp.remove(name(session, peer), run);
    }
  }

  private static Name name(SessionConfig session, int peer) {
    return new Name(session.getKeyId(), session.getSelf(), peer);
  }

  /**
   * Ends the set-up with a peer, and everything that was made with it.
   *
   * @param setUp as {@link #setUp} has named it: any other stays
   */
  void drop(SessionConfig session, int peer, ByteString setUp) {
    if (!setUp.isEmpty()) {
      drop(
          DropPair.newBuilder()
              .setKeyId(session.getKeyId())
              .setParty(session.getSelf())
              .setPeer(peer)
              .setSetUp(setUp));
    }
  }

  /** Ends the set-ups of a key with every peer. */
  void drop(String key) {
    made.keySet().removeIf(name -> name.key().equals(key));
    drop(DropPair.newBuilder().setKeyId(key));
  }

  private void drop(DropPair.Builder call) {
    vault.call(ImportCall.newBuilder().setDropPair(call).build(), sealedIdentity);
  }
}
