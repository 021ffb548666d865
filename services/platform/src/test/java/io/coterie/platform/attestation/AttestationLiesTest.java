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
import static io.coterie.platform.attestation.TestSession.trust;
import static io.coterie.platform.attestation.TestSession.wallet;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every lie about a key that a coordinator could tell, alone or with parties. */
class AttestationLiesTest {
  private static final Scheme BLS = Scheme.SCHEME_BLS12381;
  private static final Scheme BIP340 = Scheme.SCHEME_BIP340_SECP256K1;
  private static final ByteString OTHER_POINT =
      ByteString.fromHex("02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5");
  private static final UnknownFieldSet UNKNOWN =
      UnknownFieldSet.newBuilder()
          .addField(99, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
          .build();

  private record Lie(String told, AttestationProblem problem, Key key) {
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

  private static Lie answered(
      String told, AttestationProblem problem, Consumer<Key.Builder> change) {
    Key.Builder key = honest().toBuilder();
    change.accept(key);
    return new Lie(told, problem, key.build());
  }

  private static Lie field(String name, Consumer<Key.Builder> change) {
    return answered("field " + name, FIELD_OTHER, change);
  }

  /** Changes the n-th session after its parties have signed it. */
  private static Lie completed(
      String told, AttestationProblem problem, int index, Consumer<Completion.Builder> change) {
    return answered(
        told,
        problem,
        key -> change.accept(key.getAttestationBuilder().getCompletionsBuilder(index)));
  }

  /** All parties sign a creation that is not right. */
  private static Lie created(
      String told, AttestationProblem problem, Consumer<TestSession> change) {
    return new Lie(told, problem, answer(BIP340, creation(BIP340).with(change)));
  }

  /** All parties sign a reshare, to 2, 3 and 4, that is not right. */
  private static Lie reshared(
      String told, AttestationProblem problem, Consumer<TestSession> change) {
    TestSession creation = creation(BIP340);
    return new Lie(
        told, problem, answer(BIP340, creation, reshare(creation, 2, 2, 3, 4).with(change)));
  }

  private static Lie refreshed(
      String told, AttestationProblem problem, Consumer<TestSession> change) {
    TestSession creation = creation(BIP340);
    return new Lie(told, problem, answer(BIP340, creation, refresh(creation).with(change)));
  }

  static List<Lie> lies() {
    return Stream.of(answers(), intents(), statements(), publicData(), chains())
        .flatMap(List::stream)
        .toList();
  }

  private static List<Lie> answers() {
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
        field("error", key -> key.getErrorBuilder().setMessage("none")));
  }

  private static TestSession otherKey() {
    return creation(BIP340).with(s -> s.keyPublic.setPublicKey(OTHER_POINT));
  }

  private static SignedIntent by(
      String requester, java.security.KeyPair key, io.coterie.proto.custody.v1.KeyIntent intent) {
    return new IntentSigner(requester, key.getPrivate()).sign(intent);
  }

  private static List<Lie> intents() {
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
            "the intent of another key",
            INTENT_KEY_OTHER,
            s -> s.intent = wallet().sign(asked.toBuilder().setKey("keys/hot-2-1").build())),
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
            RESHARE_KEY_OTHER,
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

  private static List<Lie> statements() {
    List<Lie> lies =
        new ArrayList<>(
            List.of(
                created("another installation", SIGNATURE_INVALID, s -> s.installation = "other"),
                created("another key signed", SIGNATURE_INVALID, s -> s.key = "keys/hot-2-1"),
                created("another epoch signed", SIGNATURE_INVALID, s -> s.epoch = 2),
                completed(
                    "another session",
                    SIGNATURE_INVALID,
                    0,
                    s -> s.setSessionId(ByteString.copyFrom(new byte[32]))),
                completed(
                    "a short session id",
                    SESSION_ID,
                    0,
                    s -> s.setSessionId(s.getSessionId().substring(1))),
                completed("no session id", SESSION_ID, 1, Completion.Builder::clearSessionId),
                completed(
                    "other public data than were signed",
                    SIGNATURE_INVALID,
                    0,
                    s -> s.setKeyPublic(otherKey().completion().getKeyPublic())),
                completed(
                    "an intent for the same with another purpose",
                    SIGNATURE_INVALID,
                    0,
                    s ->
                        s.setSignedIntent(
                            wallet()
                                .sign(keyIntent(BIP340, 2, 1, 2, 3).setPurpose("other").build()))),
                completed(
                    "no signatures", SIGNATURE_MISSING, 0, Completion.Builder::clearSignatures),
                completed(
                    "a signature cut short",
                    SIGNATURE_INVALID,
                    0,
                    s ->
                        s.getSignaturesBuilder(0)
                            .setSignature(s.getSignatures(0).getSignature().substring(1))),
                completed(
                    "a signature of nobody",
                    SIGNATURE_ORDER,
                    0,
                    s -> s.getSignaturesBuilder(0).setParty(0)),
                completed(
                    "a party beyond the numbers",
                    SIGNATURE_ORDER,
                    0,
                    s -> s.getSignaturesBuilder(0).setParty(-1)),
                completed(
                    "two signatures swapped",
                    SIGNATURE_INVALID,
                    0,
                    s -> {
                      ByteString first = s.getSignatures(0).getSignature();
                      s.getSignaturesBuilder(0).setSignature(s.getSignatures(1).getSignature());
                      s.getSignaturesBuilder(1).setSignature(first);
                    }),
                completed(
                    "signatures in another order",
                    SIGNATURE_ORDER,
                    0,
                    s -> {
                      EvidenceSignature first = s.getSignatures(0);
                      s.removeSignatures(0).addSignatures(first);
                    }),
                completed(
                    "a signature twice",
                    SIGNATURE_ORDER,
                    0,
                    s -> s.addSignatures(s.getSignatures(2))),
                completed(
                    "one's signature in place of another's",
                    SIGNATURE_ORDER,
                    0,
                    s -> s.setSignatures(2, s.getSignatures(1))),
                completed(
                    "too many signatures",
                    TOO_LONG,
                    0,
                    s ->
                        s.addAllSignatures(
                            Collections.nCopies(
                                CompletedSession.MAX_SIGNATURES, s.getSignatures(0)))),
                created(
                    "a signature of a party that the trust file does not know",
                    SIGNATURE_STRANGER,
                    s -> {
                      s.evidence.put(70, TestSession.STRANGER);
                      s.signers = List.of(1, 2, 3, 70);
                    }),
                created(
                    "a signature of a party outside the session",
                    SIGNATURE_STRANGER,
                    s -> s.signers = List.of(1, 2, 3, 9)),
                reshared(
                    "a signature of a party that neither had nor has a share",
                    SIGNATURE_STRANGER,
                    s -> s.signers = List.of(1, 2, 3, 4, 9)),
                created(
                    "a stranger's key in place of a party's",
                    SIGNATURE_INVALID,
                    s -> s.evidence.put(2, TestSession.STRANGER)),
                reshared(
                    "a false signature of a party that joins",
                    SIGNATURE_INVALID,
                    s -> s.evidence.put(4, TestSession.STRANGER))));
    for (int i = 0; i < 3; i++) {
      int missing = i;
      lies.add(
          completed(
              "without the signature of p" + (i + 1),
              SIGNATURE_MISSING,
              0,
              s -> s.removeSignatures(missing)));
    }
    lies.add(
        reshared(
            "a reshare that only those have signed who leave or stay",
            SIGNATURE_MISSING,
            s -> s.signers = List.of(1, 2, 3)));
    return lies;
  }

  /** All parties of the session are corrupt, and sign public data that do not fit the intent. */
  private static List<Lie> publicData() {
    return List.of(
        created("another key id", KEY_ID_OTHER, s -> s.keyPublic.setKeyId("keys/hot-2-1")),
        created("an epoch beyond the first", EPOCH_OTHER, s -> s.keyPublic.setEpoch(2)),
        reshared("an epoch beyond the next", EPOCH_OTHER, s -> s.keyPublic.setEpoch(3)),
        refreshed("the epoch before", EPOCH_OTHER, s -> s.keyPublic.setEpoch(1)),
        created("a lower threshold", THRESHOLD_OTHER, s -> s.keyPublic.setThreshold(1)),
        refreshed("a refresh's threshold", THRESHOLD_OTHER, s -> s.keyPublic.setThreshold(1)),
        reshared("a reshare's threshold", THRESHOLD_OTHER, s -> s.keyPublic.setThreshold(3)),
        created("a share less", PARTIES_OTHER, s -> s.keyPublic.removeVerificationShares(2)),
        created("a share more", PARTIES_OTHER, s -> s.keyPublic.addVerificationShares(share(9))),
        created(
            "another party's share",
            PARTIES_OTHER,
            s -> s.keyPublic.setVerificationShares(2, share(9))),
        created(
            "a share twice",
            PARTIES_OTHER,
            s -> s.keyPublic.setVerificationShares(2, s.keyPublic.getVerificationShares(1))),
        created(
            "a party without a name",
            PARTIES_OTHER,
            s -> s.intent = wallet().sign(keyIntent(BIP340, 2, 1, 2, 70).build())),
        refreshed(
            "a refresh's parties",
            PARTIES_OTHER,
            s -> s.keyPublic.setVerificationShares(2, share(9))),
        reshared(
            "a reshare's parties",
            PARTIES_OTHER,
            s -> s.keyPublic.setVerificationShares(2, share(1))),
        refreshed(
            "another public key", PUBLIC_KEY_CHANGED, s -> s.keyPublic.setPublicKey(OTHER_POINT)),
        reshared(
            "another chain code",
            PUBLIC_KEY_CHANGED,
            s -> s.keyPublic.setChainCode(OTHER_POINT.substring(1))),
        created(
            "a key that is no point",
            KEY_PUBLIC_MALFORMED,
            s -> s.keyPublic.setPublicKey(ByteString.copyFrom(new byte[33]))),
        created(
            "a key of another scheme",
            KEY_PUBLIC_MALFORMED,
            s -> s.keyPublic.setPublicKey(OTHER_POINT.substring(1))),
        created("no chain code", KEY_PUBLIC_MALFORMED, s -> s.keyPublic.clearChainCode()),
        created(
            "a proof of possession",
            KEY_PUBLIC_MALFORMED,
            s -> s.keyPublic.setProofOfPossession(ByteString.copyFrom(new byte[96]))),
        created(
            "a share of another scheme",
            KEY_PUBLIC_MALFORMED,
            s -> s.keyPublic.getVerificationSharesBuilder(0).clearPoint()),
        created("an unknown field", UNKNOWN_FIELD, s -> s.keyPublic.setUnknownFields(UNKNOWN)),
        created(
            "an unknown field of a share",
            UNKNOWN_FIELD,
            s -> s.keyPublic.getVerificationSharesBuilder(0).setUnknownFields(UNKNOWN)),
        created(
            "more than a key has",
            TOO_LONG,
            s -> s.keyPublic.setProofOfPossession(ByteString.copyFrom(new byte[5_000]))),
        completed(
            "bytes that are no public data",
            KEY_PUBLIC_MALFORMED,
            0,
            s -> s.clearSignatures().setKeyPublic(ByteString.fromHex("0aff"))));
  }

  private static VerificationShare share(int party) {
    return VerificationShare.newBuilder().setParty(party).setPoint(OTHER_POINT).build();
  }

  private static List<Lie> chains() {
    TestSession creation = creation(BIP340);
    TestSession refreshed = refresh(creation);
    TestSession reshared = reshare(refreshed, 2, 4, 5, 6);
    TestSession again = refresh(reshared);
    return List.of(
        new Lie("the creation left out", INTENT_KIND, answer(BIP340, refreshed)),
        new Lie("a reshare to others hidden", PARTIES_OTHER, answer(BIP340, creation, again)),
        new Lie(
            "a reshare to another threshold hidden",
            THRESHOLD_OTHER,
            answer(BIP340, creation, refresh(reshare(creation, 3, 1, 2, 3)))),
        new Lie(
            "sessions in another order",
            EPOCH_ORDER,
            answer(BIP340, creation, reshared, refreshed)),
        new Lie("a refresh twice", EPOCH_ORDER, answer(BIP340, creation, refreshed, refreshed)),
        new Lie(
            "two that replaced the same epoch",
            EPOCH_ORDER,
            answer(BIP340, creation, refreshed, reshare(creation, 2, 1, 2, 4))),
        new Lie(
            "the renewal of another key",
            PUBLIC_KEY_CHANGED,
            answer(BIP340, creation, refresh(otherKey()))),
        new Lie("another key's whole attestation", INTENT_KEY_OTHER, anotherKeys()),
        new Lie(
            "the last session left out, the answer not",
            FIELD_OTHER,
            answer(BIP340, creation, refreshed, reshared).toBuilder()
                .setAttestation(answer(BIP340, creation, refreshed).getAttestation())
                .build()));
  }

  /** Everything about {@code keys/other-1} is true, but its name. */
  private static Key anotherKeys() {
    return answer(
        BIP340,
        creation(BIP340)
            .with(
                s -> {
                  s.key = "keys/other-1";
                  s.keyPublic.setKeyId("keys/other-1");
                  s.intent =
                      wallet().sign(keyIntent(BIP340, 2, 1, 2, 3).setKey("keys/other-1").build());
                }));
  }

  @ParameterizedTest
  @MethodSource("lies")
  void a_lie_is_refused_for_what_it_is(Lie lie) throws Exception {
    assertThat(AttestedKey.of(KEY, honest(), trust()).epoch()).isEqualTo(2);
    assertThatThrownBy(() -> AttestedKey.of(KEY, lie.key(), trust()))
        .isInstanceOfSatisfying(
            AttestationException.class,
            e -> {
              assertThat(e.problem()).as(e.getMessage()).isEqualTo(lie.problem());
              assertThat(e.getMessage()).hasLineCount(1).endsWith(".").doesNotContain("%");
            });
  }

  @Test
  void every_problem_has_a_lie_that_shows_it() {
    Set<AttestationProblem> shown =
        lies().stream()
            .map(Lie::problem)
            .collect(Collectors.toCollection(() -> EnumSet.noneOf(AttestationProblem.class)));
    // The name is the caller's, and ambiguity is a fault of the trust file: see AttestedKeyTest.
    shown.addAll(Set.of(NAME_MALFORMED, PARTIES_AMBIGUOUS));
    assertThat(shown).containsExactlyInAnyOrder(AttestationProblem.values());
  }

  @Test
  void a_name_that_is_none_is_not_asked_about() {
    for (String name : List.of("", "hot-1", "keys/", "keys/A", "keys/a\nb", "keys/a/b")) {
      assertThatThrownBy(
              () -> AttestedKey.of(name, honest().toBuilder().setName(name).build(), trust()))
          .isInstanceOfSatisfying(
              AttestationException.class, e -> assertThat(e.problem()).isEqualTo(NAME_MALFORMED));
    }
  }
}
