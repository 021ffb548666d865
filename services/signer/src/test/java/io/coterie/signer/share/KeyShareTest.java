package io.coterie.signer.share;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

class KeyShareTest {
  /** The generator of secp256k1: the public key of the private key 1, whose addresses are known. */
  private static final String GENERATOR =
      "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

  private static KeyShare share(Scheme scheme, String publicKey, int chainCode, String sealed) {
    return new KeyShare(
        "keys/treasury",
        3,
        scheme,
        KeyShare.State.ACTIVE,
        List.of(1, 2, 300),
        List.of(1, 2, 300),
        KeyPublic.newBuilder()
            .setKeyId("keys/treasury")
            .setThreshold(2)
            .setEpoch(3)
            .setPublicKey(ByteString.copyFrom(HexFormat.of().parseHex(publicKey)))
            .setChainCode(ByteString.copyFrom(new byte[chainCode]))
            .build(),
        ByteString.copyFromUtf8(sealed),
        new KeyShare.Origin(
            new SessionId(ByteString.copyFrom(new byte[32])),
            "coordinator-1",
            "wallet",
            "request",
            ByteString.copyFrom(new byte[32])),
        null);
  }

  @Test
  void facts_of_an_ecdsa_key_have_its_addresses() {
    assertThat(share(Scheme.SCHEME_ECDSA_SECP256K1, GENERATOR, 32, "sealed").lines())
        .startsWith(
            "keys/treasury",
            "  scheme      ecdsa-secp256k1",
            "  shares      2 of parties [1, 2, 300]",
            "  epoch       3",
            "  public key  " + GENERATOR)
        .anyMatch(line -> line.startsWith("  xpub        xpub661"))
        .anyMatch(line -> line.matches(" {2}fingerprint {1}([0-9a-f]{4} ){7}[0-9a-f]{4}"))
        .endsWith(
            "  ethereum    0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf",
            "  bitcoin     bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4");
  }

  @Test
  void facts_of_keys_of_other_schemes_have_theirs() {
    assertThat(share(Scheme.SCHEME_ED25519, "00".repeat(32), 0, "sealed").lines())
        .contains("  solana      " + "1".repeat(32))
        .noneMatch(line -> line.contains("ethereum") || line.contains("bitcoin"));
    assertThat(share(Scheme.SCHEME_BIP340_SECP256K1, GENERATOR, 32, "sealed").lines())
        .contains("  public key  " + GENERATOR.substring(2))
        .anyMatch(line -> line.startsWith("  bitcoin     bc1p"))
        .noneMatch(line -> line.contains("ethereum"));
    assertThat(share(Scheme.SCHEME_BLS12381, "00".repeat(48), 0, "sealed").lines()).hasSize(6);
  }

  @Test
  void a_party_that_has_left_says_so() {
    assertThat(share(Scheme.SCHEME_ED25519, "00".repeat(32), 0, "").lines())
        .contains("  epoch       3, of which this party has no share");
  }
}
