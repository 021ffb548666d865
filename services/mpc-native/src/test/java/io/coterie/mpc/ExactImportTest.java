package io.coterie.mpc;

import static io.coterie.mpc.NativeVaultTest.assertFails;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.ImportReply;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.KeySplit;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.SplitKey;
import io.coterie.proto.core.v1.TakeShare;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** An imported Ed25519 key, from the owner's seed to signatures, with the real core. */
class ExactImportTest {
  private static final String KEY = "keys/test";
  private static final byte[] NONE = {};
  private static final byte[] MESSAGE = "transfer 12".getBytes(StandardCharsets.UTF_8);
  private static final List<Integer> PAIR = List.of(1, 3);

  private final LocalParties parties = new LocalParties(3);
  private final byte[] seed = parties.bytes(32);
  private final Map<Integer, byte[]> shares = new TreeMap<>();
  private KeyPublic key;

  @BeforeEach
  void importKey() {
    SplitKey.Builder split =
        SplitKey.newBuilder().setSecret(ByteString.copyFrom(seed)).setKeyId(KEY);
    for (int id : parties.ids()) {
      ByteString evidenceKey = ByteString.copyFrom(parties.identities.get(id).evidenceKey());
      split.addParties(Party.newBuilder().setId(id).setEvidenceKey(evidenceKey));
    }
    KeySplit made =
        parties.core.call(ImportCall.newBuilder().setSplitKey(split).build()).getKeySplit();
    key = made.getKeyPublic();
    made.getSharesList()
        .forEach(
            share -> {
              ImportReply reply = take(share.getParty(), share.getValue());
              assertThat(reply.getShareTaken().getKeyPublic()).isEqualTo(key);
              shares.put(share.getParty(), reply.getShareTaken().getSealedShare().toByteArray());
            });
  }

  @AfterEach
  void close() {
    parties.close();
  }

  private ImportReply take(int party, ByteString share) {
    TakeShare call = TakeShare.newBuilder().setKeyId(KEY).setParty(party).setShare(share).build();
    return parties
        .vaults
        .get(party)
        .call(
            ImportCall.newBuilder().setTakeShare(call).build(),
            parties.identities.get(party).sealed());
  }

  private Map<Integer, Done> run(ProtocolId protocol, Consumer<SessionConfig.Builder> settings) {
    SessionConfig.Builder builder = parties.session(protocol, key, PAIR);
    settings.accept(builder);
    SessionConfig config = builder.build();
    boolean shared = protocol == ProtocolId.PROTOCOL_ID_ED25519_EXACT_PAIR;
    return parties.run(config, id -> config, id -> shared ? shares.get(id) : NONE);
  }

  /** Id of the session that prepared. */
  private ByteString prepare() {
    return run(ProtocolId.PROTOCOL_ID_ED25519_EXACT_PREPARE, config -> config.setMessageBlocks(1))
        .get(1)
        .getPresignatures(0)
        .getId();
  }

  /** The signature of the owner's own software. */
  private byte[] expected() throws GeneralSecurityException {
    byte[] head = HexFormat.of().parseHex("302e020100300506032b657004220420");
    byte[] encoded = new byte[head.length + seed.length];
    System.arraycopy(head, 0, encoded, 0, head.length);
    System.arraycopy(seed, 0, encoded, head.length, seed.length);
    PrivateKey owner =
        KeyFactory.getInstance("Ed25519").generatePrivate(new PKCS8EncodedKeySpec(encoded));
    Signature signature = Signature.getInstance("Ed25519");
    signature.initSign(owner);
    signature.update(MESSAGE);
    return signature.sign();
  }

  @Test
  void a_pair_signs_as_the_owner_does() throws GeneralSecurityException {
    run(ProtocolId.PROTOCOL_ID_ED25519_EXACT_PAIR, config -> {});
    ByteString payload = ByteString.copyFrom(MESSAGE);
    byte[] expected = expected();
    for (int i = 0; i < 2; i++) {
      ByteString prepared = prepare();
      ByteString session = ByteString.copyFrom(parties.bytes(32));
      ByteString nonce =
          run(
                  ProtocolId.PROTOCOL_ID_ED25519_EXACT_NONCE,
                  config ->
                      config.setSessionId(session).setPresignatureId(prepared).setPayload(payload))
              .get(3)
              .getNoncePoint();
      Map<Integer, Done> answers =
          run(
              ProtocolId.PROTOCOL_ID_ED25519_EXACT_ANSWER,
              config ->
                  config.setPresignatureId(session).setPayload(payload).setRecordedNonce(nonce));
      assertThat(answers.values())
          .allSatisfy(done -> assertThat(done.getSignature().toByteArray()).isEqualTo(expected));
    }
  }

  @Test
  void nothing_is_signed_without_a_set_up_nor_after_a_restart() {
    assertFails(MpcException.Reason.SETUP_REFUSED, this::prepare);
    run(ProtocolId.PROTOCOL_ID_ED25519_EXACT_PAIR, config -> {});
    ByteString prepared = prepare();
    parties.vaults.put(1, parties.core.openVault(parties.bytes(32))).close();
    assertFails(
        MpcException.Reason.SETUP_REFUSED,
        () ->
            run(
                ProtocolId.PROTOCOL_ID_ED25519_EXACT_NONCE,
                config ->
                    config.setPresignatureId(prepared).setPayload(ByteString.copyFrom(MESSAGE))));
  }

  @Test
  void a_share_is_taken_by_its_party_alone() {
    ByteString foreign = ByteString.copyFrom(parties.bytes(400));
    assertThat(take(2, foreign).hasShareRefused()).isTrue();
  }
}
