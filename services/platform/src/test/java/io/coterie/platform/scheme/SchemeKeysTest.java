package io.coterie.platform.scheme;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class SchemeKeysTest {
  private static final KeyPublic SECP256K1 =
      KeyPublic.newBuilder()
          .setPublicKey(
              ByteString.fromHex(
                  "03d6889cb081036e0faefa3a35157ad71086b123b2b144b649798b494c300a961d"))
          .setChainCode(ByteString.copyFrom(new byte[32]))
          .build();
  private static final KeyPublic ED25519 =
      KeyPublic.newBuilder().setPublicKey(ByteString.copyFrom(new byte[32])).build();

  /** BIP-341, wallet test vectors (scriptPubKey, 0 and 1), and BIP-86, first address. */
  @ParameterizedTest
  @CsvSource({
    "d6889cb081036e0faefa3a35157ad71086b123b2b144b649798b494c300a961d,'',53a1f6e454df1aa2776a2814a721372d6258050de330b3c6d10ee8f4e0dda343",
    "187791b6f712a8ea41c8ecdd0ee77fab3e85263b37e1ec18a3651926b3a6cf27,5b75adecf53548f3ec6ad7d78383bf84cc57b55a3127c72b9a2481752dd88b21,147c9c57132f6e7ecddba9800bb0c4449251c92a1e60371ee77557b6620f3ea3",
    "cc8a4bc64d897bddc5fbc2f670f7a8ba0b386779106cf1223c6fc5d7cd6fc115,'',a60869f0dbcf1dc659c9cecbaf8050135ea9e8cdc487053f1dc6880949dc684c",
  })
  void output_keys_are_those_of_the_standard(String internal, String root, String output) {
    assertThat(TaprootKey.output(ByteString.fromHex(internal), ByteString.fromHex(root)))
        .isEqualTo(ByteString.fromHex(output));
  }

  @Test
  void an_output_key_needs_a_point_and_a_root_of_the_right_length() {
    ByteString internal = TaprootKey.xOnly(SECP256K1.getPublicKey());
    assertThatThrownBy(() -> TaprootKey.output(internal, ByteString.copyFrom(new byte[31])))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> TaprootKey.output(internal.substring(1), ByteString.EMPTY))
        .isInstanceOf(IllegalArgumentException.class);
    // BIP-340, vector 5: not on the curve.
    ByteString nowhere =
        ByteString.fromHex("eefdea4cdb677750a420fee807eacf21eb9898ae79b9768766e4faa04a2d4a34");
    assertThatThrownBy(() -> TaprootKey.output(nowhere, ByteString.EMPTY))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @ParameterizedTest
  @EnumSource
  void every_scheme_that_an_intent_can_name_has_keys(Scheme scheme) {
    if (Arrays.asList(Scheme.SCHEME_UNSPECIFIED, Scheme.UNRECOGNIZED).contains(scheme)) {
      assertThatThrownBy(() -> SchemeKeys.of(scheme)).isInstanceOf(IllegalArgumentException.class);
    } else {
      KeyPublic key = SchemeKeys.of(scheme).xpub(SECP256K1).isPresent() ? SECP256K1 : ED25519;
      assertThat(SchemeKeys.of(scheme).verifyingKey(key, KeyTarget.SELF)).isNotEmpty();
    }
  }

  @Test
  void bip340_keys_have_no_parity_at_any_target() {
    List<Integer> path = List.of(0, 7);
    ByteString child =
        ExtendedPublicKey.of(SECP256K1.getPublicKey(), SECP256K1.getChainCode())
            .derive(path)
            .publicKey()
            .substring(1);
    SchemeKeys keys = SchemeKeys.of(Scheme.SCHEME_BIP340_SECP256K1);
    assertThat(keys.verifyingKey(SECP256K1, KeyTarget.SELF))
        .isEqualTo(SECP256K1.getPublicKey().substring(1));
    assertThat(keys.verifyingKey(SECP256K1, KeyTarget.at(path))).isEqualTo(child);
    assertThat(keys.verifyingKey(SECP256K1, new KeyTarget(path, Optional.of(ByteString.EMPTY))))
        .isEqualTo(TaprootKey.output(child, ByteString.EMPTY));
    assertThat(keys.xpub(SECP256K1)).hasValueSatisfying(x -> assertThat(x).startsWith("xpub"));
  }

  @Test
  void a_scheme_has_no_other_targets_than_its_own() {
    KeyTarget child = KeyTarget.at(List.of(1));
    KeyTarget output = new KeyTarget(List.of(), Optional.of(ByteString.EMPTY));
    for (Scheme scheme : List.of(Scheme.SCHEME_ED25519, Scheme.SCHEME_BLS12381)) {
      assertThat(SchemeKeys.of(scheme).xpub(ED25519)).isEmpty();
      assertThatThrownBy(() -> SchemeKeys.of(scheme).verifyingKey(ED25519, child))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> SchemeKeys.of(scheme).verifyingKey(ED25519, output))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(
            () -> SchemeKeys.of(Scheme.SCHEME_ECDSA_SECP256K1).verifyingKey(SECP256K1, output))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
