package io.coterie.signer.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.trust.Glob;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PolicyTest {
  private static final ShareFloor ANY = new ShareFloor(1, 1, Set.of());

  private static final RequesterRule RULE =
      new RequesterRule(
          List.of(new Glob("keys/treasury-*"), new Glob("keys/main")),
          Set.of(Scheme.SCHEME_BLS12381),
          false,
          false,
          false,
          false,
          false,
          false,
          ANY,
          Set.of(PayloadKind.MESSAGE),
          List.of(PathPrefix.parse("m")),
          List.of(new Glob("withdrawal *"), new Glob("test")),
          8,
          RequesterRule.Lapse.AFTER_DEADLINE,
          null);

  private static final RequesterRule CREATOR =
      new RequesterRule(
          List.of(new Glob("keys/treasury-*")),
          Set.of(Scheme.SCHEME_BLS12381, Scheme.SCHEME_ECDSA_SECP256K1),
          true,
          false,
          false,
          true,
          false,
          false,
          new ShareFloor(2, 3, Set.of("alpha", "bravo", "carol", "delta")),
          Set.of(PayloadKind.MESSAGE, PayloadKind.ETHEREUM_MESSAGE),
          List.of(PathPrefix.parse("m/44/60"), PathPrefix.parse("m/0/1/2")),
          List.of(new Glob("*")),
          8,
          RequesterRule.Lapse.AFTER_DEADLINE,
          null);

  private static VerifiedIntent signing(String key, String purpose, int bytes, Scheme scheme) {
    return new VerifiedIntent.Signing(
        "wallet",
        ByteString.EMPTY,
        SignedIntent.getDefaultInstance(),
        SigningIntent.newBuilder()
            .setKey(key)
            .setScheme(scheme)
            .setPurpose(purpose)
            .setMessage(ByteString.copyFrom(new byte[bytes]))
            .build());
  }

  private static VerifiedIntent creation(String key) {
    return new VerifiedIntent.KeyCreation(
        "wallet",
        ByteString.EMPTY,
        SignedIntent.getDefaultInstance(),
        KeyIntent.newBuilder()
            .setKey(key)
            .setScheme(Scheme.SCHEME_BLS12381)
            .setThreshold(2)
            .addAllParties(List.of("alpha", "bravo", "carol"))
            .setPurpose("test")
            .build());
  }

  @ParameterizedTest
  @CsvSource({
    "keys/main,        test,            8, SCHEME_BLS12381,    allowed",
    "keys/treasury-1,  withdrawal 4711, 1, SCHEME_BLS12381,    allowed",
    "keys/treasury-,   test,            1, SCHEME_BLS12381,    allowed",
    "keys/treasury,    test,            1, SCHEME_BLS12381,    this key",
    "keys/main2,       test,            1, SCHEME_BLS12381,    this key",
    "keys/xmain,       test,            1, SCHEME_BLS12381,    this key",
    "keys/main,        withdrawal,      1, SCHEME_BLS12381,    purpose",
    "keys/main,        a withdrawal x,  1, SCHEME_BLS12381,    purpose",
    "keys/main,        '',              1, SCHEME_BLS12381,    purpose",
    "keys/main,        test,            9, SCHEME_BLS12381,    larger",
    "keys/main,        test,            1, SCHEME_UNSPECIFIED, this scheme",
  })
  void table_of_signings(String key, String purpose, int bytes, Scheme scheme, String expected) {
    assertThat(RULE.denial(signing(key, purpose, bytes, scheme)).orElse("allowed"))
        .contains(expected);
  }

  @Test
  void key_creation_is_a_right_of_its_own() {
    assertThat(RULE.denial(creation("keys/main")).orElseThrow()).contains("create keys");
    assertThat(CREATOR.denial(creation("keys/treasury-1"))).isEmpty();
    assertThat(CREATOR.denial(creation("keys/main")).orElseThrow()).contains("this key");
  }

  @ParameterizedTest
  @CsvSource({
    "2, alpha bravo carol,       allowed",
    "3, alpha bravo carol delta, allowed",
    "1, alpha bravo carol,       'at least 2 parties to sign, not 1'",
    "2, alpha bravo,             'at least 3 parties hold shares of a key of this name, not 2'",
    "2, alpha bravo mallory,     party mallory may not hold a share",
    "1, alpha,                   at least 2 parties to sign",
  })
  void neither_creation_nor_reshare_goes_below_the_floor(
      int threshold, String names, String expected) {
    List<String> parties = List.of(names.split(" "));
    VerifiedIntent creation =
        new VerifiedIntent.KeyCreation(
            "wallet",
            ByteString.EMPTY,
            SignedIntent.getDefaultInstance(),
            KeyIntent.newBuilder()
                .setKey("keys/treasury-1")
                .setScheme(Scheme.SCHEME_BLS12381)
                .setThreshold(threshold)
                .addAllParties(parties)
                .build());
    VerifiedIntent reshare =
        new VerifiedIntent.KeyReshare(
            "wallet",
            ByteString.EMPTY,
            SignedIntent.getDefaultInstance(),
            ReshareIntent.newBuilder()
                .setKey("keys/treasury-1")
                .setScheme(Scheme.SCHEME_BLS12381)
                .setThreshold(threshold)
                .addAllParties(parties)
                .build());
    assertThat(CREATOR.denial(creation).orElse("allowed")).contains(expected);
    assertThat(CREATOR.denial(reshare).orElse("allowed")).contains(expected);
  }

  @ParameterizedTest
  @CsvSource({"0, 1, ''", "1, 0, ''", "3, 1, alpha bravo", "1, 3, alpha bravo"})
  void a_floor_that_no_key_can_stand_on_is_refused(int threshold, int parties, String allowed) {
    Set<String> names = allowed.isEmpty() ? Set.of() : Set.of(allowed.split(" "));
    assertThatThrownBy(() -> new ShareFloor(threshold, parties, names))
        .isInstanceOf(IllegalArgumentException.class);
  }

  private static VerifiedIntent.Signing ecdsa(SigningIntent.Builder intent) {
    return new VerifiedIntent.Signing(
        "wallet",
        ByteString.EMPTY,
        SignedIntent.getDefaultInstance(),
        intent
            .setKey("keys/treasury-1")
            .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
            .addAllDerivationPath(List.of(44, 60, 7))
            .build());
  }

  @Test
  void digest_has_to_be_allowed() {
    ByteString bytes = ByteString.copyFrom(new byte[8]);
    assertThat(CREATOR.denial(ecdsa(SigningIntent.newBuilder().setEthereumMessage(bytes))))
        .isEmpty();
    assertThat(CREATOR.denial(ecdsa(SigningIntent.newBuilder().setDigest(bytes))).orElseThrow())
        .contains("kind digest");
    assertThat(
            CREATOR
                .denial(ecdsa(SigningIntent.newBuilder().setEthereumTransaction(bytes)))
                .orElseThrow())
        .contains("kind ethereum-transaction");
  }

  @Test
  void payload_of_each_kind_has_a_largest_size() {
    ByteString bytes = ByteString.copyFrom(new byte[9]);
    assertThat(
            CREATOR
                .denial(ecdsa(SigningIntent.newBuilder().setEthereumMessage(bytes)))
                .orElseThrow())
        .contains("larger");
  }

  @ParameterizedTest
  @CsvSource({
    "44/60,      true",
    "44/60/0/1,  true",
    "0/1/2,      true",
    "0/1,        false",
    "44,         false",
    "44/61/0,    false",
    "'',         false",
  })
  void derivation_paths(String path, boolean allowed) {
    List<Integer> numbers =
        path.isEmpty()
            ? List.of()
            : java.util.Arrays.stream(path.split("/", -1)).map(Integer::valueOf).toList();
    SigningIntent.Builder intent =
        SigningIntent.newBuilder().setEthereumMessage(ByteString.copyFromUtf8("x"));
    VerifiedIntent signing =
        new VerifiedIntent.Signing(
            "wallet",
            ByteString.EMPTY,
            SignedIntent.getDefaultInstance(),
            intent
                .setKey("keys/treasury-1")
                .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                .addAllDerivationPath(numbers)
                .build());
    assertThat(CREATOR.denial(signing).isEmpty()).isEqualTo(allowed);
  }

  @ParameterizedTest
  @CsvSource({"''", "n", "44", "m/", "m/44'", "m/-1", "m/2147483648", "m/99999999999", "m//1"})
  void path_prefixes_are_read_strictly(String text) {
    assertThatThrownBy(() -> PathPrefix.parse(text)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void refresh_is_a_right_of_its_own() {
    VerifiedIntent refresh =
        new VerifiedIntent.KeyRefresh(
            "wallet",
            ByteString.EMPTY,
            SignedIntent.getDefaultInstance(),
            RefreshIntent.newBuilder()
                .setKey("keys/treasury-1")
                .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                .setEpoch(1)
                .build());
    assertThat(CREATOR.denial(refresh).orElseThrow()).contains("refresh");
  }

  @ParameterizedTest
  @CsvSource({
    "a,        a,            true",
    "a,        b,            false",
    "a,        aa,           false",
    "*,        '',           true",
    "*,        anything,     true",
    "a*,       a,            true",
    "a*,       abc,          true",
    "a*,       ba,           false",
    "*c,       abc,          true",
    "*c,       cb,           false",
    "a*c,      abc,          true",
    "a*c,      ac,           true",
    "a*c,      a,            false",
    "ab*ba,    aba,          false",
    "ab*ba,    abba,         true",
    "a*b*c,    a1b2c,        true",
    "a*b*c,    a1c2b,        false",
    "a*b*b,    ab,           false",
    "*a*b*,    xxaxxbxx,     true",
    "*ab*ab*,  ab,           false",
    "a**b,     ab,           true",
    "a.c,      abc,          false",
  })
  void globs(String pattern, String text, boolean matches) {
    assertThat(new Glob(pattern).matches(text)).isEqualTo(matches);
  }

  @Test
  void glob_takes_time_in_proportion() {
    Glob glob = new Glob("*a".repeat(127) + "*b");
    long began = System.nanoTime();
    assertThat(glob.matches("a".repeat(100_000))).isFalse();
    assertThat(System.nanoTime() - began).isLessThan(1_000_000_000L);
  }

  @Test
  void glob_has_bounds() {
    assertThatThrownBy(() -> new Glob("")).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Glob("x".repeat(257)))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
