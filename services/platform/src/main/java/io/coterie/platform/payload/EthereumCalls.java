package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Reads calls of contracts: the functions by which owners of tokens move them and let others do so
 * (ERC-20, ERC-721, ERC-1155). A call that is not exactly one of these is refused: its bytes tell
 * people nothing.
 */
final class EthereumCalls {
  /** Bytes of a selector, and of each word of the arguments. */
  private static final int SELECTOR_BYTES = 4;

  private static final int WORD_BYTES = 32;

  /** The largest number of a word. */
  private static final BigInteger MOST =
      BigInteger.ONE.shiftLeft(WORD_BYTES * Byte.SIZE).subtract(BigInteger.ONE);

  /** Types of arguments, each with one encoding of a value. */
  private enum Type {
    ADDRESS("address"),
    UINT256("uint256"),
    /** A number that may be the largest there is, which is no limit. */
    ALLOWANCE("uint256"),
    BOOL("bool"),
    /** Only without bytes: they are for the recipient's code, and nobody here can read them. */
    NO_BYTES("bytes");

    private final String text;

    Type(String text) {
      this.text = text;
    }
  }

  private record Argument(String name, Type type) {}

  /** A function of a standard. */
  private record Function(String signature, ByteString selector, List<Argument> arguments) {
    static Function of(String name, Argument... arguments) {
      String signature =
          List.of(arguments).stream()
              .map(argument -> argument.type.text)
              .collect(Collectors.joining(",", name + "(", ")"));
      byte[] hash = Keccak.hash(signature.getBytes(StandardCharsets.US_ASCII));
      return new Function(
          signature, ByteString.copyFrom(hash, 0, SELECTOR_BYTES), List.of(arguments));
    }
  }

  private static final List<Function> FUNCTIONS =
      List.of(
          // ERC-20, and ERC-721 with the same signatures: there the number is a token's.
          Function.of("transfer", address("recipient"), number("amount")),
          Function.of(
              "approve", address("spender"), new Argument("amount or token", Type.ALLOWANCE)),
          Function.of(
              "transferFrom", address("owner"), address("recipient"), number("amount or token")),
          // ERC-721
          Function.of("safeTransferFrom", address("owner"), address("recipient"), number("token")),
          Function.of(
              "safeTransferFrom",
              address("owner"),
              address("recipient"),
              number("token"),
              new Argument("data", Type.NO_BYTES)),
          // ERC-721 and ERC-1155
          Function.of(
              "setApprovalForAll", address("operator"), new Argument("approved", Type.BOOL)),
          // ERC-1155
          Function.of(
              "safeTransferFrom",
              address("owner"),
              address("recipient"),
              number("token"),
              number("amount"),
              new Argument("data", Type.NO_BYTES)));

  private static Argument address(String name) {
    return new Argument(name, Type.ADDRESS);
  }

  private static Argument number(String name) {
    return new Argument(name, Type.UINT256);
  }

  private EthereumCalls() {}

  /**
   * Adds the function and its arguments.
   *
   * @param data of a transaction to a contract, not empty
   * @throws IntentException if the function is not known here, or its arguments are not the one
   *     encoding of values of their types, to the last byte
   */
  static void describe(ByteString data, Lines lines) throws IntentException {
    if (data.size() < SELECTOR_BYTES) {
      throw notRead("data of fewer than 4 bytes");
    }
    ByteString selector = data.substring(0, SELECTOR_BYTES);
    Function function =
        FUNCTIONS.stream()
            .filter(known -> known.selector.equals(selector))
            .findFirst()
            .orElseThrow(() -> notRead("call of function " + Lines.hex(selector)));
    Map<String, String> values =
        values(function, data.substring(SELECTOR_BYTES))
            .orElseThrow(() -> notRead("arguments of " + function.signature));
    lines.add("call", function.signature);
    for (Map.Entry<String, String> value : values.entrySet()) {
      lines.add("call " + value.getKey(), value.getValue());
    }
  }

  /** The values by name; empty if the bytes are not the encoding of values of these types. */
  private static Optional<Map<String, String>> values(Function function, ByteString encoded) {
    int heads = function.arguments.size();
    boolean tail = function.arguments.getLast().type == Type.NO_BYTES;
    if (encoded.size() != (heads + (tail ? 1 : 0)) * WORD_BYTES) {
      return Optional.empty();
    }
    Map<String, String> values = new LinkedHashMap<>();
    for (int i = 0; i < heads; i++) {
      Argument argument = function.arguments.get(i);
      BigInteger word = word(encoded, i);
      Optional<String> value =
          switch (argument.type) {
            case ADDRESS -> address(word);
            case UINT256 -> Optional.of(word.toString());
            case ALLOWANCE -> Optional.of(word + (word.equals(MOST) ? ", without limit" : ""));
            case BOOL ->
                word.bitLength() > 1 ? Optional.empty() : Optional.of("" + word.testBit(0));
            // Where the bytes are, behind all heads, and then how many.
            case NO_BYTES ->
                word.equals(BigInteger.valueOf((long) heads * WORD_BYTES))
                        && word(encoded, heads).signum() == 0
                    ? Optional.of("none")
                    : Optional.empty();
          };
      if (value.isEmpty()) {
        return Optional.empty();
      }
      values.put(argument.name, value.get());
    }
    return Optional.of(values);
  }

  private static BigInteger word(ByteString encoded, int index) {
    return new BigInteger(
        1, encoded.substring(index * WORD_BYTES, (index + 1) * WORD_BYTES).toByteArray());
  }

  private static Optional<String> address(BigInteger word) {
    if (word.bitLength() > EthereumAddress.BYTES * Byte.SIZE) {
      return Optional.empty();
    }
    byte[] address = new byte[EthereumAddress.BYTES];
    byte[] digits = word.toByteArray();
    int length = Math.min(digits.length, address.length);
    System.arraycopy(digits, digits.length - length, address, address.length - length, length);
    return Optional.of(EthereumAddress.text(address));
  }

  private static IntentException notRead(String part) {
    return new IntentException(IntentProblem.PAYLOAD_NOT_READ, part);
  }
}
