package io.coterie.platform.attestation;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.FormerParty;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.Trust;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.Signature;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/**
 * A session as its parties, some or all of them corrupt, say it ended. Every part can be changed
 * before they sign it. Party {@code pN} has the id N.
 */
final class TestSession {
  static final String KEY = "keys/hot-1";
  static final String INSTALLATION = "test";
  static final Timestamp END = Timestamp.newBuilder().setSeconds(1_800_000_000).build();

  /** Evidence keys by party id. */
  static final Map<Integer, KeyPair> PARTIES = new HashMap<>();

  static final KeyPair WALLET = pair("Ed25519");
  static final KeyPair WALLET_BEFORE = pair("EC");
  static final KeyPair KEEPER = pair("Ed25519");
  static final KeyPair RENEWER = pair("Ed25519");
  static final KeyPair STRANGER = pair("Ed25519");

  static {
    IntStream.rangeClosed(1, 9).forEach(id -> PARTIES.put(id, pair("Ed25519")));
  }

  String installation = INSTALLATION;
  ByteString id;
  String key = KEY;
  int epoch;

  /** Parties that use their shares, and have not only stored them. */
  Set<Integer> users;

  SignedIntent intent;
  KeyPublic.Builder keyPublic;
  List<Integer> signers;
  final Map<Integer, KeyPair> evidence = new HashMap<>(PARTIES);

  private TestSession(SignedIntent intent, KeyPublic.Builder keyPublic, List<Integer> signers) {
    this.intent = intent;
    this.keyPublic = keyPublic;
    this.epoch = keyPublic.getEpoch();
    this.users = Set.copyOf(signers);
    this.signers = signers;
    this.id = IntentVerifier.digest(intent.toByteString());
  }

  static KeyPair pair(String algorithm) {
    try {
      KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm);
      if (algorithm.equals("EC")) {
        generator.initialize(256);
      }
      return generator.generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  static IntentSigner wallet() {
    return new IntentSigner("wallet", WALLET.getPrivate());
  }

  static KeyIntent.Builder keyIntent(Scheme scheme, int threshold, Integer... parties) {
    return KeyIntent.newBuilder()
        .setRequestId("01a3185c-5000-7000-8000-000000000001")
        .setKey(KEY)
        .setScheme(scheme)
        .setThreshold(threshold)
        .addAllParties(names(parties))
        .setInstallation(INSTALLATION)
        .setNotAfter(END);
  }

  static ImportIntent.Builder importIntent(ByteString publicKey, Integer... parties) {
    return ImportIntent.newBuilder()
        .setRequestId("01a3185c-5000-7000-8000-000000000001")
        .setKey(KEY)
        .setScheme(Scheme.SCHEME_ED25519_EXACT)
        .setThreshold(2)
        .addAllParties(names(parties))
        .setPublicKey(publicKey)
        .addAllShareDigests(Collections.nCopies(parties.length, ByteString.copyFrom(new byte[32])))
        .setInstallation(INSTALLATION)
        .setNotAfter(END);
  }

  /** An import, of which the parties say that it gave the key of {@link #keyPublic}. */
  static TestSession imported(ImportIntent.Builder intent, Integer... parties) {
    return new TestSession(
        wallet().sign(intent.build()),
        keyPublic(Scheme.SCHEME_ED25519_EXACT, 1, 2, parties),
        List.of(parties));
  }

  static RefreshIntent.Builder refreshIntent(TestSession before) {
    return RefreshIntent.newBuilder()
        .setRequestId("01a3185c-5000-7000-8000-000000000002")
        .setKey(KEY)
        .setScheme(before.scheme())
        .setEpoch(before.epoch)
        .setInstallation(INSTALLATION)
        .setKeyFingerprint(KeyFingerprint.of(before.keyPublic.build()))
        .setNotAfter(END);
  }

  static ReshareIntent.Builder reshareIntent(
      TestSession before, int threshold, Integer... parties) {
    return ReshareIntent.newBuilder()
        .setRequestId("01a3185c-5000-7000-8000-000000000003")
        .setKey(KEY)
        .setScheme(before.scheme())
        .setEpoch(before.epoch)
        .setThreshold(threshold)
        .addAllParties(names(parties))
        .setPublicKey(before.keyPublic.getPublicKey())
        .setInstallation(INSTALLATION)
        .setNotAfter(END);
  }

  static TestSession creation(Scheme scheme) {
    return creation(scheme, 2, 1, 2, 3);
  }

  static TestSession creation(Scheme scheme, int threshold, Integer... parties) {
    return new TestSession(
        wallet().sign(keyIntent(scheme, threshold, parties).build()),
        keyPublic(scheme, 1, threshold, parties),
        List.of(parties));
  }

  static TestSession refresh(TestSession before) {
    return refresh(before, before.epoch);
  }

  /** After refreshes that the attestation leaves out. */
  static TestSession refresh(TestSession before, int epoch) {
    return new TestSession(
        wallet().sign(refreshIntent(before).setEpoch(epoch).build()),
        before.keyPublic.clone().setEpoch(epoch + 1),
        before.holders());
  }

  /** To other parties. */
  static TestSession reshare(TestSession before, int threshold, Integer... parties) {
    return new TestSession(
        wallet().sign(reshareIntent(before, threshold, parties).build()),
        keyPublic(before.scheme(), before.epoch + 1, threshold, parties),
        Arrays.stream(parties).sorted().toList());
  }

  TestSession with(Consumer<TestSession> change) {
    change.accept(this);
    return this;
  }

  List<Integer> holders() {
    return keyPublic.getVerificationSharesList().stream().map(VerificationShare::getParty).toList();
  }

  private Scheme scheme() {
    return switch (keyPublic.getPublicKey().size()) {
      case 48 -> Scheme.SCHEME_BLS12381;
      case 32 -> Scheme.SCHEME_ED25519;
      default -> Scheme.SCHEME_BIP340_SECP256K1;
    };
  }

  static List<String> names(Integer... parties) {
    return Arrays.stream(parties).map(party -> "p" + party).toList();
  }

  /** Points that the parties have agreed on; only those of secp256k1 have to be on the curve. */
  static KeyPublic.Builder keyPublic(Scheme scheme, int epoch, int threshold, Integer... parties) {
    KeyPublic.Builder made =
        KeyPublic.newBuilder().setThreshold(threshold).setKeyId(KEY).setEpoch(epoch);
    int bytes =
        switch (scheme) {
          case SCHEME_BLS12381 -> {
            made.setProofOfPossession(ByteString.copyFrom(new byte[96]));
            yield 48;
          }
          case SCHEME_ED25519, SCHEME_ED25519_EXACT -> 32;
          default -> {
            made.setChainCode(ByteString.copyFrom(new byte[32]));
            yield 33;
          }
        };
    made.setPublicKey(bytes == 33 ? GENERATOR : ByteString.copyFrom(new byte[bytes]));
    for (int party : parties) {
      byte[] point = new byte[bytes];
      point[0] = (byte) (party + epoch);
      made.addVerificationShares(
          VerificationShare.newBuilder().setParty(party).setPoint(ByteString.copyFrom(point)));
    }
    return made;
  }

  private static final ByteString GENERATOR =
      ByteString.fromHex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798");

  /** With the signatures of all signers over what it is now. */
  Completion completion() {
    ByteString serialised = keyPublic.build().toByteString();
    CompletedStatement statement =
        new CompletedStatement(
            installation,
            id,
            key,
            epoch,
            IntentVerifier.digest(intent.getPayload()),
            serialised,
            false);
    Completion.Builder completion =
        Completion.newBuilder().setSessionId(id).setSignedIntent(intent).setKeyPublic(serialised);
    for (int party : signers) {
      completion.addSignatures(
          EvidenceSignature.newBuilder()
              .setParty(party)
              .setUsed(users.contains(party))
              .setSignature(
                  sign(
                      evidence.get(party),
                      (users.contains(party) ? statement.inUse() : statement).of(party))));
    }
    return completion.build();
  }

  /** As docs/protocols/session.md has it, by an implementation that is not the core's. */
  static ByteString sign(KeyPair evidence, ByteString statement) {
    try {
      Signature signer = Signature.getInstance("Ed25519");
      signer.initSign(evidence.getPrivate());
      signer.update("coterie/statement-signature/1".getBytes(US_ASCII));
      signer.update(MessageDigest.getInstance("SHA-256").digest(statement.toByteArray()));
      return ByteString.copyFrom(signer.sign());
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The answer of an honest coordinator that has these sessions. */
  static Key answer(Scheme scheme, TestSession... sessions) {
    Attestation.Builder attestation = Attestation.newBuilder();
    for (TestSession session : sessions) {
      attestation.addCompletions(session.completion());
    }
    TestSession last = sessions[sessions.length - 1];
    KeyPublic keyPublic = last.keyPublic.build();
    SchemeKeys keys = SchemeKeys.of(scheme);
    Key.Builder key =
        Key.newBuilder()
            .setName(KEY)
            .setScheme(scheme)
            .setThreshold(keyPublic.getThreshold())
            .addAllParties(names(last.holders().toArray(Integer[]::new)))
            .setState(Key.State.ACTIVE)
            .setPublicKey(
                scheme == Scheme.SCHEME_BIP340_SECP256K1
                    ? keyPublic.getPublicKey().substring(1)
                    : keyPublic.getPublicKey())
            .setProofOfPossession(keyPublic.getProofOfPossession())
            .setEpoch(keyPublic.getEpoch())
            .setFingerprint(KeyFingerprint.of(keyPublic))
            .setReshareEpoch(Holding.reshareEpoch(attestation.build()))
            .setOrigin(
                scheme == Scheme.SCHEME_ED25519_EXACT ? Key.Origin.IMPORTED : Key.Origin.GENERATED)
            .setCreateTime(END)
            .setRequestId("01a3185c-5000-7000-8000-000000000001")
            .setAttestation(attestation);
    if (keys.fit(keyPublic)) {
      keys.xpub(keyPublic).ifPresent(key::setXpub);
    }
    return key.build();
  }

  static Member party(String name, int id, KeyPair evidence) {
    return new Member(
        name, Member.Role.PARTY, id, "eu", new UUID(1, id), 1, new byte[33], raw(evidence));
  }

  static byte[] raw(KeyPair evidence) {
    byte[] spki = evidence.getPublic().getEncoded();
    return Arrays.copyOfRange(spki, spki.length - 32, spki.length);
  }

  /**
   * All nine parties; a wallet that had another key before, a keeper of cold keys, and a renewer of
   * the wallet's.
   */
  static Trust trust() {
    return trust(Set.of(KeyRight.values()));
  }

  /** All nine parties, and a wallet with these rights alone. */
  static Trust trust(Set<KeyRight> rights) {
    List<Member> members = new ArrayList<>();
    PARTIES.forEach((id, evidence) -> members.add(party("p" + id, id, evidence)));
    return trust(members, List.of(), rights);
  }

  static Trust trust(List<Member> members, List<FormerParty> former) {
    return trust(members, former, Set.of(KeyRight.values()));
  }

  private static Trust trust(List<Member> members, List<FormerParty> former, Set<KeyRight> rights) {
    return new Trust(
        new Roster(INSTALLATION, 1, members, former),
        List.of(
            new Trust.Requester(
                "wallet",
                List.of(WALLET_BEFORE.getPublic().getEncoded(), WALLET.getPublic().getEncoded()),
                List.of(new Glob("keys/*-1"), new Glob("keys/pay-*-usd")),
                rights,
                2,
                3),
            new Trust.Requester(
                "keeper",
                List.of(KEEPER.getPublic().getEncoded()),
                List.of(new Glob("keys/cold-*")),
                Set.of(KeyRight.values()),
                2,
                2),
            new Trust.Requester(
                "renewer",
                List.of(RENEWER.getPublic().getEncoded()),
                List.of(new Glob("keys/*-1")),
                Set.of(KeyRight.REFRESH, KeyRight.RESHARE),
                2,
                3)));
  }
}
