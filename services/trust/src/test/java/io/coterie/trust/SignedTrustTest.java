package io.coterie.trust;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** The signatures of a trust file, and the way from one version to a later one. */
class SignedTrustTest {
  private static final KeyPair A = RootKeys.pair();
  private static final KeyPair B = RootKeys.pair();
  private static final KeyPair C = RootKeys.pair();
  private static final KeyPair D = RootKeys.pair();
  private static final KeyPair E = RootKeys.pair();
  private static final KeyPair STRANGER = RootKeys.pair();
  private static final Roots OLD = RootKeys.roots(2, A, B, C);
  private static final Roots NEW = RootKeys.roots(2, C, D, E);

  private static Trust trust(long version, int aci) {
    return trust("test", version, aci);
  }

  private static Trust trust(String installation, long version, int aci) {
    Member party =
        new Member(
            "p1", Member.Role.PARTY, 1, "eu", new UUID(1, aci), 1, new byte[33], new byte[32]);
    return new Trust(new Roster(installation, version, List.of(party)), List.of());
  }

  private static TrustFile sign(TrustFile file, KeyPair... keys) {
    TrustFile signed = file;
    for (KeyPair key : keys) {
      signed = signed.signed(key.getPrivate());
    }
    return signed;
  }

  private static SignedTrust first() {
    return sign(TrustFile.first(trust(1, 1), OLD), A, B).verified();
  }

  private static TrustFile unsigned(SignedTrust previous, Roots roots) {
    long version = previous.version() + 1;
    return TrustFile.after(previous, trust(version, (int) version), roots);
  }

  private static SignedTrust next(SignedTrust previous, Roots roots, KeyPair... keys) {
    return sign(unsigned(previous, roots), keys).verified();
  }

  private static SignedTrust parsed(SignedTrust trust) {
    return TrustFile.parse(trust.file().encode()).verified();
  }

  private static void refused(ThrowingCallable call, String because) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(because);
  }

  @Test
  void a_file_counts_with_the_signatures_of_threshold_many_root_keys() {
    TrustFile file = TrustFile.first(trust(1, 1), OLD);
    refused(file::verified, "version 1 has 0 of the 2 signatures");
    refused(sign(file, A)::verified, "version 1 has 1 of the 2 signatures");
    refused(sign(file, A, A)::verified, "version 1 has 1 of the 2 signatures");
    SignedTrust signed = sign(file, A, C).verified();
    assertThat(parsed(signed).trust()).isEqualTo(trust(1, 1));
    assertThat(parsed(signed).roots()).isEqualTo(OLD);
    assertThat(sign(file, A, B, C).verified().digest()).isEqualTo(signed.digest());
  }

  @Test
  void only_root_keys_sign() throws Exception {
    TrustFile file = TrustFile.first(trust(1, 1), OLD);
    refused(() -> file.signed(STRANGER.getPrivate()), "no root key of trust file version 1");
    refused(
        () -> file.signed(KeyPairGenerator.getInstance("EC").generateKeyPair().getPrivate()),
        "an Ed25519 key");
    refused(
        withSignature(file, new TrustVersion.RootSignature(RootKeys.key(STRANGER), new byte[64]))
            ::verified,
        "none of its root keys");
  }

  private static TrustFile withSignature(TrustFile file, TrustVersion.RootSignature signature) {
    return new TrustFile(
        new TrustVersion(file.current().payload(), List.of(signature)), file.earlier());
  }

  @Test
  void a_forged_signature_is_refused_even_beside_enough_good_ones() {
    TrustFile good = sign(TrustFile.first(trust(1, 1), OLD), A, B, C);
    for (int i = 0; i < 3; i++) {
      TrustVersion.RootSignature[] signatures =
          good.current().signatures().toArray(TrustVersion.RootSignature[]::new);
      byte[] forged = signatures[i].signature();
      forged[5] ^= 1;
      signatures[i] = new TrustVersion.RootSignature(signatures[i].key(), forged);
      TrustFile bad =
          new TrustFile(
              new TrustVersion(good.current().payload(), Arrays.asList(signatures)), List.of());
      refused(bad::verified, "is not valid");
      signatures[i] = new TrustVersion.RootSignature(signatures[i].key(), new byte[0]);
      refused(
          new TrustFile(
                  new TrustVersion(good.current().payload(), Arrays.asList(signatures)), List.of())
              ::verified,
          "is not valid");
    }
  }

  @Test
  void a_signature_of_another_content_does_not_count() {
    TrustFile one = sign(TrustFile.first(trust(1, 1), OLD), A, B);
    TrustFile other = TrustFile.first(trust(1, 2), OLD);
    TrustFile mixed =
        new TrustFile(
            new TrustVersion(other.current().payload(), one.current().signatures()), List.of());
    refused(mixed::verified, "is not valid");
  }

  @Test
  void a_root_key_counts_once() {
    TrustFile good = sign(TrustFile.first(trust(1, 1), OLD), A);
    TrustVersion.RootSignature one = good.current().signatures().getFirst();
    refused(
        () -> new TrustVersion(good.current().payload(), List.of(one, one)), "two signatures of");
    refused(() -> RootKeys.roots(2, A, A), "occurs twice");
    refused(() -> RootKeys.roots(3, A, B), "is not 1 to 2 but 3");
    refused(() -> RootKeys.roots(0, A), "is not 1 to 1 but 0");
  }

  @Test
  void the_text_of_a_file_has_one_form() {
    String json = new String(first().file().encode(), StandardCharsets.UTF_8);
    for (String[] change :
        new String[][] {
          {"\"earlier\"", "\"extra\" : 1, \"earlier\""},
          {"\"payload\" : \"", "\"payload\" : \" "},
          {"\"payload\" : \"", "\"payload\" : \"\", \"payload\" : \""},
          {"\"signature\" : \"", "\"note\" : \"\", \"signature\" : \""},
          {"==\"", "\""},
          {"[ ]", "[ {} ]"},
          {"[ ]", "{ }"},
        }) {
      assertThat(json).contains(change[0]);
      assertThatThrownBy(
              () ->
                  TrustFile.parse(
                      json.replace(change[0], change[1]).getBytes(StandardCharsets.UTF_8)))
          .as(change[1])
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void the_next_version_needs_the_root_keys_of_the_one_before() {
    SignedTrust first = first();
    SignedTrust second = next(first, OLD, B, C);
    assertThat(second.version()).isEqualTo(2);
    assertThat(parsed(second).requireNotBefore(first)).isTrue();
    assertThat(second.requireNotBefore(second)).isFalse();
    refused(unsigned(first, OLD).signed(A.getPrivate())::verified, "1 of the 2");
  }

  @Test
  void other_root_keys_are_signed_by_the_old_ones_and_by_themselves() {
    SignedTrust first = first();
    TrustFile second = unsigned(first, NEW);
    refused(sign(second, D, E)::verified, "of the version before it");
    refused(
        sign(second, A, B)::verified, "version 2 has 0 of the 2 signatures that it needs of the");
    refused(sign(second, A, D, E)::verified, "of the version before it");
    // C is in both sets and counts for both.
    assertThat(sign(second, A, C, D).verified().roots()).isEqualTo(NEW);
  }

  @Test
  void a_reader_of_any_version_follows_the_root_keys_to_the_newest() {
    SignedTrust first = first();
    SignedTrust second = next(first, OLD, A, B);
    SignedTrust third = next(second, NEW, A, B, D, E);
    SignedTrust fourth = next(third, NEW, D, E);
    SignedTrust fifth = next(fourth, OLD, A, B, C, D);
    SignedTrust sixth = parsed(next(fifth, OLD, A, B));
    assertThat(sixth.file().earlier())
        .extracting(v -> v.content().version())
        .containsExactly(1L, 3L, 5L);
    for (SignedTrust held : List.of(first, second, third, fourth, fifth)) {
      assertThat(sixth.requireNotBefore(held)).isTrue();
      refused(() -> held.requireNotBefore(sixth), "version 6 was used before");
    }
  }

  @Test
  void an_older_version_and_another_content_of_the_same_one_are_refused() {
    SignedTrust first = first();
    SignedTrust second = next(first, OLD, A, B);
    refused(() -> first.requireNotBefore(second), "version 1, and version 2 was used before");
    SignedTrust fork = sign(TrustFile.after(first, trust(2, 77), OLD), A, B).verified();
    refused(() -> fork.requireNotBefore(second), "another content than the version 2");
    refused(() -> next(fork, OLD, A, B).requireNotBefore(second), "follows another version 2");
  }

  @Test
  void other_root_keys_cannot_take_an_installation_over() {
    SignedTrust held = next(first(), OLD, A, B);
    SignedTrust theirs = sign(TrustFile.first(trust(1, 1), NEW), C, D).verified();
    SignedTrust second = next(theirs, NEW, C, D);
    SignedTrust third = next(second, NEW, C, D);
    refused(() -> third.requireNotBefore(held), "not signed by the root keys of version 2");
    // Fewer of the same keys are other root keys, too.
    SignedTrust weak = sign(TrustFile.first(trust(1, 1), RootKeys.roots(1, A, B, C)), A).verified();
    SignedTrust weaker = next(next(weak, weak.roots(), A), weak.roots(), A);
    refused(() -> weaker.requireNotBefore(held), "not signed by the root keys of version 2");
    // So is a history that has the keys, with another start.
    SignedTrust other = sign(TrustFile.first(trust(1, 5), OLD), A, B).verified();
    refused(() -> next(other, OLD, A, B).requireNotBefore(first()), "root keys of version 1");
  }

  @Test
  void a_file_of_another_installation_is_refused() {
    SignedTrust other = sign(TrustFile.first(trust("other", 1, 1), OLD), A, B).verified();
    refused(() -> other.requireNotBefore(first()), "of installation other");
    refused(() -> TrustFile.after(other, trust("test", 2, 2), OLD), "two installations");
  }

  @Test
  void a_version_names_the_one_before_it() {
    SignedTrust first = first();
    TrustFile second = unsigned(first, OLD);
    SignedTrust other = sign(TrustFile.first(trust(1, 5), OLD), A, B).verified();
    refused(
        () -> new TrustFile(second.current(), List.of(other.file().current())),
        "version 2 follows another version 1");
    refused(() -> new TrustFile(second.current(), List.of()), "does not have its version 1");
    refused(
        () -> new TrustFile(first.file().current(), List.of(first.file().current())),
        "version 1 after version 1");
    SignedTrust third = next(next(first, OLD, A, B), OLD, A, B);
    refused(
        () ->
            new TrustFile(
                third.file().current(), List.of(first.file().current(), second.current())),
        "version 2 does not change the root keys");
  }

  @Test
  void a_reader_without_a_version_pins_root_keys_of_the_file() {
    SignedTrust second = next(first(), NEW, A, B, D, E);
    String fingerprint = NEW.fingerprint();
    assertThat(fingerprint).matches("([0-9a-f]{4} ){15}[0-9a-f]{4}");
    assertThat(second.requireRoots(fingerprint)).isSameAs(second);
    second.requireRoots(OLD.fingerprint().replace(" ", "").toUpperCase(Locale.ROOT));
    for (Roots other :
        List.of(RootKeys.roots(2, C, D), RootKeys.roots(1, C, D, E), RootKeys.roots(2, D, E, A))) {
      refused(() -> second.requireRoots(other.fingerprint()), "expected ones");
    }
    refused(() -> second.requireRoots(""), "expected ones");
  }

  @Test
  void signatures_are_those_of_dsse() throws Exception {
    TrustFile file = sign(TrustFile.first(trust(1, 1), OLD), A);
    String json = new String(file.encode(), StandardCharsets.UTF_8);
    String payload = json.replaceAll("(?s).*\"payload\" : \"([^\"]*)\".*", "$1");
    byte[] content = Base64.getDecoder().decode(payload);
    Signature verifier = Signature.getInstance("Ed25519");
    verifier.initVerify(A.getPublic());
    verifier.update(
        ("DSSEv1 37 application/vnd.coterie.trust.v1+json " + content.length + " ")
            .getBytes(StandardCharsets.UTF_8));
    verifier.update(content);
    assertThat(verifier.verify(file.current().signatures().getFirst().signature())).isTrue();
  }
}
