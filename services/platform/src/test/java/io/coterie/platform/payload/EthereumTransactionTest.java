package io.coterie.platform.payload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.esaulpaugh.headlong.rlp.RLPEncoder;
import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.proto.custody.v1.SigningIntent;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.crypto.params.ECDomainParameters;
import org.bouncycastle.crypto.params.ECPublicKeyParameters;
import org.bouncycastle.crypto.signers.ECDSASigner;
import org.bouncycastle.math.ec.ECPoint;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class EthereumTransactionTest {
  /** The example of EIP-155. */
  static final ByteString EIP_155 =
      ByteString.fromHex(
          "ec098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080");

  /** With access list, by ethers 6.17.0. */
  static final ByteString EIP_2930 =
      ByteString.fromHex(
          "01f8e401078506fc23ac00830186a0945aaeb6053f3e94c9b9a09f33669435e7ef1beaed880de0b6b3a7640000b844a9059cbb00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000f872f85994de0b295669a9fd93d5f28d9ec85e40f4cb697baef842a00000000000000000000000000000000000000000000000000000000000000003a00000000000000000000000000000000000000000000000000000000000000007d694bb9bc244d798123fde783fcc1c72d3bb8c189413c0");

  /** A contract creation, by ethers 6.17.0. */
  static final ByteString EIP_1559 =
      ByteString.fromHex("02dd83aa36a7808459682f008509502f900082cf08808086600160005500c0");

  private static final ByteString ANY_KEY = ByteString.copyFrom(new byte[33]);

  private static DecodedPayload decode(ByteString transaction) throws IntentException {
    return Payloads.decode(
        SigningIntent.newBuilder().setEthereumTransaction(transaction).build(), ANY_KEY);
  }

  private static void assertRefused(IntentProblem problem, ByteString transaction) {
    PayloadsTest.assertRefused(
        problem, SigningIntent.newBuilder().setEthereumTransaction(transaction).build(), ANY_KEY);
  }

  private static void assertRefused(IntentProblem problem, String hex) {
    assertRefused(problem, ByteString.fromHex(hex));
  }

  @Test
  void the_example_of_eip_155() throws Exception {
    DecodedPayload decoded = decode(EIP_155);
    assertThat(decoded.toSign())
        .isEqualTo(
            ByteString.fromHex("daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"));
    assertThat(PayloadsTest.text(decoded))
        .isEqualTo(
            """
            type: legacy
            chain id: 1
            to: 0x3535353535353535353535353535353535353535
            value: 1000000000000000000
            nonce: 9
            gas limit: 21000
            gas price: 20000000000
            fee at most: 420000000000000 wei, 0.00042 ether
            data length: 0
            """);
    assertThat(
            EthereumTransaction.decode(EIP_155)
                .signed(
                    ByteString.fromHex(
                        "28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa63627667cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"),
                    0))
        .isEqualTo(
            ByteString.fromHex(
                "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"));
  }

  /** Digest, signature and signed form by ethers 6.17.0. */
  @Test
  void transactions_with_a_type() throws Exception {
    assertThat(EthereumTransaction.decode(EIP_2930).digest())
        .isEqualTo(
            ByteString.fromHex("e367af50d288c1300fab139e62a1110af191e2b35cb63d5ab2e79cd366a792a6"));
    PayloadsTest.assertNotRead(
        "value with a call",
        SigningIntent.newBuilder().setEthereumTransaction(EIP_2930).build(),
        ANY_KEY);
    // The same without its value, which takes eight bytes behind their length
    DecodedPayload call =
        decode(
            ByteString.fromHex(
                PayloadsTest.hex(EIP_2930)
                    .replace("01f8e4", "01f8dc")
                    .replace("880de0b6b3a7640000", "80")));
    assertThat(PayloadsTest.text(call))
        .isEqualTo(
            """
            type: EIP-2930
            chain id: 1
            to: 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed
            value: 0
            nonce: 7
            gas limit: 100000
            gas price: 30000000000
            fee at most: 3000000000000000 wei, 0.003 ether
            data length: 68
            call: transfer(address,uint256)
            call recipient: 0x0000000000000000000000000000000000000000
            call amount: 0
            access list length: 2
            access 0: 0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe
            access 0 slot: 0x%s3
            access 0 slot: 0x%s7
            access 1: 0xBB9bc244D798123fDe783fCc1C72d3Bb8C189413
            """
                .formatted("0".repeat(63), "0".repeat(63)));
    assertThat(
            EthereumTransaction.decode(EIP_2930)
                .signed(
                    ByteString.fromHex(
                        "6cf669314047140e101ac00dce40b790bbf294fcda09d61f5987137c807244e1511264ad504ee1b8e94fa70ae63eb9f62c2868d9f76c0d196f02e0345d326316"),
                    0))
        .isEqualTo(
            ByteString.fromHex(
                "01f9012701078506fc23ac00830186a0945aaeb6053f3e94c9b9a09f33669435e7ef1beaed880de0b6b3a7640000b844a9059cbb00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000f872f85994de0b295669a9fd93d5f28d9ec85e40f4cb697baef842a00000000000000000000000000000000000000000000000000000000000000003a00000000000000000000000000000000000000000000000000000000000000007d694bb9bc244d798123fde783fcc1c72d3bb8c189413c080a06cf669314047140e101ac00dce40b790bbf294fcda09d61f5987137c807244e1a0511264ad504ee1b8e94fa70ae63eb9f62c2868d9f76c0d196f02e0345d326316"));

    assertThat(EthereumTransaction.decode(EIP_1559).digest())
        .isEqualTo(
            ByteString.fromHex("c442b30465c87263d7851a2945ae062128ceb6e36063467bb12588a42589a532"));
    assertThat(
            EthereumTransaction.decode(EIP_1559)
                .signed(
                    ByteString.fromHex(
                        "41f1e0c41562e3095f41bd353ec00c0f54380df3924bee87b3d8f528f71fc93406aed55a761368eab59aa57605cd58eec395a6469986cfb0767fe8b400d878d0"),
                    0))
        .isEqualTo(
            ByteString.fromHex(
                "02f86083aa36a7808459682f008509502f900082cf08808086600160005500c080a041f1e0c41562e3095f41bd353ec00c0f54380df3924bee87b3d8f528f71fc934a006aed55a761368eab59aa57605cd58eec395a6469986cfb0767fe8b400d878d0"));
  }

  @Test
  void a_transfer_after_eip_1559() throws Exception {
    ByteString to = ByteString.fromHex("5aaeb6053f3e94c9b9a09f33669435e7ef1beaed");
    ByteString transfer =
        ByteString.fromHex("02eb83aa36a7808459682f008509502f9000825208")
            .concat(ByteString.fromHex("94"))
            .concat(to)
            .concat(ByteString.fromHex("0580c0"));
    assertThat(PayloadsTest.text(decode(transfer)))
        .isEqualTo(
            """
            type: EIP-1559
            chain id: 11155111
            to: 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed
            value: 5
            nonce: 0
            gas limit: 21000
            max fee per gas: 40000000000
            max priority fee per gas: 1500000000
            fee at most: 840000000000000 wei, 0.00084 ether
            data length: 0
            access list length: 0
            """);
  }

  /** Nobody reads its code. */
  @Test
  void the_creation_of_a_contract_is_refused() {
    byte[] no = new byte[0];
    ByteString empty =
        legacy(hex("01"), hex("01"), hex("5208"), no, hex("01"), no, hex("01"), no, no);
    for (ByteString creation : List.of(EIP_1559, empty)) {
      PayloadsTest.assertNotRead(
          "creation of a contract",
          SigningIntent.newBuilder().setEthereumTransaction(creation).build(),
          ANY_KEY);
    }
  }

  /**
   * Published with ethereumjs (packages/tx/test/json/eip1559.json): signed transactions of one
   * private key. Unsigned, they must give back the digest that the signature is for.
   */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "02f870821e8e8203338301284d8301d97c828ae094000000000000000000000000000000000000aaaa8402933bc980c080a0d067f2167008c59219652f91cbf8788dbca5f771f6e91e2b7657e85b78b472e0a01d305af9fe81fdba43f0dfcd400ed24dcace0a7e30d4e85701dcaaf484cd079e",
        "02f86f821e8e8201618297c283021467827f5194000000000000000000000000000000000000aaaa8403b08b3380c001a004205678f13fc1d7b10feea6513dfa76e24418b6e08097d95c6f93a3b64e536da01d45ad61bfece43862de2cce7d2575a8c1d08c26c87f3cb5f26d7b0be54a91b2",
        "02f86e821e8e8203ab82b0a08301660082aff794000000000000000000000000000000000000aaaa832a76b980c001a0a0e7d9b07c7ec68f24788a554f993b99d59a3f08439cc6c942f62ea0341f2aeba078122b9957c146f7c87811bd58a7e9916ca8c07dabcf875b97bbdef79cb9c197",
      })
  void the_published_signatures_are_for_our_digest(String hex) throws Exception {
    ByteString published = ByteString.fromHex(hex);
    // The signature is what comes after its parity, which is one byte; the rest is the list's.
    ByteString signature =
        published
            .substring(published.size() - 65, published.size() - 33)
            .concat(published.substring(published.size() - 32));
    int recoveryId = published.byteAt(published.size() - 67) == (byte) 0x80 ? 0 : 1;
    ByteString content = published.substring(3, published.size() - 67);
    ByteString unsigned =
        ByteString.fromHex("02")
            .concat(
                content.size() < 56
                    ? ByteString.copyFrom(new byte[] {(byte) (0xc0 + content.size())})
                    : ByteString.copyFrom(new byte[] {(byte) 0xf8, (byte) content.size()}))
            .concat(content);

    EthereumTransaction transaction = EthereumTransaction.decode(unsigned);
    assertThat(transaction.signed(signature, recoveryId)).isEqualTo(published);

    X9ECParameters curve = CustomNamedCurves.getByName("secp256k1");
    ECPoint key =
        curve
            .getG()
            .multiply(
                new BigInteger(
                    "8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63", 16));
    ECDSASigner verifier = new ECDSASigner();
    verifier.init(
        false,
        new ECPublicKeyParameters(
            key, new ECDomainParameters(curve.getCurve(), curve.getG(), curve.getN())));
    assertThat(
            verifier.verifySignature(
                transaction.digest().toByteArray(),
                new BigInteger(1, signature.substring(0, 32).toByteArray()),
                new BigInteger(1, signature.substring(32).toByteArray())))
        .isTrue();
  }

  /** A chain id above 110 takes two bytes of v; by ethers 6.17.0. */
  @Test
  void a_legacy_transaction_of_another_chain() throws Exception {
    EthereumTransaction transaction =
        EthereumTransaction.decode(
            ByteString.fromHex(
                "f83a0101825208945aaeb6053f3e94c9b9a09f33669435e7ef1beaed9a01000000000000000000000000000000000000000000000000008081898080"));
    assertThat(transaction.digest())
        .isEqualTo(
            ByteString.fromHex("e99acdcdaec4ae7a32126770048e4bb4c70c07d9af45733256babf5133eab161"));
    assertThat(
            transaction.signed(
                ByteString.fromHex(
                    "bb7a91efd6cd19d15e18ee3980d139fe8cbabea756a1aefb23339ba532d66851186a4eb3bab69baac0f30334a72003913aa57541df87b08fc22e242ec25602d3"),
                0))
        .isEqualTo(
            ByteString.fromHex(
                "f87b0101825208945aaeb6053f3e94c9b9a09f33669435e7ef1beaed9a010000000000000000000000000000000000000000000000000080820135a0bb7a91efd6cd19d15e18ee3980d139fe8cbabea756a1aefb23339ba532d66851a0186a4eb3bab69baac0f30334a72003913aa57541df87b08fc22e242ec25602d3"));
  }

  @Test
  void a_signature_must_be_one() throws Exception {
    EthereumTransaction transaction = EthereumTransaction.decode(EIP_1559);
    for (int recoveryId : new int[] {-1, 2, 3}) {
      assertThatThrownBy(() -> transaction.signed(ByteString.copyFrom(new byte[64]), recoveryId))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> transaction.signed(ByteString.copyFrom(new byte[65]), 0))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void refuses_every_truncation_and_every_trailing_byte() {
    for (ByteString good : List.of(EIP_155, EIP_2930, EIP_1559)) {
      for (int length = 0; length < good.size(); length++) {
        ByteString cut = good.substring(0, length);
        assertThatThrownBy(() -> decode(cut)).isInstanceOf(IntentException.class);
      }
      assertRefused(
          IntentProblem.ETHEREUM_TRANSACTION_MALFORMED, good.concat(ByteString.fromHex("00")));
      assertRefused(IntentProblem.ETHEREUM_TRANSACTION_MALFORMED, good.concat(good));
    }
  }

  private static ByteString legacy(Object... parts) {
    return ByteString.copyFrom(RLPEncoder.list(parts));
  }

  private static byte[] hex(String hex) {
    return HexFormat.of().parseHex(hex);
  }

  @ParameterizedTest
  @CsvSource({
    // nonce, gas price, gas limit, to, value, chain id, what is wrong
    "00,01,5208,35,01,01,leading zero",
    "0001,01,5208,35,01,01,leading zero",
    "01,0001,5208,35,01,01,leading zero",
    "01,01,005208,35,01,01,leading zero",
    "01,01,5208,35,0001,01,leading zero",
    "01,01,5208,35,01,0001,leading zero",
    "ffffffffffffffff,01,5208,35,01,01,nonce too large",
    "010000000000000000,01,5208,35,01,01,nonce too large",
    "01,01,010000000000000000,35,01,01,gas limit too large",
    "01,BIG,5208,35,01,01,gas price too large",
    "01,01,5208,35,BIG,01,value too large",
    "01,01,5208,35,01,BIG,chain id too large",
    "01,01,5208,3535,01,01,recipient",
  })
  void refuses_impossible_values(
      String nonce, String price, String limit, String to, String value, String chain, String why) {
    String big = "01" + "00".repeat(32);
    byte[] address = to.equals("35") ? hex("35".repeat(20)) : hex("35".repeat(19));
    ByteString transaction =
        legacy(
            hex(nonce),
            hex(price.replace("BIG", big)),
            hex(limit),
            address,
            hex(value.replace("BIG", big)),
            new byte[0],
            hex(chain.replace("BIG", big)),
            new byte[0],
            new byte[0]);
    assertRefused(IntentProblem.ETHEREUM_TRANSACTION_MALFORMED, transaction);
  }

  @Test
  void refuses_a_transaction_that_names_no_chain() {
    byte[] to = hex("35".repeat(20));
    byte[] no = new byte[0];
    assertRefused(
        IntentProblem.ETHEREUM_CHAIN_ID_MISSING,
        legacy(hex("01"), hex("01"), hex("5208"), to, hex("01"), no));
    assertRefused(
        IntentProblem.ETHEREUM_CHAIN_ID_MISSING,
        legacy(hex("01"), hex("01"), hex("5208"), to, hex("01"), no, no, no, no));
    assertRefused(
        IntentProblem.ETHEREUM_CHAIN_ID_MISSING,
        ByteString.fromHex("01").concat(legacy(no, no, no, no, to, no, no, List.of())));
  }

  @Test
  void refuses_what_is_no_unsigned_transaction() {
    for (String type : List.of("00c0", "03c0", "04c0", "7fc0", "01", "02")) {
      assertRefused(
          type.equals("01") || type.equals("02")
              ? IntentProblem.ETHEREUM_TRANSACTION_MALFORMED
              : IntentProblem.ETHEREUM_TRANSACTION_TYPE,
          type);
    }
    for (String bytes :
        List.of(
            "80",
            "b800",
            "bf",
            "c0",
            "c180",
            "ff",
            "f8",
            "f800",
            "ffffffffffffffffff",
            // Already signed: EIP-155's example
            "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83",
            // A length in more bytes than it needs
            "f82c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080",
            // A priority fee above the fee
            "02dd83aa36a7808509502f90008459682f0082cf08808086600160005500c0",
            // A list where a number should be, and the other way round
            "ec09c504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080",
            "02dd83aa36a7808459682f008509502f900082cf0880808660016000550080")) {
      assertRefused(IntentProblem.ETHEREUM_TRANSACTION_MALFORMED, bytes);
    }
  }

  @Test
  void refuses_lists_inside_lists_without_end_and_takes_long_ones() throws Exception {
    byte[] no = new byte[0];
    // 20,000 opening brackets
    byte[] deep = deep(20_000);
    assertRefused(IntentProblem.ETHEREUM_TRANSACTION_MALFORMED, ByteString.copyFrom(deep));

    List<Object> keys = Collections.nCopies(400, new byte[32]);
    List<Object> entries = new ArrayList<>();
    entries.add(List.of(new byte[20], keys));
    ByteString large =
        ByteString.fromHex("01")
            .concat(
                ByteString.copyFrom(
                    RLPEncoder.list(hex("01"), no, no, no, hex("35".repeat(20)), no, no, entries)));
    assertThat(PayloadsTest.text(decode(large)))
        .contains("access list length: 1\n", "access 0 slot: 0x" + "00".repeat(32) + "\n");
    for (Object entry :
        List.of(
            List.of(new byte[19], List.of()),
            List.of(new byte[20]),
            List.of(new byte[20], List.of(new byte[31])),
            List.of(new byte[20], List.of(List.of())),
            List.of(new byte[20], List.of(), List.of()),
            new byte[20])) {
      assertRefused(
          IntentProblem.ETHEREUM_TRANSACTION_MALFORMED,
          ByteString.fromHex("01")
              .concat(
                  ByteString.copyFrom(
                      RLPEncoder.list(
                          hex("01"), no, no, no, hex("35".repeat(20)), no, no, List.of(entry)))));
    }
  }

  /** The encoding of an empty list inside lists. */
  private static byte[] deep(int levels) {
    java.io.ByteArrayOutputStream reversed = new java.io.ByteArrayOutputStream();
    int size = 0;
    for (int i = 0; i < levels; i++) {
      int header;
      if (size < 56) {
        reversed.write(0xc0 + size);
        header = 1;
      } else {
        header = 1;
        for (int rest = size; rest > 0; rest >>>= 8) {
          reversed.write(rest);
          header++;
        }
        reversed.write(0xf7 + header - 1);
      }
      size += header;
    }
    byte[] out = reversed.toByteArray();
    for (int i = 0; i < out.length / 2; i++) {
      byte swap = out[i];
      out[i] = out[out.length - 1 - i];
      out[out.length - 1 - i] = swap;
    }
    return out;
  }

  @Test
  void a_shown_address_has_its_checksum() {
    // The examples of EIP-55.
    for (String address :
        List.of(
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "0xde709f2102306220921060314715629080e2fb77")) {
      assertThat(EthereumAddress.text(hex(address.substring(2).toLowerCase(java.util.Locale.ROOT))))
          .isEqualTo(address);
      assertThat(EthereumAddress.isValid(address)).isTrue();
    }
    assertThat(EthereumAddress.isValid("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD")).isFalse();
    // The key of the example of EIP-155 (private: 46 in every byte)
    assertThat(
            EthereumAddress.of(
                ByteString.fromHex(
                    "024bc2a31265153f07e70e0bab08724e6b85e217f8cd628ceb62974247bb493382")))
        .isEqualTo("0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F");
  }
}
