package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationProblem.*;
import static io.coterie.platform.attestation.TestSession.KEY;
import static io.coterie.platform.attestation.TestSession.answer;
import static io.coterie.platform.attestation.TestSession.creation;
import static io.coterie.platform.attestation.TestSession.keyIntent;
import static io.coterie.platform.attestation.TestSession.refresh;
import static io.coterie.platform.attestation.TestSession.refreshIntent;
import static io.coterie.platform.attestation.TestSession.reshare;
import static io.coterie.platform.attestation.TestSession.reshareIntent;
import static io.coterie.platform.attestation.TestSession.wallet;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;

/** Lies of a coordinator about a key that honest parties hold, and about the intents for it. */
final class AttestationLies {
  static final Scheme BLS = Scheme.SCHEME_BLS12381;
  static final Scheme BIP340 = Scheme.SCHEME_BIP340_SECP256K1;
  static final ByteString OTHER_POINT =
      ByteString.fromHex("02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5");
  static final UnknownFieldSet UNKNOWN =
      UnknownFieldSet.newBuilder()
          .addField(99, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
          .build();

  record Lie(String told, AttestationProblem problem, Key key) {
    @Override
    public String toString() {
      return told;
    }
  }

  /** The honest answer that most lies are made from: a creation, then a reshare. */
  static Key honest() {
    TestSession creation = creation(BIP340);
    return answer(BIP340, creation, reshare(creation, 2, 2, 3, 4));
  }

  static Lie answered(String told, AttestationProblem problem, Consumer<Key.Builder> change) {
    Key.Builder key = honest().toBuilder();
    change.accept(key);
    return new Lie(told, problem, key.build());
  }

  static Lie field(String name, Consumer<Key.Builder> change) {
    return answered("field " + name, FIELD_OTHER, change);
  }

  /** Changes the n-th session after its parties have signed it. */
  static Lie completed(
      String told, AttestationProblem problem, int index, Consumer<Completion.Builder> change) {
    return answered(
        told,
        problem,
        key -> change.accept(key.getAttestationBuilder().getCompletionsBuilder(index)));
  }

  /** All parties sign a creation that is not right. */
  static Lie created(String told, AttestationProblem problem, Consumer<TestSession> change) {
    return new Lie(told, problem, answer(BIP340, creation(BIP340).with(change)));
  }

  /** All parties sign a reshare, to 2, 3 and 4, that is not right. */
  static Lie reshared(String told, AttestationProblem problem, Consumer<TestSession> change) {
    TestSession creation = creation(BIP340);
    return new Lie(
        told, problem, answer(BIP340, creation, reshare(creation, 2, 2, 3, 4).with(change)));
  }

  static Lie refreshed(String told, AttestationProblem problem, Consumer<TestSession> change) {
    TestSession creation = creation(BIP340);
    return new Lie(told, problem, answer(BIP340, creation, refresh(creation).with(change)));
  }

  private AttestationLies() {}

  static List<Lie> answers() {
    return List.of(
        answered("another name", NAME_OTHER, key -> key.setName("keys/hot-2")),
        answered("being created", NOT_ACTIVE, key -> key.setState(Key.State.CREATING)),
        answered("failed", NOT_ACTIVE, key -> key.setState(Key.State.FAILED)),
        answered("no state", NOT_ACTIVE, Key.Builder::clearState),
        answered("a state of the future", NOT_ACTIVE, key -> key.setStateValue(9)),
        answered("no attestation", NO_COMPLETION, Key.Builder::clearAttestation),
        answered(
            "an empty attestation",
            NO_COMPLETION,
            key -> key.setAttestation(Attestation.getDefaultInstance())),
        answered(
            "too many sessions",
            TOO_LONG,
            key ->
                key.getAttestationBuilder()
                    .addAllCompletions(
                        Collections.nCopies(
                            AttestedKey.MAX_COMPLETIONS, key.getAttestation().getCompletions(1)))),
        answered("an unknown field", UNKNOWN_FIELD, key -> key.setUnknownFields(UNKNOWN)),
        answered(
            "an unknown field of the attestation",
            UNKNOWN_FIELD,
            key -> key.getAttestationBuilder().setUnknownFields(UNKNOWN)),
        completed(
            "an unknown field of a session",
            UNKNOWN_FIELD,
            1,
            session -> session.setUnknownFields(UNKNOWN)),
        completed(
            "an unknown field of a signature",
            UNKNOWN_FIELD,
            0,
            session -> session.getSignaturesBuilder(1).setUnknownFields(UNKNOWN)),
        field("scheme", key -> key.setScheme(BLS)),
        field("threshold", key -> key.setThreshold(1)),
        field("parties, one less", key -> key.clearParties().addParties("p2").addParties("p3")),
        field("parties, one more", key -> key.addParties("p9")),
        field("parties, another one", key -> key.setParties(0, "p1")),
        field("parties, in another order", key -> key.setParties(0, "p3").setParties(1, "p2")),
        field("public_key", key -> key.setPublicKey(OTHER_POINT.substring(1))),
        field("public_key, none", Key.Builder::clearPublicKey),
        field("proof_of_possession", key -> key.setProofOfPossession(OTHER_POINT)),
        field("epoch", key -> key.setEpoch(3)),
        field("epoch, the one before", key -> key.setEpoch(1)),
        field("xpub", key -> key.setXpub(answer(BIP340, otherKey()).getXpub())),
        field("xpub, none", Key.Builder::clearXpub),
        field("request_id", key -> key.setRequestId("01a3185c-5000-7000-8000-000000000009")),
        field(
            "fingerprint", key -> key.setFingerprint(answer(BIP340, otherKey()).getFingerprint())),
        field("fingerprint, none", Key.Builder::clearFingerprint),
        field("error", key -> key.getErrorBuilder().setMessage("none")));
  }

  static TestSession otherKey() {
    return creation(BIP340).with(s -> s.keyPublic.setPublicKey(OTHER_POINT));
  }

  private static SignedIntent by(
      String requester, java.security.KeyPair key, io.coterie.proto.custody.v1.KeyIntent intent) {
    return new IntentSigner(requester, key.getPrivate()).sign(intent);
  }

  static List<Lie> intents() {
    var asked = keyIntent(BIP340, 2, 1, 2, 3).build();
    return List.of(
        completed(
            "an intent of a stranger in a requester's name",
            INTENT_SIGNATURE,
            0,
            s -> s.setSignedIntent(by("wallet", TestSession.STRANGER, asked))),
        completed(
            "an intent of another requester in a requester's name",
            INTENT_SIGNATURE,
            0,
            s -> s.setSignedIntent(by("wallet", TestSession.KEEPER, asked))),
        completed(
            "an intent of a stranger",
            REQUESTER_UNKNOWN,
            0,
            s -> s.setSignedIntent(by("stranger", TestSession.STRANGER, asked))),
        completed("no intent", REQUESTER_UNKNOWN, 0, Completion.Builder::clearSignedIntent),
        completed(
            "an intent without its signature",
            REQUESTER_UNKNOWN,
            0,
            s -> s.getSignedIntentBuilder().clearSignatures()),
        completed(
            "an intent that was changed",
            INTENT_SIGNATURE,
            0,
            s ->
                s.getSignedIntentBuilder()
                    .setPayload(asked.toBuilder().setThreshold(1).build().toByteString())),
        completed(
            "an unknown field of the envelope",
            UNKNOWN_FIELD,
            0,
            s -> s.getSignedIntentBuilder().setUnknownFields(UNKNOWN)),
        created(
            "an intent that is not well-formed",
            INTENT_INVALID,
            s -> s.intent = wallet().sign(asked.toBuilder().setUnknownFields(UNKNOWN).build())),
        created(
            "an intent that is larger than any for a key",
            TOO_LONG,
            s -> s.intent = wallet().sign(asked.toBuilder().setPurpose("x".repeat(9_000)).build())),
        created(
            "a requester that may not ask for this key",
            REQUESTER_NOT_ALLOWED,
            s -> s.intent = by("keeper", TestSession.KEEPER, asked)),
        reshared(
            "a reshare for a requester that may not ask for this key",
            REQUESTER_NOT_ALLOWED,
            s ->
                s.intent =
                    new IntentSigner("keeper", TestSession.KEEPER.getPrivate())
                        .sign(reshareIntent(creation(BIP340), 2, 2, 3, 4).build())),
        created(
            "a creation for a requester that may only renew",
            REQUESTER_WITHOUT_RIGHT,
            s -> s.intent = by("renewer", TestSession.RENEWER, asked)),
        created(
            "the intent of another key",
            INTENT_KEY_OTHER,
            s -> s.intent = wallet().sign(asked.toBuilder().setKey("keys/hot-2-1").build())),
        created(
            "an intent for another installation",
            INTENT_INSTALLATION_OTHER,
            s -> s.intent = wallet().sign(asked.toBuilder().setInstallation("staging").build())),
        refreshed(
            "a refresh of another key of the same name",
            INTENT_PUBLIC_KEY_OTHER,
            s ->
                s.intent =
                    wallet()
                        .sign(
                            refreshIntent(creation(BIP340))
                                .setKeyFingerprint(ByteString.copyFrom(new byte[16]))
                                .build())),
        created(
            "an intent to sign",
            INTENT_KIND,
            s ->
                s.intent =
                    wallet()
                        .sign(
                            SigningIntent.newBuilder()
                                .setRequestId(asked.getRequestId())
                                .setKey(KEY)
                                .setScheme(BIP340)
                                .setDigest(ByteString.copyFrom(new byte[32]))
                                .setInstallation(asked.getInstallation())
                                .setKeyFingerprint(ByteString.copyFrom(new byte[16]))
                                .setNotAfter(TestSession.END)
                                .build())),
        created(
            "a refresh as the beginning",
            INTENT_KIND,
            s -> s.intent = wallet().sign(refreshIntent(creation(BIP340)).build())),
        refreshed("a second creation", INTENT_KIND, s -> s.intent = creation(BIP340).intent),
        created(
            "a threshold below the floor",
            THRESHOLD_FLOOR,
            s -> {
              s.intent = wallet().sign(asked.toBuilder().setThreshold(1).build());
              s.keyPublic.setThreshold(1);
            }),
        new Lie(
            "fewer parties than the floor",
            PARTIES_FLOOR,
            answer(BIP340, creation(BIP340, 2, 1, 2))),
        new Lie(
            "a reshare below the floor of the threshold",
            THRESHOLD_FLOOR,
            reshareOfNew(1, 2, 3, 4)),
        new Lie("a reshare below the floor of the parties", PARTIES_FLOOR, reshareOfNew(2, 3, 4)),
        reshared(
            "a reshare of another key",
            INTENT_PUBLIC_KEY_OTHER,
            s ->
                s.intent =
                    wallet()
                        .sign(
                            reshareIntent(creation(BIP340), 2, 2, 3, 4)
                                .setPublicKey(OTHER_POINT)
                                .build())),
        refreshed(
            "a refresh in another scheme",
            SCHEME_CHANGED,
            s ->
                s.intent =
                    wallet()
                        .sign(
                            refreshIntent(creation(BIP340))
                                .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                                .build())));
  }

  private static Key reshareOfNew(int threshold, Integer... parties) {
    TestSession creation = creation(BIP340);
    return answer(BIP340, creation, reshare(creation, threshold, parties));
  }
}
