package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationLies.BIP340;
import static io.coterie.platform.attestation.AttestationLies.OTHER_POINT;
import static io.coterie.platform.attestation.AttestationLies.UNKNOWN;
import static io.coterie.platform.attestation.AttestationLies.completed;
import static io.coterie.platform.attestation.AttestationLies.created;
import static io.coterie.platform.attestation.AttestationLies.otherKey;
import static io.coterie.platform.attestation.AttestationLies.refreshed;
import static io.coterie.platform.attestation.AttestationLies.reshared;
import static io.coterie.platform.attestation.AttestationProblem.*;
import static io.coterie.platform.attestation.TestSession.answer;
import static io.coterie.platform.attestation.TestSession.creation;
import static io.coterie.platform.attestation.TestSession.keyIntent;
import static io.coterie.platform.attestation.TestSession.refresh;
import static io.coterie.platform.attestation.TestSession.reshare;
import static io.coterie.platform.attestation.TestSession.wallet;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.AttestationLies.Lie;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.Key;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;

/** Lies about the ends of sessions, most of them told by all parties of the session together. */
final class PartyLies {
  private PartyLies() {}

  static List<Lie> statements() {
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
                    "a signature of a party that leaves",
                    SIGNATURE_STRANGER,
                    s -> s.signers = List.of(1, 2, 3, 4)),
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
  static List<Lie> publicData() {
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
            "a new key that one of its parties has stored and does not use",
            USE_MISSING,
            s -> s.users = Set.of(1, 3)),
        reshared(
            "new shares that fewer than the threshold use", USE_MISSING, s -> s.users = Set.of(3)),
        completed(
            "a stored share that is called a used one",
            SIGNATURE_INVALID,
            1,
            s -> s.getSignaturesBuilder(2).setUsed(false)),
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

  static List<Lie> chains() {
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
            INTENT_PUBLIC_KEY_OTHER,
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
}
