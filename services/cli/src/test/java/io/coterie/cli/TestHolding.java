package io.coterie.cli;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.attestation.CurrentStatement;
import io.coterie.platform.attestation.Holding;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.bouncycastle.crypto.digests.SHA256Digest;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.crypto.params.ECDomainParameters;
import org.bouncycastle.crypto.params.ECPrivateKeyParameters;
import org.bouncycastle.crypto.params.Ed25519PrivateKeyParameters;
import org.bouncycastle.crypto.signers.ECDSASigner;
import org.bouncycastle.crypto.signers.Ed25519Signer;
import org.bouncycastle.crypto.signers.HMacDSAKCalculator;
import org.bouncycastle.math.ec.ECPoint;
import supranational.blst.P1;
import supranational.blst.P2;
import supranational.blst.SecretKey;

/** A whole key in place of its shares, with the attestation that honest parties would give. */
final class TestHolding {
  private static final String SUITE = "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
  private static final ECDomainParameters CURVE =
      new ECDomainParameters(CustomNamedCurves.getByName("secp256k1"));

  final String name;
  final Scheme scheme;
  final String requestId;
  private final byte[] secret = new byte[32];
  private final List<Completion> completions = new ArrayList<>();
  KeyPublic keyPublic;

  TestHolding(String name, Scheme scheme, String requestId) {
    this.name = name;
    this.scheme = scheme;
    this.requestId = requestId;
    new SplittableRandom(name.hashCode()).nextBytes(secret);
    secret[0] = 1; // below every order
    KeyPublic.Builder made = KeyPublic.newBuilder().setKeyId(name);
    switch (scheme) {
      case SCHEME_BLS12381 ->
          made.setPublicKey(ByteString.copyFrom(new P1(blsSecret()).compress()))
              .setProofOfPossession(ByteString.copyFrom(new byte[96]));
      case SCHEME_ED25519 ->
          made.setPublicKey(
              ByteString.copyFrom(
                  new Ed25519PrivateKeyParameters(secret).generatePublicKey().getEncoded()));
      default ->
          made.setPublicKey(publicKey(new BigInteger(1, secret)))
              .setChainCode(ByteString.copyFrom(secret));
    }
    this.keyPublic = made.build();
  }

  private SecretKey blsSecret() {
    SecretKey key = new SecretKey();
    key.keygen(secret);
    return key;
  }

  private static ByteString publicKey(BigInteger secret) {
    ECPoint point = CURVE.getG().multiply(secret).normalize();
    return ByteString.copyFrom(point.getEncoded(true));
  }

  /** Parties store the shares of an epoch, and sign it. */
  void complete(SignedIntent intent, int epoch, int threshold, List<Integer> parties) {
    KeyPublic.Builder made =
        keyPublic.toBuilder().setEpoch(epoch).setThreshold(threshold).clearVerificationShares();
    for (int party : parties) {
      made.addVerificationShares(
          VerificationShare.newBuilder().setParty(party).setPoint(keyPublic.getPublicKey()));
    }
    keyPublic = made.build();
    ByteString digest = IntentVerifier.digest(intent.getPayload());
    CompletedStatement statement =
        new CompletedStatement(
            TestFiles.INSTALLATION, digest, name, epoch, digest, keyPublic.toByteString(), true);
    Completion.Builder completion =
        Completion.newBuilder()
            .setSessionId(digest)
            .setSignedIntent(intent)
            .setKeyPublic(keyPublic.toByteString());
    for (int party : parties) {
      completion.addSignatures(
          EvidenceSignature.newBuilder()
              .setParty(party)
              .setUsed(true)
              .setSignature(TestFiles.sign(party, statement.of(party))));
    }
    completions.add(completion.build());
  }

  List<Integer> holders() {
    return keyPublic.getVerificationSharesList().stream().map(VerificationShare::getParty).toList();
  }

  /** The honest answer. */
  Key answer() {
    SchemeKeys keys = SchemeKeys.of(scheme);
    Key.Builder key =
        Key.newBuilder()
            .setName(name)
            .setScheme(scheme)
            .setThreshold(keyPublic.getThreshold())
            .setState(Key.State.ACTIVE)
            .setOrigin(Key.Origin.GENERATED)
            .setPublicKey(keys.verifyingKey(keyPublic, KeyTarget.SELF))
            .setProofOfPossession(keyPublic.getProofOfPossession())
            .setEpoch(keyPublic.getEpoch())
            .setFingerprint(KeyFingerprint.of(keyPublic))
            .setReshareEpoch(
                Holding.reshareEpoch(
                    Attestation.newBuilder().addAllCompletions(completions).build()))
            .setRequestId(requestId)
            .setAttestation(Attestation.newBuilder().addAllCompletions(completions));
    holders().forEach(party -> key.addParties("p" + party));
    keys.xpub(keyPublic).ifPresent(key::setXpub);
    return key.build();
  }

  /** The answer of an honest party to a client's challenge. */
  EpochStatement current(int party, ByteString challenge) {
    CurrentStatement statement =
        CurrentStatement.using(
            TestFiles.INSTALLATION,
            completions.getLast().getSessionId(),
            keyPublic,
            false,
            challenge);
    return statement.signed(party, TestFiles.sign(party, statement.of(party)));
  }

  /** The honest answer to a client's challenge, if these parties can be reached. */
  Key answer(ByteString challenge, Set<Integer> reachable) {
    Key.Builder key = answer().toBuilder();
    if (!challenge.isEmpty()) {
      holders().stream()
          .filter(reachable::contains)
          .forEach(party -> key.addCurrent(current(party, challenge)));
    }
    return key.build();
  }

  /** A signature of the key, or of its descendant. */
  ByteString sign(KeyTarget target, ByteString toSign) {
    byte[] message = toSign.toByteArray();
    return switch (scheme) {
      case SCHEME_BLS12381 -> {
        P2 signature = new P2().hash_to(message, SUITE, new byte[0]).sign_with(blsSecret());
        yield ByteString.copyFrom(signature.compress());
      }
      case SCHEME_ED25519 -> {
        Ed25519Signer signer = new Ed25519Signer();
        signer.init(true, new Ed25519PrivateKeyParameters(secret));
        signer.update(message, 0, message.length);
        yield ByteString.copyFrom(signer.generateSignature());
      }
      case SCHEME_ECDSA_SECP256K1 -> ecdsa(descendant(target.path()), message);
      default -> throw new AssertionError("no test signs with " + scheme);
    };
  }

  private static ByteString ecdsa(BigInteger secret, byte[] digest) {
    ECDSASigner signer = new ECDSASigner(new HMacDSAKCalculator(new SHA256Digest()));
    signer.init(true, new ECPrivateKeyParameters(secret, CURVE));
    BigInteger[] signature = signer.generateSignature(digest);
    BigInteger low = signature[1].min(CURVE.getN().subtract(signature[1]));
    return word(signature[0]).concat(word(low));
  }

  static ByteString word(BigInteger number) {
    byte[] bytes = new byte[32];
    byte[] all = number.toByteArray();
    int length = Math.min(all.length, 32);
    System.arraycopy(all, all.length - length, bytes, 32 - length, length);
    return ByteString.copyFrom(bytes);
  }

  /** The private half of CKDpub (BIP-32). */
  private BigInteger descendant(List<Integer> path) {
    BigInteger key = new BigInteger(1, secret);
    byte[] chainCode = secret;
    for (int number : path) {
      try {
        Mac hmac = Mac.getInstance("HmacSHA512");
        hmac.init(new SecretKeySpec(chainCode, "HmacSHA512"));
        hmac.update(publicKey(key).toByteArray());
        ByteBuffer derived =
            ByteBuffer.wrap(hmac.doFinal(ByteBuffer.allocate(4).putInt(number).array()));
        byte[] tweak = new byte[32];
        chainCode = new byte[32];
        derived.get(tweak).get(chainCode);
        key = key.add(new BigInteger(1, tweak)).mod(CURVE.getN());
      } catch (GeneralSecurityException e) {
        throw new IllegalStateException(e);
      }
    }
    return key;
  }
}
