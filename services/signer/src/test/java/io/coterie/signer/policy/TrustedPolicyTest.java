package io.coterie.signer.policy;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.Trust;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PublicKey;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The signed trust file says who may ask; rules of the party only take away from that. */
class TrustedPolicyTest {
  private static final Set<KeyRight> ALL = Set.of(KeyRight.values());

  private final KeyPair present = keyPair();
  private final KeyPair former = keyPair();

  private static KeyPair keyPair() {
    try {
      return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static RequesterRule rule(String keys, boolean rights) {
    return new RequesterRule(
        List.of(new Glob(keys)),
        Set.of(Scheme.SCHEME_BLS12381),
        rights,
        rights,
        rights,
        rights,
        rights,
        rights,
        new ShareFloor(1, 1, Set.of()),
        Set.of(PayloadKind.MESSAGE),
        List.of(PathPrefix.parse("m")),
        List.of(new Glob("*")),
        64,
        RequesterRule.Lapse.NEVER,
        null);
  }

  private static LocalRules rules(Optional<PublicKey> pinned, RequesterRule rule) {
    return new LocalRules(Map.of("wallet", new LocalRules.Local(pinned, rule)));
  }

  private static Trust trust(Trust.Requester... requesters) {
    Member party =
        new Member(
            "alpha", Member.Role.PARTY, 1, "eu", new UUID(1, 1), 1, new byte[33], new byte[32]);
    return new Trust(new Roster("test", 1, List.of(party)), List.of(requesters));
  }

  private Trust.Requester wallet(String keys, Set<KeyRight> rights, int threshold, int parties) {
    return new Trust.Requester(
        "wallet",
        List.of(present.getPublic().getEncoded(), former.getPublic().getEncoded()),
        List.of(new Glob(keys)),
        rights,
        threshold,
        parties);
  }

  private static Timestamp soon() {
    return Timestamp.newBuilder()
        .setSeconds(Instant.now().plus(Duration.ofMinutes(5)).getEpochSecond())
        .build();
  }

  private static ByteString fingerprint() {
    return ByteString.copyFrom(new byte[IntentVerifier.FINGERPRINT_BYTES]);
  }

  private static SignedIntent signing(KeyPair by, String key) {
    return signing("wallet", by, key);
  }

  private static SignedIntent signing(String requester, KeyPair by, String key) {
    return new IntentSigner(requester, by.getPrivate())
        .sign(
            SigningIntent.newBuilder()
                .setRequestId(RequestId.next())
                .setKey(key)
                .setScheme(Scheme.SCHEME_BLS12381)
                .setMessage(ByteString.copyFromUtf8("m"))
                .setInstallation("test")
                .setKeyFingerprint(fingerprint())
                .setNotAfter(soon())
                .build());
  }

  private SignedIntent cancellation(String key) {
    return new IntentSigner("wallet", present.getPrivate())
        .sign(
            CancelIntent.newBuilder()
                .setRequestId(RequestId.next())
                .setKey(key)
                .setScheme(Scheme.SCHEME_BLS12381)
                .setInstallation("test")
                .setKeyFingerprint(fingerprint())
                .setNotAfter(soon())
                .build());
  }

  private SignedIntent creation(int threshold, String... parties) {
    return new IntentSigner("wallet", present.getPrivate())
        .sign(
            KeyIntent.newBuilder()
                .setRequestId(RequestId.next())
                .setKey("keys/hot")
                .setScheme(Scheme.SCHEME_BLS12381)
                .setThreshold(threshold)
                .addAllParties(List.of(parties))
                .setInstallation("test")
                .setNotAfter(soon())
                .build());
  }

  private SignedIntent reshare(int threshold, String... parties) {
    return new IntentSigner("wallet", present.getPrivate())
        .sign(
            ReshareIntent.newBuilder()
                .setRequestId(RequestId.next())
                .setKey("keys/hot")
                .setScheme(Scheme.SCHEME_BLS12381)
                .setEpoch(1)
                .setThreshold(threshold)
                .addAllParties(List.of(parties))
                .setPublicKey(ByteString.copyFrom(new byte[48]))
                .setInstallation("test")
                .setNotAfter(soon())
                .build());
  }

  private SignedIntent refresh() {
    return new IntentSigner("wallet", present.getPrivate())
        .sign(
            RefreshIntent.newBuilder()
                .setRequestId(RequestId.next())
                .setKey("keys/hot")
                .setScheme(Scheme.SCHEME_BLS12381)
                .setEpoch(1)
                .setInstallation("test")
                .setKeyFingerprint(fingerprint())
                .setNotAfter(soon())
                .build());
  }

  private SignedIntent ticket() {
    return new IntentSigner("wallet", present.getPrivate())
        .sign(
            TicketIntent.newBuilder()
                .setRequestId(RequestId.next())
                .setGroup("groups/approvers")
                .setEpoch(1)
                .setIdentity(ByteString.copyFrom(new byte[32]))
                .setInstallation("test")
                .setNotAfter(soon())
                .build());
  }

  private SignedIntent opening() {
    return new IntentSigner("wallet", present.getPrivate())
        .sign(
            OpeningIntent.newBuilder()
                .setRequestId(RequestId.next())
                .setGroup("groups/approvers")
                .setEpoch(1)
                .setRequest(ByteString.copyFrom(new byte[32]))
                .setApproval(ByteString.copyFrom(new byte[416]))
                .setRecipient(ByteString.copyFrom(new byte[32]))
                .setInstallation("test")
                .setNotAfter(soon())
                .build());
  }

  /** The reason of the refusal and its text; "allowed" if there is none. */
  private static String judged(TrustedPolicy policy, SignedIntent intent) {
    try {
      policy.admit(intent);
      return "allowed";
    } catch (RefusedException e) {
      return e.reason() + " " + e.detail();
    }
  }

  @Test
  void a_requester_that_the_trust_file_does_not_name_is_unknown() {
    LocalRules rules = rules(Optional.of(present.getPublic()), rule("*", true));
    TrustedPolicy policy = rules.within(trust());
    assertThat(policy.leftOut()).containsExactly("the trust file does not name requester wallet");
    for (SignedIntent intent :
        List.of(signing(present, "keys/hot"), cancellation("keys/hot"), creation(1, "alpha"))) {
      assertThat(judged(policy, intent))
          .startsWith(RefusalReason.REFUSAL_REASON_UNKNOWN_REQUESTER.name());
    }
    assertThat(judged(rules.within(trust(wallet("*", ALL, 1, 1))), signing(present, "keys/hot")))
        .isEqualTo("allowed");
  }

  @Test
  void a_requester_of_the_trust_file_has_no_rights_that_no_rule_gives_it() {
    TrustedPolicy policy = new LocalRules(Map.of()).within(trust(wallet("*", ALL, 1, 1)));
    assertThat(judged(policy, signing(present, "keys/hot")))
        .startsWith(RefusalReason.REFUSAL_REASON_UNKNOWN_REQUESTER.name());
    TrustedPolicy narrow =
        rules(Optional.empty(), rule("keys/cold", false)).within(trust(wallet("*", ALL, 1, 1)));
    assertThat(judged(narrow, signing(present, "keys/hot"))).contains("may not use this key");
    assertThat(judged(narrow, signing(present, "keys/cold"))).isEqualTo("allowed");
  }

  @Test
  void a_former_public_key_of_the_trust_file_asks_for_nothing() {
    TrustedPolicy policy =
        rules(Optional.empty(), rule("*", true)).within(trust(wallet("*", ALL, 1, 1)));
    assertThat(judged(policy, signing(present, "keys/hot"))).isEqualTo("allowed");
    assertThat(judged(policy, signing(former, "keys/hot")))
        .startsWith(RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE.name());
  }

  @Test
  void a_key_that_the_party_pins_counts_only_if_the_trust_file_has_it_too() {
    Trust trust = trust(wallet("*", ALL, 1, 1));
    for (KeyPair pinned : List.of(former, keyPair())) {
      TrustedPolicy policy = rules(Optional.of(pinned.getPublic()), rule("*", true)).within(trust);
      assertThat(policy.leftOut())
          .containsExactly("the trust file has another public key of requester wallet");
      for (KeyPair by : List.of(pinned, present)) {
        assertThat(judged(policy, signing(by, "keys/hot")))
            .startsWith(RefusalReason.REFUSAL_REASON_UNKNOWN_REQUESTER.name());
      }
    }
    TrustedPolicy same = rules(Optional.of(present.getPublic()), rule("*", true)).within(trust);
    assertThat(same.leftOut()).isEmpty();
    assertThat(judged(same, signing(present, "keys/hot"))).isEqualTo("allowed");
    assertThat(same.isStrict("wallet")).isTrue();
  }

  @Test
  void keys_outside_the_trust_files_patterns_are_forbidden_whatever_the_rule_says() {
    TrustedPolicy policy =
        rules(Optional.empty(), rule("*", true)).within(trust(wallet("keys/hot*", ALL, 1, 1)));
    for (SignedIntent intent : List.of(signing(present, "keys/cold"), cancellation("keys/cold"))) {
      assertThat(judged(policy, intent))
          .startsWith(RefusalReason.REFUSAL_REASON_FORBIDDEN.name())
          .contains("the trust file does not let the requester use this key");
    }
    assertThat(judged(policy, signing(present, "keys/hot-1"))).isEqualTo("allowed");
    assertThat(judged(policy, cancellation("keys/hot-1"))).isEqualTo("allowed");
  }

  @Test
  void changes_of_keys_need_the_right_in_the_trust_file_and_in_the_rule() {
    Map<SignedIntent, KeyRight> asked =
        Map.of(
            creation(1, "alpha"), KeyRight.CREATE,
            ticket(), KeyRight.CREATE,
            refresh(), KeyRight.REFRESH,
            reshare(1, "alpha"), KeyRight.RESHARE,
            opening(), KeyRight.OPEN);
    asked.forEach(
        (intent, right) -> {
          LocalRules free = rules(Optional.empty(), rule("*", true));
          assertThat(judged(free.within(trust(wallet("*", Set.of(right), 1, 1))), intent))
              .isEqualTo("allowed");
          Set<KeyRight> others =
              Set.copyOf(Stream.of(KeyRight.values()).filter(each -> each != right).toList());
          assertThat(judged(free.within(trust(wallet("*", others, 1, 1))), intent))
              .contains("the trust file does not let the requester");
          LocalRules none = rules(Optional.empty(), rule("*", false));
          assertThat(judged(none.within(trust(wallet("*", ALL, 1, 1))), intent))
              .startsWith(RefusalReason.REFUSAL_REASON_FORBIDDEN.name());
        });
  }

  @Test
  void the_trust_files_floors_bound_new_and_reshared_keys() {
    TrustedPolicy policy =
        rules(Optional.empty(), rule("*", true)).within(trust(wallet("*", ALL, 2, 3)));
    assertThat(judged(policy, creation(2, "alpha", "bravo", "carol"))).isEqualTo("allowed");
    assertThat(judged(policy, reshare(2, "alpha", "bravo", "carol"))).isEqualTo("allowed");
    for (SignedIntent low :
        List.of(
            creation(1, "alpha", "bravo", "carol"),
            creation(2, "alpha", "bravo"),
            reshare(1, "alpha", "bravo", "carol"),
            reshare(2, "alpha", "bravo"))) {
      assertThat(judged(policy, low))
          .contains("fewer than 2 parties to use or fewer than 3 to hold");
    }
  }

  /** Another name's floor is not this key's, nor is that of a requester that makes no keys. */
  @Test
  void a_floor_is_that_of_its_own_keys_and_of_rights_that_it_bounds() {
    Trust.Requester maker = with("maker", keyPair().getPublic().getEncoded());
    ShareFloor wide = new ShareFloor(3, 4, Set.of());
    for (RequesterRule other :
        List.of(floored("keys/cold", true, wide), floored("*", false, wide))) {
      TrustedPolicy policy = rules(other).within(trust(wallet("*", ALL, 1, 1), maker));
      assertThat(judged(policy, reshare(1, "alpha", "bravo"))).isEqualTo("allowed");
    }
    for (Trust.Requester other :
        List.of(entry(maker, "keys/cold", KeyRight.CREATE), entry(maker, "*", KeyRight.REFRESH))) {
      TrustedPolicy policy = rules("maker", "wallet").within(trust(wallet("*", ALL, 1, 1), other));
      assertThat(judged(policy, reshare(1, "alpha", "bravo"))).isEqualTo("allowed");
    }
  }

  private static LocalRules rules(RequesterRule maker) {
    return new LocalRules(
        Map.of(
            "wallet", new LocalRules.Local(Optional.empty(), rule("*", true)),
            "maker", new LocalRules.Local(Optional.empty(), maker)));
  }

  private static Trust.Requester entry(Trust.Requester of, String keys, KeyRight right) {
    return new Trust.Requester(
        of.name(), of.publicKeys(), List.of(new Glob(keys)), Set.of(right), 2, 3);
  }

  private static RequesterRule standingOn(ShareFloor floor) {
    return floored("keys/hot", true, floor);
  }

  private static RequesterRule floored(String keys, boolean rights, ShareFloor floor) {
    RequesterRule any = rule(keys, rights);
    return new RequesterRule(
        any.keys(),
        any.schemes(),
        any.mayCreateKeys(),
        any.mayImportKeys(),
        any.mayRefreshKeys(),
        any.mayReshareKeys(),
        any.mayCreateGroups(),
        any.mayOpenApprovals(),
        floor,
        any.payloads(),
        any.derivationPrefixes(),
        any.purposes(),
        any.maxMessageBytes(),
        any.lapse(),
        null);
  }

  /**
   * One requester makes keys and another one reshares them: neither goes below the other's floor.
   */
  @Test
  void a_key_stands_on_the_highest_floor_of_the_requesters_that_may_make_or_reshare_it() {
    Trust.Requester maker = with("maker", keyPair().getPublic().getEncoded());
    ShareFloor wide = new ShareFloor(3, 4, Set.of("alpha", "bravo", "carol", "delta"));
    TrustedPolicy local = rules(standingOn(wide)).within(trust(wallet("*", ALL, 1, 1), maker));
    assertThat(judged(local, reshare(3, "alpha", "bravo", "carol", "delta"))).isEqualTo("allowed");
    assertThat(judged(local, reshare(2, "alpha", "bravo", "carol", "delta")))
        .contains("a key of this name needs at least 3 parties to sign, not 2");
    assertThat(judged(local, creation(3, "alpha", "bravo", "carol")))
        .contains("at least 4 parties hold shares of a key of this name, not 3");
    assertThat(judged(local, reshare(3, "alpha", "bravo", "carol", "echo")))
        .contains("party echo may not hold a share of a key of this name");
    assertThat(judged(local, signing(present, "keys/hot"))).isEqualTo("allowed");

    // A maker that the trust file does not name any more still has keys.
    TrustedPolicy retired = rules(standingOn(wide)).within(trust(wallet("*", ALL, 1, 1)));
    assertThat(judged(retired, reshare(2, "alpha", "bravo", "carol", "delta")))
        .contains("by the rule of requester maker, a key of this name needs at least 3 parties");
    TrustedPolicy trusted =
        rules("wallet")
            .within(trust(wallet("*", ALL, 1, 1), entry(maker, "keys/hot", KeyRight.CREATE)));
    assertThat(judged(trusted, reshare(2, "alpha", "bravo", "carol"))).isEqualTo("allowed");
    assertThat(judged(trusted, reshare(2, "alpha", "bravo")))
        .startsWith(RefusalReason.REFUSAL_REASON_FORBIDDEN.name())
        .contains("fewer than 2 parties to use or fewer than 3 to hold");
  }

  private static Trust.Requester with(String name, byte[]... keys) {
    return new Trust.Requester(name, List.of(keys), List.of(new Glob("*")), ALL, 1, 1);
  }

  private static LocalRules rules(String... names) {
    Map<String, LocalRules.Local> rules = new LinkedHashMap<>();
    for (String name : names) {
      rules.put(name, new LocalRules.Local(Optional.empty(), rule("*", true)));
    }
    return new LocalRules(rules);
  }

  /** It would have two sets of request ids; the party goes on serving the others. */
  @Test
  void one_key_under_two_names_is_nobodys_and_keeps_no_other_requester_out() {
    byte[] shared = keyPair().getPublic().getEncoded();
    TrustedPolicy policy =
        rules("keeper", "wallet", "desk")
            .within(trust(wallet("*", ALL, 1, 1), with("keeper", shared), with("desk", shared)));
    assertThat(policy.leftOut())
        .containsExactly(
            "the trust file gives requester keeper the public key of another one",
            "the trust file gives requester desk the public key of another one");
    assertThat(judged(policy, signing(present, "keys/hot"))).isEqualTo("allowed");
    KeyPair once = keyPair();
    TrustedPolicy stolen =
        rules("keeper", "wallet")
            .within(
                trust(wallet("*", ALL, 1, 1), with("keeper", present.getPublic().getEncoded())));
    for (KeyPair by : List.of(present, former, once)) {
      assertThat(judged(stolen, signing(by, "keys/hot")))
          .startsWith(RefusalReason.REFUSAL_REASON_UNKNOWN_REQUESTER.name());
    }
  }

  /** Wallet's intents of that time are on record as wallet's, and would be new as keeper's. */
  @Test
  void a_former_key_of_one_requester_is_nobody_elses_whether_this_party_has_rules_for_both() {
    byte[] old = former.getPublic().getEncoded();
    for (LocalRules rules : List.of(rules("keeper", "wallet"), rules("keeper"))) {
      TrustedPolicy policy = rules.within(trust(wallet("*", ALL, 1, 1), with("keeper", old)));
      assertThat(policy.leftOut())
          .containsExactly("the trust file gives requester keeper the public key of another one");
      assertThat(judged(policy, signing("keeper", former, "keys/hot")))
          .startsWith(RefusalReason.REFUSAL_REASON_UNKNOWN_REQUESTER.name());
    }
  }

  @Test
  void a_key_that_is_none_leaves_its_requester_out_alone() {
    byte[] cut = Arrays.copyOf(present.getPublic().getEncoded(), 20);
    for (byte[] none : List.of(cut, new byte[0], new byte[44])) {
      TrustedPolicy policy =
          rules("keeper", "wallet").within(trust(with("keeper", none), wallet("*", ALL, 1, 1)));
      assertThat(policy.leftOut())
          .singleElement()
          .asString()
          .startsWith("the trust file has a public key of requester keeper that is none: ");
      assertThat(judged(policy, signing(present, "keys/hot"))).isEqualTo("allowed");
    }
  }
}
