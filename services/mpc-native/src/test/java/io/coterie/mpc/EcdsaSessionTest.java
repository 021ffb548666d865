package io.coterie.mpc;

import static io.coterie.mpc.NativeVaultTest.assertFails;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.Presignature;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.crypto.params.ECDomainParameters;
import org.bouncycastle.crypto.params.ECPublicKeyParameters;
import org.bouncycastle.crypto.signers.ECDSASigner;
import org.bouncycastle.math.ec.ECPoint;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Threshold ECDSA through the binding; every signature is verified by BouncyCastle. */
class EcdsaSessionTest {
  private static final ECDomainParameters CURVE =
      new ECDomainParameters(CustomNamedCurves.getByName("secp256k1"));
  private static final int CHILD = 7;

  /** Made by one session: as many as it makes. */
  private static final int PRESIGNATURES = 4;

  private static final byte[] NONE = {};

  private static LocalParties parties;
  private static Map<Integer, Done> shares;
  private static KeyPublic key;

  private final byte[] digest = parties.bytes(32);

  @BeforeAll
  static void keygen() {
    parties = new LocalParties(3);
    shares = parties.keygen(parties.keygen(ProtocolId.PROTOCOL_ID_ECDSA_KEYGEN, 2));
    key = shares.get(1).getKeyPublic();
  }

  @AfterAll
  static void close() {
    parties.close();
  }

  /** BIP-32, public derivation, one step. */
  private static ECPoint child(KeyPublic key) throws Exception {
    Mac mac = Mac.getInstance("HmacSHA512");
    mac.init(new SecretKeySpec(key.getChainCode().toByteArray(), "HmacSHA512"));
    mac.update(key.getPublicKey().toByteArray());
    byte[] output = mac.doFinal(ByteBuffer.allocate(4).putInt(CHILD).array());
    BigInteger tweak = new BigInteger(1, Arrays.copyOf(output, 32));
    ECPoint joint = CURVE.getCurve().decodePoint(key.getPublicKey().toByteArray());
    return joint.add(CURVE.getG().multiply(tweak)).normalize();
  }

  private void assertSignature(Done done) throws Exception {
    byte[] bytes = done.getSignature().toByteArray();
    assertThat(bytes).hasSize(64);
    BigInteger r = new BigInteger(1, Arrays.copyOf(bytes, 32));
    BigInteger s = new BigInteger(1, Arrays.copyOfRange(bytes, 32, 64));
    ECDSASigner verifier = new ECDSASigner();
    verifier.init(false, new ECPublicKeyParameters(child(key), CURVE));
    assertThat(verifier.verifySignature(digest, r, s)).isTrue();
    assertThat(s.shiftLeft(1)).isLessThan(CURVE.getN());
    assertThat(done.hasRecoveryId()).isTrue();
    assertThat(done.getRecoveryId()).isBetween(0, 3);
  }

  private SessionConfig session(ProtocolId protocol, KeyPublic key) {
    SessionConfig.Builder config = parties.session(protocol, key, List.of(1, 3));
    if (protocol != ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN) {
      config.setPayload(ByteString.copyFrom(digest));
    }
    return config.addDerivationPath(CHILD).build();
  }

  private static byte[] share(Map<Integer, Done> shares, int id) {
    return shares.get(id).getSealedShare().toByteArray();
  }

  private Map<Integer, Done> presign() {
    SessionConfig config =
        session(ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN, key).toBuilder()
            .setPresignatureCount(PRESIGNATURES)
            .build();
    return parties.run(config, id -> config, id -> share(shares, id));
  }

  private SessionConfig using(Presignature presignature, SessionConfig config) {
    return config.toBuilder()
        .setPresignatureId(presignature.getId())
        .setSealedPresignature(presignature.getSealed())
        .build();
  }

  @Test
  void a_key_has_what_wallets_need() {
    assertThat(shares.values()).allSatisfy(d -> assertThat(d.getKeyPublic()).isEqualTo(key));
    assertThat(key.getPublicKey().size()).isEqualTo(33);
    assertThat(key.getChainCode().size()).isEqualTo(32);
    assertThat(key.getProofOfPossession().size()).isZero();
  }

  @Test
  void three_rounds_sign_for_a_child_and_an_observer_combines() throws Exception {
    SessionConfig config = session(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, key);
    Map<Integer, Done> done = parties.sign(config, shares);
    assertThat(done.keySet()).containsExactly(LocalParties.OBSERVER, 1, 3);
    assertThat(done.values().stream().distinct()).hasSize(1);
    assertSignature(done.get(LocalParties.OBSERVER));
  }

  @Test
  void each_presignature_of_a_session_signs_in_one_round_and_once() throws Exception {
    Map<Integer, Done> made = presign();
    for (int place = 0; place < PRESIGNATURES; place++) {
      SessionConfig config = session(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED, key);
      Map<Integer, MpcSession> sessions = new TreeMap<>();
      for (int id : made.keySet()) {
        sessions.put(id, start(id, made.get(id).getPresignatures(place), config));
      }
      Presignature mine = made.get(1).getPresignatures(place);
      SessionConfig observed = config.toBuilder().setPresignatureId(mine.getId()).build();
      sessions.put(LocalParties.OBSERVER, parties.observe(observed, key));
      assertThat(sessions.get(1).firstStep().getOutgoingCount()).isEqualTo(1);
      Map<Integer, Done> done = LocalParties.run(sessions);
      assertThat(done.values().stream().distinct()).hasSize(1);
      assertSignature(done.get(LocalParties.OBSERVER));
      assertFails(MpcException.Reason.SETUP_REFUSED, () -> start(1, mine, config).close());
    }
  }

  @Test
  void a_session_makes_as_many_as_are_ordered() {
    Map<Integer, Done> made = presign();
    assertThat(made.keySet()).containsExactly(1, 3);
    assertThat(made.get(1).getPresignaturesList())
        .hasSize(PRESIGNATURES)
        .extracting(Presignature::getId)
        .doesNotHaveDuplicates()
        .allMatch(id -> id.size() == 32)
        .isEqualTo(made.get(3).getPresignaturesList().stream().map(Presignature::getId).toList());
    SessionConfig.Builder config = session(ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN, key).toBuilder();
    for (int count : new int[] {0, 5, -1}) {
      assertFails(
          MpcException.Reason.SETUP_REFUSED,
          () ->
              parties
                  .start(1, config.setPresignatureCount(count).build(), share(shares, 1))
                  .close());
    }
  }

  private MpcSession start(int id, Presignature presignature, SessionConfig config) {
    return parties.start(id, using(presignature, config), NONE);
  }

  @Test
  void a_dropped_presignature_signs_nothing() {
    Map<Integer, Done> made = presign();
    Presignature dropped = made.get(1).getPresignatures(0);
    byte[] id = dropped.getId().toByteArray();
    parties.vaults.get(1).dropPresignature(id);
    parties.vaults.get(1).dropPresignature(id);
    SessionConfig config = session(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED, key);
    assertFails(MpcException.Reason.SETUP_REFUSED, () -> start(1, dropped, config).close());
    start(3, made.get(3).getPresignatures(0), config).close();
    start(1, made.get(1).getPresignatures(1), config).close();
    for (int length : new int[] {0, 31, 33}) {
      assertFails(
          MpcException.Reason.INVALID_ARGUMENT,
          () -> parties.vaults.get(1).dropPresignature(new byte[length]));
    }
  }

  @Test
  void refresh_keeps_the_key_and_ends_the_old_shares() throws Exception {
    SessionConfig config =
        parties.session(ProtocolId.PROTOCOL_ID_ECDSA_REFRESH, key, parties.ids()).build();
    Map<Integer, Done> fresh = parties.run(config, id -> config, id -> share(shares, id));
    KeyPublic after = fresh.get(1).getKeyPublic();
    assertThat(after.getEpoch()).isEqualTo(2);
    assertThat(after.getPublicKey()).isEqualTo(key.getPublicKey());
    SessionConfig sign = session(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, after);
    assertSignature(parties.sign(sign, fresh).get(LocalParties.OBSERVER));
    assertFails(
        MpcException.Reason.SETUP_REFUSED, () -> parties.start(1, sign, share(shares, 1)).close());
  }

  @Test
  void reshare_raises_the_threshold_and_keeps_the_key() throws Exception {
    SessionConfig config =
        parties
            .session(ProtocolId.PROTOCOL_ID_ECDSA_RESHARE, key, parties.ids())
            .setThreshold(3)
            .addAllDealers(List.of(1, 3))
            .addAllReceivers(parties.ids())
            .setKeyPublic(key)
            .build();
    Map<Integer, Done> fresh =
        parties.run(config, id -> config, id -> id == 2 ? NONE : share(shares, id));
    KeyPublic after = fresh.get(2).getKeyPublic();
    assertThat(after.getThreshold()).isEqualTo(3);
    assertThat(after.getPublicKey()).isEqualTo(key.getPublicKey());
    SessionConfig sign =
        parties
            .session(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, after, parties.ids())
            .setPayload(ByteString.copyFrom(digest))
            .addDerivationPath(CHILD)
            .build();
    assertSignature(parties.sign(sign, fresh).get(LocalParties.OBSERVER));
  }
}
