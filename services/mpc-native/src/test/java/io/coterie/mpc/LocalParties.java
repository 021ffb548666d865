package io.coterie.mpc;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/**
 * Parties 1 to n with their vaults and identities in one process, and a network that never fails.
 */
final class LocalParties implements AutoCloseable {
  /** Id of the observer in the maps of sessions. */
  static final int OBSERVER = 0;

  private static final byte[] NO_SHARE = {};

  private record Sent(int from, int to, byte[] envelope) {}

  final NativeMpcCore core = NativeMpcCore.load();
  final Map<Integer, Vault> vaults = new TreeMap<>();
  final Map<Integer, Vault.SealedIdentity> identities = new TreeMap<>();
  private final Random random = new Random(7);

  LocalParties(int n) {
    for (int id = 1; id <= n; id++) {
      Vault vault = core.openVault(bytes(32));
      vaults.put(id, vault);
      identities.put(id, vault.createIdentity("party-" + id));
    }
  }

  byte[] bytes(int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }

  List<Integer> ids() {
    return List.copyOf(vaults.keySet());
  }

  private List<Party> roster(List<Integer> ids) {
    return ids.stream()
        .map(
            id ->
                Party.newBuilder()
                    .setId(id)
                    .setEvidenceKey(ByteString.copyFrom(identities.get(id).evidenceKey()))
                    .build())
        .toList();
  }

  SessionConfig keygen(int threshold) {
    return keygen(ProtocolId.PROTOCOL_ID_BLS_KEYGEN, threshold);
  }

  SessionConfig keygen(ProtocolId protocol, int threshold) {
    return SessionConfig.newBuilder()
        .setProtocol(protocol)
        .setSessionId(ByteString.copyFrom(bytes(32)))
        .addAllParties(roster(ids()))
        .setThreshold(threshold)
        .setKeyId("keys/test")
        .setEpoch(1)
        .build();
  }

  SessionConfig sign(KeyPublic key, byte[] message, List<Integer> signingSet) {
    return session(ProtocolId.PROTOCOL_ID_BLS_SIGN, key, signingSet)
        .setPayload(ByteString.copyFrom(message))
        .build();
  }

  /** A session about a key, without what it is to do. */
  SessionConfig.Builder session(ProtocolId protocol, KeyPublic key, List<Integer> ids) {
    return SessionConfig.newBuilder()
        .setProtocol(protocol)
        .setSessionId(ByteString.copyFrom(bytes(32)))
        .addAllParties(roster(ids))
        .setThreshold(key.getThreshold())
        .setKeyId(key.getKeyId())
        .setEpoch(key.getEpoch());
  }

  MpcSession start(int party, SessionConfig config, byte[] sealedShare) {
    return vaults
        .get(party)
        .start(
            config.toBuilder().setSelf(party).build(), identities.get(party).sealed(), sealedShare);
  }

  MpcSession observe(SessionConfig config, KeyPublic key) {
    return core.observe(config.toBuilder().setSelf(OBSERVER).setKeyPublic(key).build());
  }

  /** Runs key generation. */
  Map<Integer, Done> keygen(SessionConfig config) {
    return run(config, id -> config, id -> NO_SHARE);
  }

  /** Runs a session of its parties only, in which each has its own configuration and share. */
  Map<Integer, Done> run(
      SessionConfig config, IntFunction<SessionConfig> configs, IntFunction<byte[]> shares) {
    Map<Integer, MpcSession> sessions = new TreeMap<>();
    for (Party party : config.getPartiesList()) {
      int id = party.getId();
      sessions.put(id, start(id, configs.apply(id), shares.apply(id)));
    }
    return run(sessions);
  }

  /** Runs signing with an observer. */
  Map<Integer, Done> sign(SessionConfig config, Map<Integer, Done> shares) {
    Map<Integer, MpcSession> sessions = new TreeMap<>();
    KeyPublic key = shares.values().iterator().next().getKeyPublic();
    sessions.put(OBSERVER, observe(config, key));
    for (Party party : config.getPartiesList()) {
      sessions.put(
          party.getId(),
          start(party.getId(), config, shares.get(party.getId()).getSealedShare().toByteArray()));
    }
    return run(sessions);
  }

  /** Carries envelopes until every session is done, then closes them. */
  static Map<Integer, Done> run(Map<Integer, MpcSession> sessions) {
    Map<Integer, Done> done = new TreeMap<>();
    Deque<Sent> network = new ArrayDeque<>();
    sessions.forEach((id, session) -> take(id, session.firstStep(), sessions, network, done));
    while (!network.isEmpty()) {
      Sent sent = network.poll();
      if (!done.containsKey(sent.to())) {
        Step step = sessions.get(sent.to()).handle(sent.from(), sent.envelope());
        take(sent.to(), step, sessions, network, done);
      }
    }
    sessions.values().forEach(MpcSession::close);
    if (!done.keySet().equals(sessions.keySet())) {
      throw new AssertionError("done are " + done.keySet() + " of " + sessions.keySet());
    }
    return done;
  }

  private static void take(
      int self,
      Step step,
      Map<Integer, MpcSession> sessions,
      Deque<Sent> network,
      Map<Integer, Done> done) {
    for (Outgoing out : step.getOutgoingList()) {
      IntStream recipients =
          out.getRecipient() == 0
              ? sessions.keySet().stream().mapToInt(id -> id).filter(id -> id != self)
              : IntStream.of(out.getRecipient());
      recipients.forEach(to -> network.add(new Sent(self, to, out.getEnvelope().toByteArray())));
    }
    switch (step.getProgressCase()) {
      case DONE -> done.put(self, step.getDone());
      case WAITING -> {}
      default -> throw new AssertionError("party " + self + ": " + step);
    }
  }

  @Override
  public void close() {
    vaults.values().forEach(Vault::close);
  }
}
