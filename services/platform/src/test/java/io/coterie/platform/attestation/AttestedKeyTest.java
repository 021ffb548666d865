package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.TestSession.KEY;
import static io.coterie.platform.attestation.TestSession.PARTIES;
import static io.coterie.platform.attestation.TestSession.WALLET_BEFORE;
import static io.coterie.platform.attestation.TestSession.answer;
import static io.coterie.platform.attestation.TestSession.creation;
import static io.coterie.platform.attestation.TestSession.party;
import static io.coterie.platform.attestation.TestSession.raw;
import static io.coterie.platform.attestation.TestSession.refresh;
import static io.coterie.platform.attestation.TestSession.reshare;
import static io.coterie.platform.attestation.TestSession.trust;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.trust.FormerParty;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Member;
import io.coterie.trust.Trust;
import java.security.KeyPair;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Answers that a client believes; {@link AttestationLiesTest} has those that it does not. */
class AttestedKeyTest {
  private static final Scheme BIP340 = Scheme.SCHEME_BIP340_SECP256K1;
  private static final Scheme BLS = Scheme.SCHEME_BLS12381;

  private static AttestedKey believed(Key key) throws AttestationException {
    return AttestedKey.of(KEY, key, trust());
  }

  @ParameterizedTest
  @EnumSource(
      names = {"SCHEME_UNSPECIFIED", "SCHEME_ED25519_EXACT", "UNRECOGNIZED"},
      mode = EnumSource.Mode.EXCLUDE)
  void a_new_key_of_every_scheme_is_believed(Scheme scheme) throws Exception {
    TestSession creation = creation(scheme);
    Key key = answer(scheme, creation);
    AttestedKey attested = believed(key);
    assertThat(attested.name()).isEqualTo(KEY);
    assertThat(attested.scheme()).isEqualTo(scheme);
    assertThat(attested.threshold()).isEqualTo(2);
    assertThat(attested.parties()).containsExactly("p1", "p2", "p3");
    assertThat(attested.epoch()).isEqualTo(1);
    assertThat(attested.keyPublic()).isEqualTo(creation.keyPublic.build());
    assertThat(attested.publicKey()).isEqualTo(key.getPublicKey());
    assertThat(attested.xpub().orElse("")).isEqualTo(key.getXpub());
    assertThat(attested.proofOfPossession()).isEqualTo(key.getProofOfPossession());
    assertThat(attested.creation()).isEqualTo(IntentVerifier.digest(creation.intent.getPayload()));
  }

  @Test
  void an_imported_key_is_believed_and_said_to_be_one() throws Exception {
    ByteString publicKey = ByteString.copyFrom(new byte[32]);
    TestSession imported =
        TestSession.imported(TestSession.importIntent(publicKey, 1, 2, 3), 1, 2, 3);
    Key key = answer(Scheme.SCHEME_ED25519_EXACT, imported);
    assertThat(believed(key).origin()).isEqualTo(Key.Origin.IMPORTED);
    assertProblem(
        AttestationProblem.FIELD_OTHER,
        key.toBuilder().setOrigin(Key.Origin.GENERATED).build(),
        trust());
    assertProblem(
        AttestationProblem.REQUESTER_WITHOUT_RIGHT,
        key,
        trust(EnumSet.complementOf(EnumSet.of(KeyRight.IMPORT))));
  }

  /** Parties that hold another key than the owner's, or one that they have made up themselves. */
  @Test
  void an_import_of_another_key_and_a_generated_one_of_that_scheme_are_not_believed() {
    ByteString other =
        ByteString.copyFrom(new byte[32]).substring(1).concat(ByteString.fromHex("01"));
    TestSession foreign = TestSession.imported(TestSession.importIntent(other, 1, 2, 3), 1, 2, 3);
    assertProblem(
        AttestationProblem.INTENT_PUBLIC_KEY_OTHER,
        answer(Scheme.SCHEME_ED25519_EXACT, foreign),
        trust());
    TestSession generated = creation(Scheme.SCHEME_ED25519_EXACT);
    assertProblem(
        AttestationProblem.INTENT_KIND, answer(Scheme.SCHEME_ED25519_EXACT, generated), trust());
  }

  /** A thief of the key of a wallet that only creates keys cannot have a reshare believed. */
  @ParameterizedTest
  @EnumSource(names = {"CREATE", "REFRESH", "RESHARE"})
  void a_change_of_keys_needs_the_right_to_it(KeyRight right) throws Exception {
    TestSession creation = creation(BIP340);
    Key created = answer(BIP340, creation);
    Key refreshed = answer(BIP340, creation, refresh(creation));
    Key reshared = answer(BIP340, creation, reshare(creation, 2, 2, 3, 4));
    Key changed =
        switch (right) {
          case CREATE -> created;
          case REFRESH -> refreshed;
          case RESHARE -> reshared;
          case IMPORT, OPEN -> throw new AssertionError("it changes no key");
        };
    Set<KeyRight> others = EnumSet.complementOf(EnumSet.of(right));
    assertProblem(AttestationProblem.REQUESTER_WITHOUT_RIGHT, changed, trust(others));
    Trust sufficient = trust(EnumSet.of(KeyRight.CREATE, right));
    assertThat(AttestedKey.of(KEY, changed, sufficient)).isEqualTo(believed(changed));
  }

  /** Of a requester that asks for less, a thief could have the key. */
  @Test
  void a_reshare_keeps_to_the_highest_floors_of_the_name() throws Exception {
    TestSession creation = creation(BIP340);
    Key created = answer(BIP340, creation);
    Key reshared = answer(BIP340, creation, reshare(creation, 2, 2, 3, 4));
    for (KeyRight right : List.of(KeyRight.CREATE, KeyRight.RESHARE)) {
      Trust threshold = trustWith("keys/hot-*", Set.of(right), 3, 3);
      assertProblem(AttestationProblem.THRESHOLD_FLOOR, reshared, threshold);
      assertProblem(
          AttestationProblem.PARTIES_FLOOR, reshared, trustWith("keys/hot-*", Set.of(right), 2, 4));
      // A new key is of the requester that asked: its owners may begin with few parties.
      assertThat(AttestedKey.of(KEY, created, threshold)).isEqualTo(believed(created));
    }
    for (Trust others :
        List.of(
            trustWith("keys/cold-*", Set.of(KeyRight.values()), 5, 5),
            trustWith("keys/*", Set.of(KeyRight.REFRESH), 5, 5),
            trustWith("keys/*", Set.of(), 5, 5))) {
      assertThat(AttestedKey.of(KEY, reshared, others)).isEqualTo(believed(reshared));
    }
  }

  /** The owners have raised their floors, and then the key. */
  @Test
  void a_key_that_was_reshared_to_the_floors_is_believed_whatever_it_was_before() throws Exception {
    TestSession creation = creation(BIP340);
    TestSession low = reshare(creation, 2, 2, 3, 4);
    TestSession high = reshare(low, 3, 1, 2, 3, 4, 5);
    Trust floors = trustWith("keys/*", Set.of(KeyRight.RESHARE), 3, 5);
    assertProblem(AttestationProblem.THRESHOLD_FLOOR, answer(BIP340, creation, low), floors);
    TestSession refreshed = refresh(low);
    assertProblem(
        AttestationProblem.THRESHOLD_FLOOR, answer(BIP340, creation, low, refreshed), floors);
    Key raised = answer(BIP340, creation, low, high, refresh(high));
    assertThat(AttestedKey.of(KEY, raised, floors))
        .usingRecursiveComparison()
        .ignoringFields("intents")
        .isEqualTo(believed(raised));
    Key lowered = answer(BIP340, creation, high, reshare(high, 2, 2, 3, 4));
    assertProblem(AttestationProblem.THRESHOLD_FLOOR, lowered, floors);
  }

  /** Its first parties know the secret if they are too few, whoever has shares of it since. */
  @Test
  void no_reshare_takes_a_key_above_the_floors_of_its_creator() throws Exception {
    TestSession creation = creation(BIP340);
    TestSession first = refresh(creation);
    TestSession high = reshare(first, 3, 1, 2, 3, 4, 5);
    TestSession last = refresh(high);
    Trust floors = trustOfWallet(3, 5);
    assertProblem(AttestationProblem.THRESHOLD_FLOOR, answer(BIP340, creation), floors);
    assertProblem(AttestationProblem.THRESHOLD_FLOOR, answer(BIP340, creation, first), floors);
    assertProblem(
        AttestationProblem.PARTIES_FLOOR, answer(BIP340, creation, first), trustOfWallet(2, 4));
    Key raised = answer(BIP340, creation, first, high, last);
    assertThat(believed(raised).intents()).isEqualTo(digests(creation, first, high, last));
    assertProblem(AttestationProblem.THRESHOLD_FLOOR, raised, floors);
    // A thief of its creator's key makes it with parties of his, and reshares it to honest ones.
    TestSession stolen = creation(BIP340, 2, 1, 2);
    Key hidden = answer(BIP340, stolen, reshare(stolen, 3, 1, 2, 3, 4, 5));
    assertProblem(AttestationProblem.THRESHOLD_FLOOR, hidden, floors);
  }

  /** A thief of a requester's key and as many corrupt parties have any session attested. */
  @Test
  void an_intent_of_which_too_few_parties_say_so_does_not_count() throws Exception {
    TestSession creation = creation(BIP340);
    TestSession first = refresh(creation);
    TestSession low = reshare(first, 2, 2, 3, 4);
    TestSession within = refresh(low);
    TestSession high = reshare(within, 3, 1, 2, 3, 4, 5);
    TestSession last = refresh(high);
    Key key = answer(BIP340, creation, first, low, within, high, last);
    assertThat(believed(key).intents())
        .isEqualTo(digests(creation, first, low, within, high, last));
    Trust floors = trustWith("keys/*", Set.of(KeyRight.RESHARE), 3, 5);
    AttestedKey attested = AttestedKey.of(KEY, key, floors);
    assertThat(attested.intents()).isEqualTo(digests(creation, first, high, last));
    assertThat(attested.creation()).isEqualTo(believed(key).creation());
    assertThat(attested.holdings()).as("others still stand").isEqualTo(believed(key).holdings());
  }

  private static List<ByteString> digests(TestSession... sessions) {
    return Arrays.stream(sessions)
        .map(session -> IntentVerifier.digest(session.intent.getPayload()))
        .toList();
  }

  /** The wallet, which makes the keys here, has these floors now. */
  static Trust trustOfWallet(int threshold, int parties) {
    Trust before = trust();
    List<Trust.Requester> requesters = new ArrayList<>(before.requesters());
    requesters.replaceAll(
        each ->
            each.name().equals("wallet")
                ? new Trust.Requester(
                    each.name(), each.publicKeys(), each.keys(), each.rights(), threshold, parties)
                : each);
    return new Trust(before.roster(), requesters, before.corrupt());
  }

  static Trust trustWith(String keys, Set<KeyRight> rights, int threshold, int parties) {
    Trust before = trust();
    List<Trust.Requester> requesters = new ArrayList<>(before.requesters());
    requesters.add(
        new Trust.Requester(
            "another",
            List.of(TestSession.STRANGER.getPublic().getEncoded()),
            List.of(new Glob(keys)),
            rights,
            threshold,
            parties));
    return new Trust(before.roster(), requesters, before.corrupt());
  }

  @Test
  void children_and_output_keys_come_from_the_attested_key() throws Exception {
    AttestedKey attested = believed(answer(BIP340, creation(BIP340)));
    KeyTarget child = KeyTarget.at(List.of(0, 7));
    KeyTarget output = new KeyTarget(List.of(0, 7), Optional.of(ByteString.EMPTY));
    assertThat(attested.verifyingKey(child))
        .hasSize(32)
        .isNotEqualTo(attested.publicKey())
        .isNotEqualTo(attested.verifyingKey(output));
  }

  @Test
  void new_shares_leave_the_key_and_move_threshold_parties_and_epoch() throws Exception {
    TestSession creation = creation(BIP340);
    TestSession refreshed = refresh(creation);
    TestSession reshared = reshare(refreshed, 3, 2, 4, 5, 6);
    TestSession again = reshare(reshared, 2, 7, 8, 9);

    AttestedKey first = believed(answer(BIP340, creation));
    AttestedKey second = believed(answer(BIP340, creation, refreshed));
    assertThat(second.epoch()).isEqualTo(2);
    assertThat(second.parties()).isEqualTo(first.parties());
    AttestedKey third = believed(answer(BIP340, creation, refreshed, reshared));
    assertThat(third.parties()).containsExactly("p2", "p4", "p5", "p6");
    assertThat(third.threshold()).isEqualTo(3);
    AttestedKey fourth = believed(answer(BIP340, creation, refreshed, reshared, again));
    assertThat(fourth.parties()).containsExactly("p7", "p8", "p9");
    assertThat(fourth.epoch()).isEqualTo(4);
    assertThat(fourth.intents()).hasSize(4).startsWith(first.creation());
    for (AttestedKey later : List.of(second, third, fourth)) {
      assertThat(later.xpub()).isEqualTo(first.xpub());
      assertThat(later.publicKey()).isEqualTo(first.publicKey());
      assertThat(later.fingerprint()).isEqualTo(first.fingerprint());
    }
  }

  @Test
  void refreshes_that_something_follows_may_be_left_out() throws Exception {
    TestSession creation = creation(BLS);
    TestSession fifth = refresh(creation, 5);
    assertThat(believed(answer(BLS, creation, fifth)).epoch()).isEqualTo(6);
    TestSession reshared = reshare(fifth, 2, 1, 2, 4);
    AttestedKey attested = believed(answer(BLS, creation, reshared));
    assertThat(attested.epoch()).isEqualTo(7);
    assertThat(attested.parties()).containsExactly("p1", "p2", "p4");
  }

  /** The later one names all parties and the threshold. */
  @Test
  void a_reshare_that_another_follows_may_be_left_out() throws Exception {
    TestSession creation = creation(BIP340);
    TestSession reshared = reshare(creation, 3, 2, 4, 5, 6);
    TestSession again = reshare(reshared, 2, 7, 8, 9);
    AttestedKey attested = believed(answer(BIP340, creation, again));
    assertThat(attested.parties()).containsExactly("p7", "p8", "p9");
    assertThat(attested.epoch()).isEqualTo(3);
  }

  @Test
  void parties_that_leave_have_no_say() throws Exception {
    TestSession creation = creation(BLS);
    TestSession reshared = reshare(creation, 2, 3, 4, 5);
    assertThat(believed(answer(BLS, creation, reshared)).parties())
        .containsExactly("p3", "p4", "p5");
    reshared.signers = List.of(2, 3, 4, 5);
    assertProblem(AttestationProblem.SIGNATURE_STRANGER, answer(BLS, creation, reshared), trust());
  }

  /** A limit that the threat model states: only the fingerprint tells them apart. */
  @Test
  void a_name_that_was_asked_for_twice_can_stand_for_two_keys() throws Exception {
    TestSession first = creation(BIP340);
    TestSession second =
        creation(BIP340, 2, 4, 5, 6)
            .with(
                s ->
                    s.keyPublic.setChainCode(
                        ByteString.copyFrom(new byte[31]).concat(ByteString.fromHex("01"))));
    AttestedKey one = believed(answer(BIP340, first));
    AttestedKey other = believed(answer(BIP340, second));
    assertThat(one.name()).isEqualTo(other.name());
    assertThat(one.fingerprint()).isNotEqualTo(other.fingerprint());
  }

  @Test
  void the_order_of_the_names_in_an_intent_does_not_matter() throws Exception {
    TestSession creation = creation(BLS, 2, 3, 1, 2);
    creation.keyPublic = TestSession.keyPublic(BLS, 1, 2, 1, 2, 3);
    creation.signers = List.of(1, 2, 3);
    assertThat(believed(answer(BLS, creation)).parties()).containsExactly("p1", "p2", "p3");
  }

  @Test
  void every_key_of_a_requester_counts() throws Exception {
    TestSession creation = creation(BLS);
    creation.intent =
        new IntentSigner("wallet", WALLET_BEFORE.getPrivate())
            .sign(TestSession.keyIntent(BLS, 2, 1, 2, 3).build());
    assertThat(believed(answer(BLS, creation, refresh(creation))).epoch()).isEqualTo(2);
  }

  private static Trust trustWith(List<FormerParty> former, Member... members) {
    return trust(List.of(members), former);
  }

  @Test
  void a_party_that_left_is_believed_about_its_time() throws Exception {
    TestSession creation = creation(BLS);
    TestSession reshared = reshare(creation, 2, 2, 3, 4);
    Member[] present = {
      party("p2", 2, PARTIES.get(2)), party("p3", 3, PARTIES.get(3)), party("p4", 4, PARTIES.get(4))
    };
    Key key = answer(BLS, creation, reshared);
    FormerParty gone = new FormerParty("p1", 1, raw(PARTIES.get(1)), 1);
    assertThat(AttestedKey.of(KEY, key, trustWith(List.of(gone), present)).parties())
        .containsExactly("p2", "p3", "p4");
    assertProblem(AttestationProblem.SIGNATURE_STRANGER, key, trustWith(List.of(), present));
  }

  @Test
  void a_party_with_a_new_evidence_key_is_believed_with_the_old_one_about_its_time()
      throws Exception {
    KeyPair replaced = TestSession.pair("Ed25519");
    TestSession creation = creation(BLS).with(s -> s.evidence.put(2, replaced));
    TestSession refreshed = refresh(creation);
    FormerParty before = new FormerParty("p2", 2, raw(replaced), 1);
    List<Member> members = new ArrayList<>();
    PARTIES.forEach((id, evidence) -> members.add(party("p" + id, id, evidence)));
    Trust both = trust(members, List.of(before));
    assertThat(AttestedKey.of(KEY, answer(BLS, creation, refreshed), both).epoch()).isEqualTo(2);
    refreshed.evidence.put(2, replaced);
    assertProblem(AttestationProblem.SIGNATURE_INVALID, answer(BLS, creation, refreshed), both);
  }

  @Test
  void a_name_that_stood_for_several_ids_stands_for_the_one_that_fits() throws Exception {
    List<Member> members = new ArrayList<>();
    PARTIES.forEach((id, evidence) -> members.add(party(id == 9 ? "p1" : "q" + id, id, evidence)));
    List<FormerParty> former = new ArrayList<>();
    for (int id : List.of(1, 2, 3)) {
      former.add(new FormerParty("p" + id, id, raw(PARTIES.get(id)), 5));
    }
    assertThat(AttestedKey.of(KEY, answer(BLS, creation(BLS)), trust(members, former)).parties())
        .containsExactly("p1", "p2", "p3");
    // Both names have stood for both ids.
    former.add(new FormerParty("p1", 2, raw(PARTIES.get(2)), 5));
    former.add(new FormerParty("p2", 1, raw(PARTIES.get(1)), 5));
    assertProblem(
        AttestationProblem.PARTIES_AMBIGUOUS, answer(BLS, creation(BLS)), trust(members, former));
  }

  private static void assertProblem(AttestationProblem problem, Key key, Trust trust) {
    assertThatThrownBy(() -> AttestedKey.of(KEY, key, trust))
        .isInstanceOfSatisfying(
            AttestationException.class, e -> assertThat(e.problem()).isEqualTo(problem));
  }

  @Test
  void a_fingerprint_covers_the_public_key_and_the_chain_code_only() {
    KeyPublic key = creation(BIP340).keyPublic.build();
    // sha256sum of the tag, the generator of secp256k1 and 32 zero bytes
    assertThat(KeyFingerprint.text(KeyFingerprint.of(key)))
        .isEqualTo("ca10 eaf2 7c8b 0c93 f8d2 402d ba61 59f9");
    assertThat(KeyFingerprint.of(key.toBuilder().setEpoch(7).clearVerificationShares().build()))
        .isEqualTo(KeyFingerprint.of(key));
    ByteString other =
        ByteString.copyFrom(new byte[32]).substring(1).concat(ByteString.fromHex("01"));
    assertThat(KeyFingerprint.of(key.toBuilder().setChainCode(other).build()))
        .isNotEqualTo(KeyFingerprint.of(key));
  }
}
