package io.coterie.trust;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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
    "**, keys/any, true",
    "keys/h.t, keys/hot, false",
    "keys/[a-z]*, keys/hot, false",
  })
  void a_star_stands_for_any_text_and_everything_else_for_itself(
      String glob, String key, boolean covered) {
    assertThat(requester(List.of(glob)).mayAskFor(key)).isEqualTo(covered);
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
