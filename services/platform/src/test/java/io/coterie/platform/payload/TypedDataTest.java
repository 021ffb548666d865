package io.coterie.platform.payload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class TypedDataTest {
  /** The example of EIP-712. */
  static final String MAIL =
      """
      {"types":{
         "EIP712Domain":[
           {"name":"name","type":"string"},{"name":"version","type":"string"},
           {"name":"chainId","type":"uint256"},{"name":"verifyingContract","type":"address"}],
         "Person":[{"name":"name","type":"string"},{"name":"wallet","type":"address"}],
         "Mail":[{"name":"from","type":"Person"},{"name":"to","type":"Person"},{"name":"contents","type":"string"}]},
       "primaryType":"Mail",
       "domain":{"name":"Ether Mail","version":"1","chainId":1,
         "verifyingContract":"0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC"},
       "message":{
         "from":{"name":"Cow","wallet":"0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
         "to":{"name":"Bob","wallet":"0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
         "contents":"Hello, Bob!"}}
      """;

  private static final ByteString MAIL_DIGEST =
      ByteString.fromHex("be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2");

  private static SigningIntent intent(String json) {
    return SigningIntent.newBuilder().setEthereumTypedData(json).build();
  }

  private static DecodedPayload decode(String json) throws IntentException {
    return Payloads.decode(intent(json), ByteString.EMPTY);
  }

  private static void assertRefused(IntentProblem problem, String json) {
    PayloadsTest.assertRefused(problem, intent(json), ByteString.EMPTY);
  }

  @Test
  void the_example_of_eip_712() throws Exception {
    DecodedPayload decoded = decode(MAIL);
    assertThat(decoded.toSign()).isEqualTo(MAIL_DIGEST);
    assertThat(PayloadsTest.text(decoded))
        .isEqualTo(
            """
            primary type: Mail
            type Mail: Mail(Person from,Person to,string contents)
            type Person: Person(string name,address wallet)
            domain.name: Ether Mail
            domain.version: 1
            domain.chainId: 1
            domain.verifyingContract: 0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC
            message.from.name: Cow
            message.from.wallet: 0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826
            message.to.name: Bob
            message.to.wallet: 0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB
            message.contents: Hello, Bob!
            """);
  }

  /** Arrays, structures in arrays, negative numbers, every width; digest by ethers 6.17.0. */
  @Test
  void every_kind_of_type() throws Exception {
    String json =
        """
        {"types":{
          "Part":[{"name":"id","type":"bytes16"},{"name":"count","type":"int64"},{"name":"on","type":"bool"},
            {"name":"blob","type":"bytes4"},{"name":"grid","type":"uint8[2][]"}],
          "Box":[{"name":"parts","type":"Part[]"},{"name":"owner","type":"address"},
            {"name":"names","type":"string[2]"},{"name":"total","type":"uint256"}],
          "EIP712Domain":[{"name":"name","type":"string"},{"name":"version","type":"string"},
            {"name":"chainId","type":"uint256"},{"name":"verifyingContract","type":"address"},
            {"name":"salt","type":"bytes32"}]},
        "domain":{"name":"Depot","version":"2","chainId":"0xa",
          "verifyingContract":"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed","salt":"0x%s"},
        "primaryType":"Box",
        "message":{
          "parts":[
            {"id":"0x00112233445566778899aabbccddeeff","count":"-42","on":true,"blob":"0xa9059cbb","grid":[["1","2"],[3,"0xff"]]},
            {"id":"0x00000000000000000000000000000000","count":9007199254740993,"on":false,"blob":"0x00000000","grid":[]}],
          "owner":"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed","names":["","Zoë ☃"],
          "total":"115792089237316195423570985008687907853269984665640564039457584007913129639935"}}
        """
            .formatted("ab".repeat(32));
    DecodedPayload decoded = decode(json);
    assertThat(decoded.toSign())
        .isEqualTo(
            ByteString.fromHex("9321d7f78ddb3973310b68df4c3cd3e242f01e632ab9b6125840f024f75719ba"));
    assertThat(PayloadsTest.text(decoded))
        .contains(
            "domain.chainId: 10\n",
            "message.parts[0].count: -42\n",
            "message.parts[0].grid[1][1]: 255\n",
            "message.parts[1].grid: an empty uint8[2][]\n",
            "type Part: Part(bytes16 id,int64 count,bool on,bytes4 blob,uint8[2][] grid)\n",
            "message.parts[1].count: 9007199254740993\n",
            "message.names[1]: Zoë ☃\n");
  }

  /** A contract takes them for a call of another one, say, which may also have none. */
  @Test
  void bytes_are_refused() {
    for (String value : List.of("0x", "0x00", "0xa9059cbb" + "00".repeat(64))) {
      PayloadsTest.assertNotRead(
          "bytes in message.it", intent(one("bytes", "\"" + value + "\"")), ByteString.EMPTY);
      PayloadsTest.assertNotRead(
          "bytes in message.it[1][0]",
          intent(one("bytes[][]", "[[],[\"" + value + "\"]]")),
          ByteString.EMPTY);
    }
    PayloadsTest.assertNotRead(
        "a value of type bytes",
        intent(one("bytes", "\"0x00\"").replace("\"it\"", "\"" + "n".repeat(120) + "\"")),
        ByteString.EMPTY);
  }

  /** An order of no legs, say, is another one than an order without legs. */
  @Test
  void what_is_empty_is_shown() throws Exception {
    String json =
        """
        {"types":{"EIP712Domain":[{"name":"name","type":"string"}],"Nothing":[],
          "Order":[{"name":"legs","type":"Nothing[]"},{"name":"most","type":"Nothing[2]"},
            {"name":"memo","type":"Nothing"},{"name":"grid","type":"uint8[][1]"}]},
        "primaryType":"Order","domain":{"name":"test"},
        "message":{"legs":[],"most":[{},{}],"memo":{},"grid":[[]]}}
        """;
    assertThat(PayloadsTest.text(decode(json)))
        .isEqualTo(
            """
            primary type: Order
            type Nothing: Nothing()
            type Order: Order(Nothing[] legs,Nothing[2] most,Nothing memo,uint8[][1] grid)
            domain.name: test
            message.legs: an empty Nothing[]
            message.most[0]: an empty Nothing
            message.most[1]: an empty Nothing
            message.memo: an empty Nothing
            message.grid[0]: an empty uint8[]
            """);
  }

  /** The same value in another form signs the same. */
  @ParameterizedTest
  @ValueSource(strings = {"1", "\"1\"", "\"0x1\"", "\"0x0001\""})
  void a_number_may_be_in_a_string(String number) throws Exception {
    assertThat(decode(MAIL.replace("\"chainId\":1", "\"chainId\":" + number)).toSign())
        .isEqualTo(MAIL_DIGEST);
  }

  private static String one(String type, String value) {
    return """
    {"types":{"EIP712Domain":[{"name":"name","type":"string"}],"One":[{"name":"it","type":"%s"}]},
    "primaryType":"One","domain":{"name":"test"},"message":{"it":%s}}
    """
        .formatted(type, value);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      quoteCharacter = '`',
      value = {
        "uint8;255",
        "uint8;\"0xff\"",
        "uint8;0",
        "int8;-128",
        "int8;127",
        "int8;\"-128\"",
        "uint256;\"0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\"",
        "int256;-57896044618658097711785492504343953926634992332820282019728792003956564819968",
        "bool;true",
        "bytes1;\"0x00\"",
        "bytes32;\"0x0000000000000000000000000000000000000000000000000000000000000000\"",
        "bytes[];[]",
        "string;\"\"",
        "string[];[]",
        "string[1];[\"\"]",
        "address;\"0x0000000000000000000000000000000000000000\"",
        "address;\"0xABCDEFABCDEFABCDEFABCDEFABCDEFABCDEFABCD\"",
      })
  void takes_every_value_of_a_type(String type, String value) {
    assertThatCode(() -> decode(one(type, value))).doesNotThrowAnyException();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      quoteCharacter = '`',
      value = {
        "uint8;256",
        "uint8;-1",
        "uint8;\"\"",
        "uint8;\"0x\"",
        "uint8;\"0x100\"",
        "uint8;\" 1\"",
        "uint8;\"1.0\"",
        "uint8;\"1e1\"",
        "uint8;\"01\"",
        "uint8;\"-0\"",
        "uint8;\"-0x1\"",
        "uint8;1.0",
        "uint8;1e1",
        "uint8;true",
        "uint8;null",
        "uint8;[1]",
        "uint256;\"0x10000000000000000000000000000000000000000000000000000000000000000\"",
        "int8;128",
        "int8;-129",
        "int8;\"0x80\"",
        "bool;1",
        "bool;\"true\"",
        "bytes1;\"0x\"",
        "bytes1;\"0x0000\"",
        "bytes1;\"0x0\"",
        "bytes1;\"00\"",
        "bytes;\"0x0\"",
        "bytes;\"hello\"",
        "bytes;\"0xzz\"",
        "string;1",
        "string;null",
        "string;\"\\ud800\"",
        "string[1];[]",
        "string[1];[\"\",\"\"]",
        "string[];\"\"",
        "string[];{}",
        "address;\"0x00\"",
        "address;\"0xabCDEFABCDEFABCDEFABCDEFABCDEFABCDEFABCD\"",
        "address;0",
      })
  void refuses_what_is_no_value_of_a_type(String type, String value) {
    assertRefused(IntentProblem.TYPED_DATA_VALUE, one(type, value));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "uint",
        "int",
        "uint7",
        "uint0",
        "uint264",
        "int08",
        "bytes0",
        "bytes33",
        "byte",
        "fixed",
        "Two",
        "",
        " string",
        "string ",
        "string[0]",
        "string[01]",
        "string[-1]",
        "string[",
        "string]",
        "string[][",
        "[]",
        "EIP712Domain",
        "EIP712Domain[]",
        "string[100000]",
      })
  void refuses_what_is_no_type(String type) {
    assertRefused(IntentProblem.TYPED_DATA_MALFORMED, one(type, "\"\""));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      quoteCharacter = '`',
      value = {
        // A domain must be what the standard lists, in its order.
        "{\"name\":\"chainId\",\"type\":\"uint256\"};{\"name\":\"chainId\",\"type\":\"uint8\"}",
        "{\"name\":\"chainId\",\"type\":\"uint256\"};{\"name\":\"chain\",\"type\":\"uint256\"}",
        "{\"name\":\"version\",\"type\":\"string\"},;",
        "{\"name\":\"name\",\"type\":\"string\"},{\"name\":\"version\",\"type\":\"string\"};{\"name\":\"version\",\"type\":\"string\"},{\"name\":\"name\",\"type\":\"string\"}",
        // Names
        "\"contents\";\"con tents\"",
        "\"contents\";\"from\"",
        "\"Person\":[;\"uint256\":[",
        "\"primaryType\":\"Mail\";\"primaryType\":\"Letter\"",
        "\"primaryType\":\"Mail\";\"primaryType\":\"EIP712Domain\"",
        "\"primaryType\":\"Mail\";\"primaryType\":1",
        // Structure
        "\"primaryType\":\"Mail\";\"primaryType\":\"Mail\",\"primaryType\":\"Mail\"",
        "\"primaryType\":\"Mail\";\"primaryType\":\"Mail\",\"more\":1",
        "{\"name\":\"wallet\",\"type\":\"address\"};{\"name\":\"wallet\",\"type\":\"address\",\"more\":1}",
        "{\"name\":\"wallet\",\"type\":\"address\"};{\"name\":\"wallet\"}",
        "{\"name\":\"wallet\",\"type\":\"address\"};1",
        "\"contents\":\"Hello, Bob!\"};\"contents\":\"Hello, Bob!\"",
        "\"contents\":\"Hello, Bob!\";\"contents\":\"Hello, Bob!\",\"contents\":\"Hello, Eve!\"",
      })
  void refuses_what_is_no_typed_data(String original, String changed) {
    String json = MAIL.replace(original, changed == null ? "" : changed);
    assertThat(json).isNotEqualTo(MAIL);
    assertThat(problem(json))
        .isIn(IntentProblem.TYPED_DATA_MALFORMED, IntentProblem.TYPED_DATA_VALUE);
  }

  private static IntentProblem problem(String json) {
    try {
      decode(json);
    } catch (IntentException e) {
      return e.problem();
    }
    throw new AssertionError("was accepted: " + json);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      quoteCharacter = '`',
      value = {
        "\"contents\":\"Hello, Bob!\";\"contents\":\"Hello, Bob!\",\"cc\":\"Eve\"",
        "\"contents\":\"Hello, Bob!\";\"content\":\"Hello, Bob!\"",
        "\"version\":\"1\",;",
        "\"version\":\"1\",;\"version\":\"1\",\"salt\":\"0x00\",",
      })
  void refuses_what_is_not_signed_and_misses_nothing_that_is(String original, String changed) {
    String json = MAIL.replace(original, changed == null ? "" : changed);
    assertThat(json).isNotEqualTo(MAIL);
    assertRefused(IntentProblem.TYPED_DATA_VALUE, json);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", " ", "null", "1", "[]", "{}", "{", "\"\"", "{\"types\":1}", "\u0000", "{} {}"})
  void refuses_other_json(String json) {
    assertRefused(IntentProblem.TYPED_DATA_MALFORMED, json);
  }

  @Test
  void refuses_trailing_text() {
    assertRefused(IntentProblem.TYPED_DATA_MALFORMED, MAIL + "{}");
    assertRefused(IntentProblem.TYPED_DATA_MALFORMED, MAIL + "x");
  }

  @Test
  void refuses_types_that_contain_themselves() {
    assertRefused(
        IntentProblem.TYPED_DATA_TOO_COMPLEX,
        MAIL.replace(
            "{\"name\":\"wallet\",\"type\":\"address\"}",
            "{\"name\":\"wallet\",\"type\":\"Mail[]\"}"));
    assertRefused(IntentProblem.TYPED_DATA_TOO_COMPLEX, one("One", "null"));
    assertRefused(IntentProblem.TYPED_DATA_TOO_COMPLEX, one("One[]", "[]"));
  }

  /** The end of a name says what it is: one that is cut could be another. */
  @Test
  void a_name_that_does_not_fit_a_line_is_refused() {
    int rest = DecodedPayload.MAX_VALUE - "message.".length() - 128 - ".".length();
    assertThatCode(() -> decode(nested("n".repeat(128), "m".repeat(rest))))
        .doesNotThrowAnyException();
    assertRefused(
        IntentProblem.PAYLOAD_TOO_LONG_TO_SHOW, nested("n".repeat(128), "m".repeat(rest + 1)));
  }

  private static String nested(String outer, String inner) {
    return """
    {"types":{"EIP712Domain":[{"name":"name","type":"string"}],
    "One":[{"name":"%1$s","type":"Two"}],"Two":[{"name":"%2$s","type":"string"}]},
    "primaryType":"One","domain":{"name":"test"},"message":{"%1$s":{"%2$s":"x"}}}
    """
        .formatted(outer, inner);
  }

  @Test
  void everything_is_bounded() {
    assertRefused(IntentProblem.TYPED_DATA_MALFORMED, "[".repeat(60_000));
    assertRefused(
        IntentProblem.TYPED_DATA_MALFORMED, one("string", "[".repeat(50) + "]".repeat(50)));
    assertRefused(
        IntentProblem.TYPED_DATA_TOO_COMPLEX,
        one("uint8" + "[]".repeat(17), "[".repeat(17) + "]".repeat(17)));
    assertRefused(IntentProblem.TYPED_DATA_TOO_COMPLEX, one("uint8" + "[]".repeat(10_000), "[]"));
    assertRefused(
        IntentProblem.PAYLOAD_TOO_LONG_TO_SHOW, one("uint8[]", "[" + "1,".repeat(5_000) + "1]"));
    assertRefused(IntentProblem.TYPED_DATA_MALFORMED, one("uint256", "1".repeat(60_000)));
    assertRefused(IntentProblem.TYPED_DATA_VALUE, one("uint256", "\"" + "1".repeat(60_000) + "\""));
    assertRefused(IntentProblem.TYPED_DATA_VALUE, one("uint256", "1e9"));
    // 70 types, 70 members, and a chain of 20 types
    String members = "{\"name\":\"a%d\",\"type\":\"string\"}";
    assertRefused(
        IntentProblem.TYPED_DATA_TOO_COMPLEX,
        one("string", "\"\"")
            .replace(
                "\"One\":[",
                IntStream.range(0, 70)
                        .mapToObj(i -> "\"T" + i + "\":[],")
                        .collect(Collectors.joining())
                    + "\"One\":["));
    assertRefused(
        IntentProblem.TYPED_DATA_TOO_COMPLEX,
        one("string", "\"\"")
            .replace(
                "\"One\":[",
                "\"One\":["
                    + IntStream.range(0, 70)
                        .mapToObj(members::formatted)
                        .collect(Collectors.joining(","))
                    + ","));
    assertRefused(
        IntentProblem.TYPED_DATA_TOO_COMPLEX,
        one("T0", "{}")
            .replace(
                "\"One\":[",
                IntStream.range(0, 20)
                        .mapToObj(
                            i ->
                                "\"T%d\":[{\"name\":\"t\",\"type\":\"%s\"}],"
                                    .formatted(i, i == 19 ? "string" : "T" + (i + 1)))
                        .collect(Collectors.joining())
                    + "\"One\":["));
    // A large message is fine as long as all of it can be shown.
    assertThatCode(() -> decode(one("string", "\"0x" + "ab".repeat(30_000) + "\"")))
        .doesNotThrowAnyException();
    assertRefused(
        IntentProblem.PAYLOAD_TOO_LONG_TO_SHOW, one("uint8[]", "[" + "1,".repeat(3_000) + "1]"));
  }
}
