package io.coterie.acceptance.bench;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.attestation.CurrentStatement;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Member;
import io.coterie.trust.RootKey;
import io.coterie.trust.Roots;
import io.coterie.trust.Roster;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustFile;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.PublicKey;
import java.security.Signature;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.UUID;

/**
 * A public key with the attestation of two parties that this process plays: enough for every check
 * that a client makes of it. Nobody can sign with it.
 */
final class RehearsedKey {
  static final String REQUESTER = "rehearsal";
  private static final String INSTALLATION = "rehearsal";
  private static final String SHORT_NAME = "rehearsed";
  private static final int PARTIES = 2;

  /** The bytes at the end of an SPKI form that are the key. */
  private static final int ED25519_BYTES = 32;

  private static final int IDENTITY_BYTES = 33;

  private final List<KeyPair> evidence = new ArrayList<>();
  private final KeyPublic keyPublic;
  private final Key answer;

  RehearsedKey(IntentSigner requester) throws GeneralSecurityException {
    List<String> parties = new ArrayList<>();
    ByteString publicKey = ByteString.copyFrom(raw(ed25519()));
    KeyPublic.Builder made =
        KeyPublic.newBuilder()
            .setKeyId("keys/" + SHORT_NAME)
            .setPublicKey(publicKey)
            .setEpoch(1)
            .setThreshold(PARTIES);
    for (int party = 1; party <= PARTIES; party++) {
      evidence.add(ed25519());
      parties.add(name(party));
      made.addVerificationShares(
          VerificationShare.newBuilder().setParty(party).setPoint(publicKey));
    }
    keyPublic = made.build();
    KeyIntent intent =
        WalletBackend.keyIntent(SHORT_NAME, PARTIES, parties)
            .setScheme(Scheme.SCHEME_ED25519)
            .setInstallation(INSTALLATION)
            .build();
    answer =
        Key.newBuilder()
            .setName(keyPublic.getKeyId())
            .setScheme(Scheme.SCHEME_ED25519)
            .setThreshold(PARTIES)
            .setState(Key.State.ACTIVE)
            .setOrigin(Key.Origin.GENERATED)
            .setPublicKey(publicKey)
            .setEpoch(1)
            .setFingerprint(KeyFingerprint.of(keyPublic))
            .setRequestId(intent.getRequestId())
            .setAttestation(Attestation.newBuilder().addCompletions(creation(requester, intent)))
            .addAllParties(parties)
            .build();
  }

  private Completion creation(IntentSigner requester, KeyIntent intent)
      throws GeneralSecurityException {
    SignedIntent signed = requester.sign(intent);
    ByteString digest = IntentVerifier.digest(signed.getPayload());
    CompletedStatement statement =
        CompletedStatement.stored(INSTALLATION, session(), keyPublic, digest).inUse();
    Completion.Builder completion =
        Completion.newBuilder()
            .setSessionId(session())
            .setSignedIntent(signed)
            .setKeyPublic(keyPublic.toByteString());
    for (int party = 1; party <= PARTIES; party++) {
      completion.addSignatures(
          EvidenceSignature.newBuilder()
              .setParty(party)
              .setUsed(true)
              .setSignature(sign(party, statement.of(party))));
    }
    return completion.build();
  }

  /** The answer about the key, with the parties' answers to a challenge if there is one. */
  Key answer(ByteString challenge) throws GeneralSecurityException {
    if (challenge.isEmpty()) {
      return answer;
    }
    CurrentStatement statement =
        CurrentStatement.using(INSTALLATION, session(), keyPublic, false, challenge);
    Key.Builder challenged = answer.toBuilder();
    for (int party = 1; party <= PARTIES; party++) {
      challenged.addCurrent(statement.signed(party, sign(party, statement.of(party))));
    }
    return challenged.build();
  }

  /** The trust file by which a client believes the parties. */
  TrustFile trust(PublicKey requester) throws GeneralSecurityException {
    List<Member> members = new ArrayList<>();
    for (int party = 1; party <= PARTIES; party++) {
      members.add(
          new Member(
              name(party),
              Member.Role.PARTY,
              party,
              "here",
              new UUID(1, party),
              1,
              new byte[IDENTITY_BYTES],
              raw(evidence.get(party - 1))));
    }
    Trust.Requester wallet =
        new Trust.Requester(
            REQUESTER,
            List.of(requester.getEncoded()),
            List.of(new Glob("keys/*")),
            Set.of(KeyRight.CREATE),
            PARTIES,
            PARTIES);
    KeyPair root = ed25519();
    return TrustFile.first(
            new Trust(new Roster(INSTALLATION, 1, members, List.of()), List.of(wallet)),
            new Roots(1, List.of(new RootKey(root.getPublic().getEncoded()))))
        .signed(root.getPrivate());
  }

  private ByteString session() {
    return IntentVerifier.digest(keyPublic.toByteString());
  }

  private static String name(int party) {
    return "party-" + party;
  }

  private static KeyPair ed25519() throws GeneralSecurityException {
    return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
  }

  private static byte[] raw(KeyPair key) {
    byte[] spki = key.getPublic().getEncoded();
    return Arrays.copyOfRange(spki, spki.length - ED25519_BYTES, spki.length);
  }

  /** A party's signature of a statement, as the core makes it. */
  private ByteString sign(int party, ByteString statement) throws GeneralSecurityException {
    Signature signature = Signature.getInstance("Ed25519");
    signature.initSign(evidence.get(party - 1).getPrivate());
    signature.update("coterie/statement-signature/1".getBytes(US_ASCII));
    signature.update(MessageDigest.getInstance("SHA-256").digest(statement.toByteArray()));
    return ByteString.copyFrom(signature.sign());
  }
}
