package io.coterie.trust;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RequesterTest {
  @ParameterizedTest
  @CsvSource({
    "keys/hot, keys/hot, true",
    "keys/hot, keys/hot-1, false",
    "keys/hot, keys/ho, false",
    "keys/hot-*, keys/hot-1, true",
    "keys/hot-*, keys/hot-, true",
    "keys/hot-*, keys/hot, false",
    "keys/*-usd, keys/hot-usd, true",
    "keys/*-usd, keys/hot-usd-1, false",
    "keys/a*b*c, keys/abc, true",
    "keys/a*b*c, keys/axbxbxc, true",
    "keys/a*b*c, keys/ac, false",
    "keys/a*a, keys/a, false",
    "keys/a*ab*b, keys/ab, false",
    "keys/a*ab*b, keys/aabb, true",
    "*, keys/any, true",
    "keys/**, keys/any, true",
  })
  void a_star_stands_for_any_text_and_everything_else_for_itself(
      String glob, String key, boolean covered) {
    assertThat(requester(List.of(glob)).mayAskFor(key)).isEqualTo(covered);
  }

  @ParameterizedTest
  @CsvSource({"h.t, hot", "[a-z]*, hot", "h?t, hot"})
  void nothing_but_a_star_stands_for_other_text(String pattern, String text) {
    assertThat(new Glob(pattern).matches(text)).isFalse();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"hot", "key/hot", "keys/", "keys/Hot", "keys/h.t", "keys/[a-z]*", "**", "keys/1"})
  void a_pattern_that_no_key_fits_is_refused(String pattern) {
    assertThatThrownBy(() -> requester(List.of("keys/a", pattern)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("requester wallet: '" + pattern + "' is no name or pattern of keys");
    assertThatThrownBy(() -> Glob.ofKeys(pattern))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'" + pattern + "' is no name or pattern of keys");
  }

  @ParameterizedTest
  @ValueSource(strings = {"*", "wallet-*", "Wallet", "", "a b"})
  void a_requester_has_a_name_and_no_pattern(String name) {
    assertThatThrownBy(
            () ->
                new Trust.Requester(
                    name, List.of(new byte[44]), List.of(), Set.of(KeyRight.CREATE), 2, 3))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("requester name '" + name + "' is not 1 to 63 of");
  }

  @ParameterizedTest
  @CsvSource({"keys/a, true", "keys/b-1, true", "keys/c, false"})
  void one_pattern_suffices(String key, boolean covered) {
    assertThat(requester(List.of("keys/a", "keys/b-*")).mayAskFor(key)).isEqualTo(covered);
    assertThat(requester(List.of()).mayAskFor(key)).isFalse();
  }

  private static Trust.Requester requester(List<String> keys) {
    return new Trust.Requester(
        "wallet",
        List.of(new byte[44]),
        keys.stream().map(Glob::new).toList(),
        Set.of(KeyRight.CREATE),
        2,
        3);
  }
}
