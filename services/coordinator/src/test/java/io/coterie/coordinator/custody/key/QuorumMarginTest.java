package io.coterie.coordinator.custody.key;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.key.KeyStore.Quorums;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.trust.Member;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class QuorumMarginTest {
  private Supplier<List<Quorums>> stored = List::of;
  private Set<Integer> reachable = Set.of();
  private boolean connected = true;
  private long nanos;

  private final QuorumMargin margin =
      new QuorumMargin(
          answering(KeyStore.class, "quorums", () -> stored.get()),
          () ->
              connected
                  ? Optional.of(answering(SecureChannel.class, "reachable", this::members))
                  : Optional.empty(),
          () -> nanos);

  /** An object of which nothing but one method without arguments is used. */
  private static <T> T answering(Class<T> type, String method, Supplier<?> answer) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, called, arguments) -> {
              assertThat(called.getName()).isEqualTo(method);
              return answer.get();
            }));
  }

  private Set<Member> members() {
    return reachable.stream()
        .map(
            id ->
                new Member(
                    "party-" + id,
                    Member.Role.PARTY,
                    id,
                    "nowhere",
                    new UUID(0, id),
                    1,
                    new byte[33],
                    new byte[32]))
        .collect(Collectors.toSet());
  }

  @Test
  void is_that_of_the_key_with_the_least_reserve() {
    stored = () -> List.of(new Quorums(2, Set.of(1, 2, 3, 4)), new Quorums(3, Set.of(1, 2, 3)));
    reachable = Set.of(1, 2, 3, 4);
    assertThat(margin.parties()).isZero();
    reachable = Set.of(2, 3, 4);
    assertThat(margin.parties()).isEqualTo(-1);
    connected = false;
    assertThat(margin.parties()).isEqualTo(-3);
  }

  @Test
  void is_no_number_without_keys_or_without_an_answer_of_the_database() {
    assertThat(margin.parties()).isNaN();
    nanos += 60_000_000_000L;
    stored =
        () -> {
          throw new StoreUnavailableException("gone", new IllegalStateException());
        };
    assertThat(margin.parties()).isNaN();
  }

  @Test
  void asks_the_database_again_after_a_while_only() {
    stored = () -> List.of(new Quorums(1, Set.of(1)));
    reachable = Set.of(1);
    assertThat(margin.parties()).isZero();
    stored = () -> List.of(new Quorums(1, Set.of(2)));
    assertThat(margin.parties()).isZero();
    nanos += 60_000_000_000L;
    assertThat(margin.parties()).isEqualTo(-1);
  }
}
