package io.coterie.coordinator.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.TestKeys;
import io.coterie.coordinator.session.ResultVerifier.Claim;
import io.coterie.coordinator.verification.BlstVerifier;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.VerifyCall;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;
import supranational.blst.P2;
import supranational.blst.P2_Affine;

class SignatureChecksTest {
  private final ArrayDeque<Runnable> pool = new ArrayDeque<>();
  private final List<String> checked = new ArrayList<>();
  private final List<String> told = new ArrayList<>();
  private final SignatureChecks checks =
      new SignatureChecks(
          ProtocolId.PROTOCOL_ID_BLS_SIGN, new Recording(), this::coreVerifies, pool::add);

  /** The core takes for valid all but "odd", about which the two differ. */
  private boolean coreVerifies(VerifyCall call) {
    assertThat(call.getProtocol()).isEqualTo(ProtocolId.PROTOCOL_ID_BLS_SIGN);
    List<String> payloads =
        call.getClaimsList().stream().map(claim -> claim.getPayload().toStringUtf8()).toList();
    checked.add("core: " + String.join("+", payloads));
    return !payloads.contains("odd");
  }

  /** Takes for valid what does not begin with "wrong"; breaks on "broken". */
  private final class Recording implements ResultVerifier {
    @Override
    public boolean verifies(ByteString publicKey, ByteString payload, Signature signature) {
      throw new AssertionError("all are checked together");
    }

    @Override
    public boolean verifiesAll(List<Claim> claims) {
      checked.add(
          String.join("+", claims.stream().map(claim -> claim.payload().toStringUtf8()).toList()));
      return claims.stream().allMatch(claim -> valid(claim.payload()));
    }

    private boolean valid(ByteString payload) {
      if (payload.toStringUtf8().startsWith("broken")) {
        throw new IllegalStateException("as told");
      }
      return !payload.toStringUtf8().startsWith("wrong");
    }

    @Override
    public boolean isSound(KeyPublic key) {
      return true;
    }
  }

  private void check(String payload) {
    check(checks, ByteString.EMPTY, payload, ByteString.EMPTY);
  }

  private void check(
      SignatureChecks by, ByteString publicKey, String payload, ByteString signature) {
    by.check(
        new Claim(
            publicKey,
            ByteString.copyFromUtf8(payload),
            new Signature(signature, OptionalInt.empty())),
        valid -> told.add(payload + (valid ? " is valid" : " is not")));
  }

  private void run() {
    while (!pool.isEmpty()) {
      pool.remove().run();
    }
  }

  @Test
  void one_that_finds_nobody_is_checked_alone() {
    check("a");
    run();
    check("b");
    run();
    assertThat(checked).containsExactly("a", "core: a", "b", "core: b");
    assertThat(told).containsExactly("a is valid", "b is valid");
  }

  @Test
  void those_that_wait_are_checked_together() {
    check("a");
    check("b");
    check("c");
    run();
    assertThat(checked).containsExactly("a+b+c", "core: a+b+c");
    assertThat(told).containsExactly("a is valid", "b is valid", "c is valid");
    assertThat(pool).isEmpty();
  }

  @Test
  void a_wrong_one_costs_a_check_of_each_and_no_other_its_signature() {
    check("a");
    check("wrong");
    check("b");
    run();
    assertThat(checked).containsExactly("a+wrong+b", "a", "core: a", "wrong", "b", "core: b");
    assertThat(told).containsExactly("a is valid", "wrong is not", "b is valid");
  }

  @Test
  void both_have_to_say_so() {
    check("odd");
    run();
    check("a");
    check("odd");
    run();
    assertThat(told).containsExactly("odd is not", "a is valid", "odd is not");
  }

  @Test
  void one_that_cannot_be_checked_is_not_valid_and_holds_nobody_up() {
    check("broken");
    check("a");
    run();
    check("broken alone");
    run();
    check("b");
    run();
    assertThat(told)
        .containsExactly("broken is not", "a is valid", "broken alone is not", "b is valid");
  }

  @Test
  void a_listener_that_fails_holds_nobody_up() {
    checks.check(
        new Claim(
            ByteString.EMPTY,
            ByteString.EMPTY,
            new Signature(ByteString.EMPTY, OptionalInt.empty())),
        _ -> {
          throw new IllegalStateException("as told");
        });
    check("a");
    run();
    check("b");
    run();
    assertThat(told).containsExactly("a is valid", "b is valid");
  }

  /**
   * Their sum is that of the right ones. Each of the two that ship must see it without the other.
   */
  @Test
  void wrong_ones_that_make_up_for_each_other_are_refused_and_nothing_else_is() {
    TestKeys.Key key = TestKeys.deal(2, List.of(1, 2, 3), 1);
    P2_Affine added = new P2_Affine(key.sign("anything").toByteArray());
    P2 one = new P2(key.sign("one").toByteArray()).add(added);
    P2 two = new P2(key.sign("two").toByteArray()).add(new P2(added).neg());
    Believing believing = new Believing();
    NativeMpcCore core = NativeMpcCore.load();
    for (SignatureChecks by :
        List.of(
            new SignatureChecks(
                ProtocolId.PROTOCOL_ID_BLS_SIGN, new BlstVerifier(), _ -> true, pool::add),
            new SignatureChecks(
                ProtocolId.PROTOCOL_ID_BLS_SIGN, believing, core::verify, pool::add))) {
      told.clear();
      check(by, key.publicKey(), "zero", key.sign("zero"));
      check(by, key.publicKey(), "one", ByteString.copyFrom(one.compress()));
      check(by, key.publicKey(), "three", key.sign("three"));
      check(by, key.publicKey(), "two", ByteString.copyFrom(two.compress()));
      run();
      assertThat(told)
          .containsExactly("zero is valid", "one is not", "three is valid", "two is not");
    }
    assertThat(believing.asked).containsExactly(4, 1, 1, 1, 1);
  }

  private static final class Believing implements ResultVerifier {
    private final List<Integer> asked = new ArrayList<>();

    @Override
    public boolean verifies(ByteString publicKey, ByteString payload, Signature signature) {
      return true;
    }

    @Override
    public boolean verifiesAll(List<Claim> claims) {
      return asked.add(claims.size());
    }

    @Override
    public boolean isSound(KeyPublic key) {
      return true;
    }
  }

  @Test
  void more_than_one_check_takes_wait_for_the_next_one() {
    for (int i = 0; i <= SignatureChecks.MOST_TOGETHER; i++) {
      check("a");
    }
    pool.remove().run();
    assertThat(told).hasSize(SignatureChecks.MOST_TOGETHER);
    run();
    assertThat(told).hasSize(SignatureChecks.MOST_TOGETHER + 1);
  }
}
