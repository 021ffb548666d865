package io.coterie.platform.scheme;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import io.coterie.platform.intent.KeyTarget;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** A derived key is remembered for exactly what it follows from. */
class RecentKeysTest {
  private static final ByteString KEY = ByteString.copyFromUtf8("key");
  private static final ByteString CODE = ByteString.copyFromUtf8("code");
  private static final KeyTarget TARGET = KeyTarget.at(List.of(1, 2));

  private final RecentKeys recent = new RecentKeys();
  private final AtomicInteger derived = new AtomicInteger();

  private ByteString get(SchemeKeys scheme, ByteString key, ByteString code, KeyTarget target) {
    return recent.get(
        scheme,
        key,
        code,
        target,
        _ -> ByteString.copyFromUtf8("derived " + derived.incrementAndGet()));
  }

  private ByteString get(KeyTarget target) {
    return get(SchemeKeys.BIP340_SECP256K1, KEY, CODE, target);
  }

  @Test
  void the_same_is_derived_once_and_anything_else_by_itself() {
    ByteString first = get(TARGET);
    assertThat(get(KeyTarget.at(List.of(1, 2)))).isEqualTo(first);
    assertThat(derived).hasValue(1);
    ByteString root = ByteString.copyFrom(new byte[32]);
    List<ByteString> others =
        List.of(
            get(SchemeKeys.ECDSA_SECP256K1, KEY, CODE, TARGET),
            get(SchemeKeys.BIP340_SECP256K1, CODE, CODE, TARGET),
            get(SchemeKeys.BIP340_SECP256K1, KEY, KEY, TARGET),
            get(KeyTarget.at(List.of(1))),
            get(KeyTarget.at(List.of(2, 1))),
            get(KeyTarget.SELF),
            get(new KeyTarget(List.of(1, 2), Optional.of(ByteString.EMPTY))),
            get(new KeyTarget(List.of(1, 2), Optional.of(root))));
    assertThat(others).doesNotHaveDuplicates().doesNotContain(first);
  }

  /** Messages are read without a copy, and overwritten afterwards. */
  @Test
  void bytes_that_are_overwritten_later_change_nothing() {
    byte[] message = new byte[32];
    Arrays.fill(message, (byte) 7);
    ByteString root = UnsafeByteOperations.unsafeWrap(message);
    ByteString sevens = get(new KeyTarget(List.of(), Optional.of(root)));
    Arrays.fill(message, (byte) 0);
    ByteString zeros = ByteString.copyFrom(new byte[32]);
    assertThat(get(new KeyTarget(List.of(), Optional.of(zeros)))).isNotEqualTo(sevens);
    byte[] again = new byte[32];
    Arrays.fill(again, (byte) 7);
    ByteString same = ByteString.copyFrom(again);
    assertThat(get(new KeyTarget(List.of(), Optional.of(same)))).isEqualTo(sevens);
  }

  /** Else a key that was remembered for one target would be that of another. */
  @Test
  void bytes_that_are_overwritten_meanwhile_are_not_those_it_is_derived_from() {
    byte[] message = new byte[32];
    Arrays.fill(message, (byte) 7);
    ByteString bytes = UnsafeByteOperations.unsafeWrap(message);
    KeyTarget target = new KeyTarget(List.of(), Optional.of(bytes));
    ByteString sevens = ByteString.copyFrom(message);
    ByteString from =
        recent.get(
            SchemeKeys.BIP340_SECP256K1,
            bytes,
            bytes,
            target,
            name -> {
              Arrays.fill(message, (byte) 0);
              return name.publicKey()
                  .concat(name.chainCode())
                  .concat(name.target().taproot().orElseThrow());
            });
    assertThat(from).isEqualTo(sevens.concat(sevens).concat(sevens));
  }

  @Test
  void no_more_are_remembered_than_the_last() {
    ByteString first = get(TARGET);
    for (int i = 0; i < 3 * RecentKeys.MAX; i++) {
      get(KeyTarget.at(List.of(i)));
      if (i % 100 == 0) {
        assertThat(get(TARGET)).as("it is asked for").isEqualTo(first);
      }
    }
    assertThat(recent.size()).isEqualTo(RecentKeys.MAX);
  }

  @Test
  void a_target_that_does_not_exist_is_not_remembered() {
    assertThatThrownBy(
            () ->
                recent.get(
                    SchemeKeys.ECDSA_SECP256K1,
                    KEY,
                    CODE,
                    TARGET,
                    _ -> {
                      throw new IllegalArgumentException("none");
                    }))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(recent.size()).isZero();
  }
}
