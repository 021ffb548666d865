package io.coterie.platform.payload;

import static org.assertj.core.api.Assertions.assertThat;

import com.esaulpaugh.headlong.rlp.RLPEncoder;
import com.google.protobuf.ByteString;
import io.coterie.proto.custody.v1.SigningIntent;
import java.math.BigInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Calls that people can read, and all others. */
class EthereumCallsTest {
  private static final ByteString ANY_KEY = ByteString.copyFrom(new byte[33]);
  private static final String ALICE =
      "0000000000000000000000005aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
  private static final String BOB =
      "000000000000000000000000fb6916095ca1df60bb79ce92ce3ea74c37c5d359";
  private static final String SEVEN = "%064x".formatted(7);
  private static final String MOST = "ff".repeat(32);
  private static final String NEARLY = "ff".repeat(31) + "fe";

  /** A transaction to a contract. */
  private static SigningIntent call(String data) {
    byte[] one = {1};
    byte[] no = {};
    byte[] contract = ByteString.fromHex("35".repeat(20)).toByteArray();
    return SigningIntent.newBuilder()
        .setEthereumTransaction(
            ByteString.copyFrom(
                RLPEncoder.list(
                    one,
                    one,
                    one,
                    contract,
                    no,
                    ByteString.fromHex(data).toByteArray(),
                    one,
                    no,
                    no)))
        .build();
  }

  private static String words(String arguments) {
    return arguments
        .replace("ALICE", ALICE)
        .replace("BOB", BOB)
        .replace("SEVEN", SEVEN)
        .replace("MOST", MOST)
        .replace("NEARLY", NEARLY)
        .replace("NONE", "%064x".formatted(0))
        .replace("TRUE", "%064x".formatted(1))
        .replace("AT4", "%064x".formatted(4 * 32))
        .replace("AT5", "%064x".formatted(5 * 32))
        .replace(" ", "");
  }

  /** The data are those that ethers 6.17.0 encodes. */
  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      value = {
        "a9059cbb ALICE SEVEN; transfer(address,uint256); recipient: ALICE| amount: 7",
        "095ea7b3 ALICE MOST; approve(address,uint256); spender: ALICE| amount or token: MOST, without limit",
        "095ea7b3 ALICE NEARLY; approve(address,uint256); spender: ALICE| amount or token: NEARLY",
        "a9059cbb ALICE MOST; transfer(address,uint256); recipient: ALICE| amount: MOST",
        "23b872dd ALICE BOB SEVEN; transferFrom(address,address,uint256);"
            + " owner: ALICE| recipient: BOB| amount or token: 7",
        "42842e0e ALICE BOB SEVEN; safeTransferFrom(address,address,uint256);"
            + " owner: ALICE| recipient: BOB| token: 7",
        "b88d4fde ALICE BOB SEVEN AT4 NONE; safeTransferFrom(address,address,uint256,bytes);"
            + " owner: ALICE| recipient: BOB| token: 7| data: none",
        "a22cb465 BOB TRUE; setApprovalForAll(address,bool); operator: BOB| approved: true",
        "a22cb465 BOB NONE; setApprovalForAll(address,bool); operator: BOB| approved: false",
        "f242432a ALICE BOB SEVEN SEVEN AT5 NONE;"
            + " safeTransferFrom(address,address,uint256,uint256,bytes);"
            + " owner: ALICE| recipient: BOB| token: 7| amount: 7| data: none",
      })
  void a_call_of_a_token_is_read(String data, String signature, String values) throws Exception {
    StringBuilder expected = new StringBuilder("call: " + signature + "\n");
    for (String value : values.split("\\| ")) {
      expected
          .append("call ")
          .append(
              value
                  .replace("ALICE", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
                  .replace("BOB", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359")
                  .replace("MOST", "" + new BigInteger(MOST, 16))
                  .replace("NEARLY", "" + new BigInteger(NEARLY, 16)))
          .append("\n");
    }
    assertThat(PayloadsTest.text(Payloads.decode(call(words(data)), ANY_KEY)))
        .contains("to: 0x3535353535353535353535353535353535353535\n")
        .endsWith(expected);
  }

  @ParameterizedTest
  @CsvSource({
    // No function: too short for one
    "00, data of fewer than 4 bytes",
    "a9059c, data of fewer than 4 bytes",
    // Functions that are not known here: multicall, execute, permit, a selector alone
    "ac9650d8 SEVEN, call of function 0xac9650d8",
    "3593564c, call of function 0x3593564c",
    "d505accf ALICE BOB SEVEN SEVEN SEVEN SEVEN SEVEN, call of function 0xd505accf",
    "00000000, call of function 0x00000000",
    // Known ones with arguments missing, cut, or followed by something
    "'a9059cbb', 'arguments of transfer(address,uint256)'",
    "'a9059cbb ALICE', 'arguments of transfer(address,uint256)'",
    "'a9059cbb ALICE 07', 'arguments of transfer(address,uint256)'",
    "'a9059cbb ALICE SEVEN 00', 'arguments of transfer(address,uint256)'",
    "'a9059cbb ALICE SEVEN NONE', 'arguments of transfer(address,uint256)'",
    // An address of more than 20 bytes, a truth that is neither
    "'a9059cbb MOST SEVEN', 'arguments of transfer(address,uint256)'",
    "'a22cb465 BOB SEVEN', 'arguments of setApprovalForAll(address,bool)'",
    // Bytes for the recipient, bytes elsewhere, bytes that are left out
    "'b88d4fde ALICE BOB SEVEN AT4 TRUE MOST',"
        + " 'arguments of safeTransferFrom(address,address,uint256,bytes)'",
    "'b88d4fde ALICE BOB SEVEN AT4 TRUE',"
        + " 'arguments of safeTransferFrom(address,address,uint256,bytes)'",
    "'b88d4fde ALICE BOB SEVEN AT5 NONE',"
        + " 'arguments of safeTransferFrom(address,address,uint256,bytes)'",
    "'b88d4fde ALICE BOB SEVEN AT4',"
        + " 'arguments of safeTransferFrom(address,address,uint256,bytes)'",
    "'f242432a ALICE BOB SEVEN SEVEN AT4 NONE',"
        + " 'arguments of safeTransferFrom(address,address,uint256,uint256,bytes)'",
  })
  void any_other_call_is_refused(String data, String part) {
    PayloadsTest.assertNotRead(part, call(words(data)), ANY_KEY);
  }

  @Test
  void a_value_without_data_is_read() throws Exception {
    assertThat(PayloadsTest.text(Payloads.decode(call(""), ANY_KEY)))
        .endsWith("fee at most: 1 wei, 0.000000000000000001 ether\ndata length: 0\n");
  }
}
