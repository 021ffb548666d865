package io.coterie.coordinator.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.platform.error.CustodyException;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ClientDirectoryTest {
  @Test
  void a_certificate_name_stands_for_one_client() {
    Client one = Client.of("one", Set.of(), Set.of(), Set.of());
    Client two = Client.of("two", Set.of(), Set.of(), Set.of());
    assertThatThrownBy(
            () ->
                new ClientDirectory(
                    Map.of(one, Set.of("subject:CN=x, O=y"), two, Set.of("subject:CN=x,O=y")),
                    Set.of()))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new ClientDirectory(Map.of(one, Set.of("x.example")), Set.of()))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void a_certificate_name_stands_for_a_client_or_an_edge() {
    Client one = Client.of("one", Set.of(), Set.of(), Set.of());
    assertThatThrownBy(
            () -> new ClientDirectory(Map.of(one, Set.of("dns:edge")), Set.of("dns:edge")))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @ParameterizedTest
  @CsvSource({
    "keys/*,keys/a,true",
    "keys/hot-*,keys/hot-1,true",
    "keys/hot-*,keys/cold-1,false",
    "keys/hot,keys/hot,true",
    "keys/hot,keys/hot2,false",
    "keys/*-eu,keys/hot-eu,true",
    "keys/*-eu,keys/hot-eu-2,false",
    "*,keys/anything,true"
  })
  void globs(String glob, String key, boolean allowed) {
    Client client = Client.of("c", Set.of(), Set.of(glob), Set.of());
    if (allowed) {
      assertThatCode(() -> client.requireMayRead(key)).doesNotThrowAnyException();
    } else {
      assertThatThrownBy(() -> client.requireMayRead(key)).isInstanceOf(CustodyException.class);
    }
  }

  @Test
  void signings_are_read_by_whoever_submits_them_and_by_those_who_are_named() {
    Client backend = Client.of("backend", Set.of("wallet"), Set.of("*"), Set.of());
    assertThat(backend.mayReadSigningsOf("wallet")).isTrue();
    assertThat(backend.mayReadSigningsOf("treasury")).isFalse();
    Client auditor = Client.of("auditor", Set.of(), Set.of("*"), Set.of("treasury"));
    assertThat(auditor.mayReadSigningsOf("treasury")).isTrue();
    assertThat(auditor.mayReadSigningsOf("wallet")).isFalse();
    Client all = Client.of("all", Set.of(), Set.of("*"), Set.of("*"));
    assertThat(all.mayReadSigningsOf("wallet")).isTrue();
  }

  @Test
  void a_pattern_where_a_name_is_meant_is_refused_and_so_is_one_that_no_key_fits() {
    assertThatThrownBy(() -> Client.of("c", Set.of("*"), Set.of(), Set.of()))
        .hasMessage("client c: submit-for has '*', which is no name of a requester");
    assertThatThrownBy(() -> Client.of("c", Set.of(), Set.of(), Set.of("wallet-*")))
        .hasMessage("client c: read-signings has 'wallet-*', which is no name of a requester");
    assertThatThrownBy(() -> Client.of("c", Set.of(), Set.of("keys/h.t"), Set.of()))
        .hasMessageStartingWith("client c: 'keys/h.t' is no name or pattern of keys");
  }

  @Test
  void page_tokens_come_back_as_they_went() {
    Predicate<String> isName = "keys/hot"::equals;
    assertThat(PageToken.parse(PageToken.after("keys/hot"), isName)).isEqualTo("keys/hot");
    assertThat(PageToken.parse("", isName)).isEmpty();
    assertThatThrownBy(() -> PageToken.parse(PageToken.after("keys/cold"), isName))
        .isInstanceOf(CustodyException.class);
    String token = PageToken.after("keys/hot");
    for (int i = 0; i < token.length(); i++) {
      char[] altered = token.toCharArray();
      altered[i] = altered[i] == 'A' ? 'B' : 'A';
      assertThatThrownBy(() -> PageToken.parse(new String(altered), isName))
          .isInstanceOf(CustodyException.class);
    }
  }
}
