package io.coterie.platform.bip32;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The vectors are those of BIP-32; of the chains, the steps that need no private key. */
class ExtendedPublicKeyTest {
  /** Vector 2, m. */
  private static final String ROOT =
      "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB";

  @ParameterizedTest(name = "vector {0}")
  @CsvSource({
    // m/0H, then 1
    "1,xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw,1,xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ",
    // m/0H/1/2H, then 2, then 1000000000
    "1,xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5,2,xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV",
    "1,xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV,1000000000,xpub6H1LXWLaKsWFhvm6RVpEL9P4KfRZSW7abD2ttkWP3SSQvnyA8FSVqNTEcYFgJS2UaFcxupHiYkro49S8yGasTvXEYBVPamhGW6cFJodrTHy",
    // m, then 0
    "2,xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB,0,xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH",
    // m/0/2147483647H, then 1
    "2,xpub6ASAVgeehLbnwdqV6UKMHVzgqAG8Gr6riv3Fxxpj8ksbH9ebxaEyBLZ85ySDhKiLDBrQSARLq1uNRts8RuJiHjaDMBU4Zn9h8LZNnBC5y4a,1,xpub6DF8uhdarytz3FWdA8TvFSvvAh8dP3283MY7p2V4SeE2wyWmG5mg5EwVvmdMVCQcoNJxGoWaU9DCWh89LojfZ537wTfunKau47EL2dhHKon",
    // m/0/2147483647H/1/2147483646H, then 2
    "2,xpub6ERApfZwUNrhLCkDtcHTcxd75RbzS1ed54G1LkBUHQVHQKqhMkhgbmJbZRkrgZw4koxb5JaHWkY4ALHY2grBGRjaDMzQLcgJvLJuZZvRcEL,2,xpub6FnCn6nSzZAw5Tw7cgR9bi15UV96gLZhjDstkXXxvCLsUXBGXPdSnLFbdpq8p9HmGsApME5hQTZ3emM2rnY5agb9rXpVGyy3bdW6EEgAtqt",
  })
  void derives_what_the_standard_says(int vector, String parent, int number, String child) {
    ExtendedPublicKey derived = ExtendedPublicKey.parse(parent).derive(List.of(number));
    assertThat(derived.xpub()).isEqualTo(child);
    assertThat(derived).hasToString(child);
  }

  /** Vectors 3 and 4 have no step without private keys; they are about leading zeros. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        ROOT,
        "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8",
        "xpub661MyMwAqRbcGczjuMoRm6dXaLDEhW1u34gKenbeYqAix21mdUKJyuyu5F1rzYGVxyL6tmgBUAEPrEz92mBXjByMRiJdba9wpnN37RLLAXa",
        "xpub69AUMk3qDBi3uW1sXgjCmVjJ2G6WQoYSnNHyzkmdCHEhSZ4tBok37xfFEqHd2AddP56Tqp4o56AePAgCjYdvpW2PU2jbUPFKsav5ut6Ch1m",
        "xpub6BJA1jSqiukeaesWfxe6sNK9CCGaujFFSJLomWHprUL9DePQ4JDkM5d88n49sMGJxrhpjazuXYWdMf17C9T5XnxkopaeS7jGk1GyyVziaMt",
      })
  void reads_what_it_writes(String xpub) {
    assertThat(ExtendedPublicKey.parse(xpub).xpub()).isEqualTo(xpub);
  }

  /** Vector 5, with the private ones: none is an extended public key. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        // The version of the other kind
        "xpub661MyMwAqRbcEYS8w7XLSVeEsBXy79zSzH1J8vCdxAZningWLdN3zgtU6LBpB85b3D2yc8sfvZU521AAwdZafEz7mnzBBsz4wKY5fTtTQBm",
        "xprv9s21ZrQH143K24Mfq5zL5MhWK9hUhhGbd45hLXo2Pq2oqzMMo63oStZzFGTQQD3dC4H2D5GBj7vWvSQaaBv5cxi9gafk7NF3pnBju6dwKvH",
        // Prefix 04, 01
        "xpub661MyMwAqRbcEYS8w7XLSVeEsBXy79zSzH1J8vCdxAZningWLdN3zgtU6Txnt3siSujt9RCVYsx4qHZGc62TG4McvMGcAUjeuwZdduYEvFn",
        "xpub661MyMwAqRbcEYS8w7XLSVeEsBXy79zSzH1J8vCdxAZningWLdN3zgtU6N8ZMMXctdiCjxTNq964yKkwrkBJJwpzZS4HS2fxvyYUA4q2Xe4",
        // Depth zero with parent, with number
        "xpub661no6RGEX3uJkY4bNnPcw4URcQTrSibUZ4NqJEw5eBkv7ovTwgiT91XX27VbEXGENhYRCf7hyEbWrR3FewATdCEebj6znwMfQkhRYHRLpJ",
        "xpub661MyMwAuDcm6CRQ5N4qiHKrJ39Xe1R1NyfouMKTTWcguwVcfrZJaNvhpebzGerh7gucBvzEQWRugZDuDXjNDRmXzSZe4c7mnTK97pTvGS8",
        // Unknown version
        "DMwo58pR1QLEFihHiXPVykYB6fJmsTeHvyTp7hRThAtCX8CvYzgPcn8XnmdfHGMQzT7ayAmfo4z3gY5KfbrZWZ6St24UVf2Qgo6oujFktLHdHY4",
        // Not on the curve
        "xpub661MyMwAqRbcEYS8w7XLSVeEsBXy79zSzH1J8vCdxAZningWLdN3zgtU6Q5JXayek4PRsn35jii4veMimro1xefsM58PgBMrvdYre8QyULY",
        // Checksum
        "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHL",
      })
  void refuses_the_invalid_keys_of_the_standard(String text) {
    assertThatThrownBy(() -> ExtendedPublicKey.parse(text))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void refuses_any_other_text() {
    Random random = new Random(32);
    for (int i = 0; i < 2000; i++) {
      StringBuilder text = new StringBuilder(ROOT);
      text.setCharAt(random.nextInt(text.length()), (char) random.nextInt(0x250));
      text.setLength(text.length() - random.nextInt(3));
      String changed = text.toString();
      if (!changed.equals(ROOT)) {
        assertThatThrownBy(() -> ExtendedPublicKey.parse(changed))
            .isInstanceOf(IllegalArgumentException.class);
      }
    }
    for (String text : List.of("", "1".repeat(82), "z".repeat(1 << 20))) {
      assertThatThrownBy(() -> ExtendedPublicKey.parse(text))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void a_path_is_its_steps() {
    ExtendedPublicKey root = ExtendedPublicKey.parse(ROOT);
    assertThat(root.derive(List.of()).xpub()).isEqualTo(ROOT);
    assertThat(root.derive(List.of(0, 5, Integer.MAX_VALUE)).xpub())
        .isEqualTo(
            root.derive(List.of(0)).derive(List.of(5)).derive(List.of(Integer.MAX_VALUE)).xpub());
    assertThat(ExtendedPublicKey.of(root.publicKey(), root.chainCode()).xpub()).isEqualTo(ROOT);
  }

  @Test
  void refuses_hardened_and_long_paths_and_bad_keys() {
    ExtendedPublicKey root = ExtendedPublicKey.parse(ROOT);
    assertThatThrownBy(() -> root.derive(List.of(0, Integer.MIN_VALUE)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("hardened");
    assertThatThrownBy(() -> root.derive(List.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)))
        .isInstanceOf(IllegalArgumentException.class);
    ByteString key = root.publicKey();
    ByteString chainCode = root.chainCode();
    ByteString offCurve =
        ByteString.fromHex("020000000000000000000000000000000000000000000000000000000000000007");
    for (ByteString bad :
        List.of(
            ByteString.EMPTY,
            key.substring(1),
            key.concat(key),
            ByteString.fromHex("04").concat(key.substring(1)),
            ByteString.copyFrom(new byte[33]),
            offCurve)) {
      assertThatThrownBy(() -> ExtendedPublicKey.of(bad, chainCode))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> ExtendedPublicKey.of(key, chainCode.substring(1)))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
