package io.coterie.platform.payload;

import com.esaulpaugh.headlong.rlp.RLPDecoder;
import com.esaulpaugh.headlong.rlp.RLPEncoder;
import com.esaulpaugh.headlong.rlp.RLPItem;
import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** An unsigned Ethereum transaction, in the form that is hashed for its signature. */
public final class EthereumTransaction {
  /** Bytes of a scalar: amounts and fees, chain ids. */
  private static final int WORD_BYTES = 32;

  /** Lists inside each other: transaction, access list, its entry, the entry's keys. */
  private static final int MAX_DEPTH = 4;

  /** Bytes of a nonce and of a gas limit. */
  private static final int COUNT_BYTES = 8;

  private static final int ETHER_DECIMALS = 18;

  /** EIP-2681: the largest nonce is one less, so that it can be counted up. */
  private static final BigInteger NONCE_LIMIT =
      BigInteger.ONE.shiftLeft(64).subtract(BigInteger.ONE);

  private static final int SIGNATURE_BYTES = 64;

  /** The forms of a transaction, with the names of their fields in the order they are encoded. */
  private enum Form {
    /** EIP-155: the last three are chain id and two empty ones, in the place of v, r and s. */
    LEGACY(
        "legacy",
        -1,
        Part.NONCE,
        Part.GAS_PRICE,
        Part.GAS_LIMIT,
        Part.TO,
        Part.VALUE,
        Part.DATA,
        Part.CHAIN_ID,
        Part.EMPTY,
        Part.EMPTY),
    EIP_2930(
        "EIP-2930",
        1,
        Part.CHAIN_ID,
        Part.NONCE,
        Part.GAS_PRICE,
        Part.GAS_LIMIT,
        Part.TO,
        Part.VALUE,
        Part.DATA,
        Part.ACCESS_LIST),
    EIP_1559(
        "EIP-1559",
        2,
        Part.CHAIN_ID,
        Part.NONCE,
        Part.MAX_PRIORITY_FEE,
        Part.MAX_FEE,
        Part.GAS_LIMIT,
        Part.TO,
        Part.VALUE,
        Part.DATA,
        Part.ACCESS_LIST);

    private final String text;

    /** EIP-2718; negative: none. */
    private final int type;

    private final List<Part> parts;

    Form(String text, int type, Part... parts) {
      this.text = text;
      this.type = type;
      this.parts = List.of(parts);
    }
  }

  private enum Part {
    CHAIN_ID("chain id"),
    NONCE("nonce"),
    TO("to"),
    VALUE("value"),
    GAS_LIMIT("gas limit"),
    GAS_PRICE("gas price"),
    MAX_FEE("max fee per gas"),
    MAX_PRIORITY_FEE("max priority fee per gas"),
    DATA("data"),
    ACCESS_LIST("access list"),
    EMPTY("");

    private final String text;

    Part(String text) {
      this.text = text;
    }
  }

  private final ByteString encoded;
  private final Form form;

  /** By {@link Form#parts}: byte[] of a string, List of a list, as RLPEncoder takes them. */
  private final List<Object> values;

  private EthereumTransaction(ByteString encoded, Form form, List<Object> values) {
    this.encoded = encoded;
    this.form = form;
    this.values = values;
  }

  /**
   * Decodes a transaction.
   *
   * @param encoded RLP of a legacy transaction with its EIP-155 chain id, or a type byte and RLP
   *     (EIP-2930, EIP-1559)
   * @throws IntentException if it is anything else, is not in its only encoding, or can never be
   *     valid
   */
  public static EthereumTransaction decode(ByteString encoded) throws IntentException {
    Form form = form(encoded);
    ByteString rlp = form == Form.LEGACY ? encoded : encoded.substring(1);
    EthereumTransaction transaction;
    try {
      transaction = new EthereumTransaction(encoded, form, items(rlp.toByteArray()));
    } catch (RuntimeException e) {
      // How the library says that bytes are not RLP; it has several ways.
      throw malformed();
    }
    transaction.check();
    return transaction;
  }

  private static Form form(ByteString encoded) throws IntentException {
    int first = encoded.isEmpty() ? 0x80 : encoded.byteAt(0) & 0xff;
    if (first >= 0xc0) {
      return Form.LEGACY;
    }
    if (first >= 0x80) {
      throw malformed();
    }
    return Arrays.stream(Form.values())
        .filter(f -> f.type == first)
        .findFirst()
        .orElseThrow(() -> new IntentException(IntentProblem.ETHEREUM_TRANSACTION_TYPE));
  }

  /** The items of a list; lists in it are at most as deep as those of the access list. */
  private static List<Object> items(byte[] rlp) throws IntentException {
    RLPItem list = RLPDecoder.RLP_STRICT.wrapItem(rlp);
    return items(list, MAX_DEPTH);
  }

  private static List<Object> items(RLPItem list, int depth) throws IntentException {
    if (!list.isList() || depth == 0) {
      throw malformed();
    }
    List<Object> items = new ArrayList<>();
    for (RLPItem item : list.asRLPList()) {
      items.add(item.isList() ? items(item, depth - 1) : item.asBytes());
    }
    return items;
  }

  private void check() throws IntentException {
    // Without its chain id a legacy transaction has only what all its predecessors had.
    if (form == Form.LEGACY && values.size() == form.parts.indexOf(Part.CHAIN_ID)) {
      throw new IntentException(IntentProblem.ETHEREUM_CHAIN_ID_MISSING);
    }
    require(values.size() == form.parts.size());
    for (int i = 0; i < values.size(); i++) {
      Part part = form.parts.get(i);
      if (part == Part.ACCESS_LIST) {
        require(values.get(i) instanceof List<?> list && isAccessList(list));
      } else {
        require(values.get(i) instanceof byte[] bytes && fits(part, bytes));
      }
    }
    if (number(Part.CHAIN_ID).signum() == 0) {
      throw new IntentException(IntentProblem.ETHEREUM_CHAIN_ID_MISSING);
    }
    require(number(Part.NONCE).compareTo(NONCE_LIMIT) < 0);
    require(
        form != Form.EIP_1559
            || number(Part.MAX_PRIORITY_FEE).compareTo(number(Part.MAX_FEE)) <= 0);
    require(ByteString.copyFrom(encode(form, values)).equals(encoded));
  }

  private static boolean fits(Part part, byte[] bytes) {
    return switch (part) {
      case NONCE, GAS_LIMIT -> isScalar(bytes, COUNT_BYTES);
      case CHAIN_ID, VALUE, GAS_PRICE, MAX_FEE, MAX_PRIORITY_FEE -> isScalar(bytes, WORD_BYTES);
      case TO -> bytes.length == 0 || bytes.length == EthereumAddress.BYTES;
      case DATA -> true;
      case EMPTY -> bytes.length == 0;
      case ACCESS_LIST -> false;
    };
  }

  private static boolean isScalar(byte[] bytes, int size) {
    return bytes.length <= size && (bytes.length == 0 || bytes[0] != 0);
  }

  /** EIP-2930: pairs of an address and a list of storage keys. */
  private static boolean isAccessList(List<?> list) {
    return list.stream()
        .allMatch(
            entry ->
                entry instanceof List<?> pair
                    && pair.size() == 2
                    && pair.get(0) instanceof byte[] address
                    && address.length == EthereumAddress.BYTES
                    && pair.get(1) instanceof List<?> keys
                    && keys.stream()
                        .allMatch(k -> k instanceof byte[] b && b.length == WORD_BYTES));
  }

  private static byte[] encode(Form form, List<Object> values) {
    byte[] rlp = RLPEncoder.list(values);
    if (form.type < 0) {
      return rlp;
    }
    byte[] typed = new byte[1 + rlp.length];
    typed[0] = (byte) form.type;
    System.arraycopy(rlp, 0, typed, 1, rlp.length);
    return typed;
  }

  /** The digest that is signed: Keccak-256 of the encoded transaction. */
  ByteString digest() {
    return ByteString.copyFrom(Keccak.hash(encoded.toByteArray()));
  }

  /**
   * The fields that people are shown.
   *
   * @throws IntentException if they are not all: for a contract's code, and for a call that is not
   *     one of {@link EthereumCalls}, or takes ether
   */
  void describe(Lines lines) throws IntentException {
    if (bytes(Part.TO).length == 0) {
      throw new IntentException(IntentProblem.PAYLOAD_NOT_READ, "creation of a contract");
    }
    ByteString data = ByteString.copyFrom(bytes(Part.DATA));
    // Tokens are moved without ether: nobody here knows what a contract does with it.
    if (!data.isEmpty() && number(Part.VALUE).signum() != 0) {
      throw new IntentException(IntentProblem.PAYLOAD_NOT_READ, "value with a call");
    }
    lines.add("type", form.text);
    lines.add(Part.CHAIN_ID.text, number(Part.CHAIN_ID));
    lines.add(Part.TO.text, EthereumAddress.text(bytes(Part.TO)));
    lines.add(Part.VALUE.text, number(Part.VALUE));
    lines.add(Part.NONCE.text, number(Part.NONCE));
    lines.add(Part.GAS_LIMIT.text, number(Part.GAS_LIMIT));
    for (Part fee : List.of(Part.GAS_PRICE, Part.MAX_FEE, Part.MAX_PRIORITY_FEE)) {
      if (form.parts.contains(fee)) {
        lines.add(fee.text, number(fee));
      }
    }
    lines.add("fee at most", fee());
    lines.add("data length", data.size());
    if (!data.isEmpty()) {
      EthereumCalls.describe(data, lines);
    }
    if (form.parts.contains(Part.ACCESS_LIST)
        && values.get(form.parts.indexOf(Part.ACCESS_LIST)) instanceof List<?> list) {
      lines.add("access list length", list.size());
      describeAccesses(lines, list);
    }
  }

  /** The most that the gas costs, in wei and in ether. */
  private String fee() {
    BigInteger price = number(form == Form.EIP_1559 ? Part.MAX_FEE : Part.GAS_PRICE);
    BigInteger fee = number(Part.GAS_LIMIT).multiply(price);
    String ether = new BigDecimal(fee, ETHER_DECIMALS).stripTrailingZeros().toPlainString();
    return fee + " wei, " + ether + " ether";
  }

  private static void describeAccesses(Lines lines, List<?> list) throws IntentException {
    for (int i = 0; i < list.size(); i++) {
      if (list.get(i) instanceof List<?> entry
          && entry.get(0) instanceof byte[] address
          && entry.get(1) instanceof List<?> slots) {
        lines.add("access " + i, EthereumAddress.text(address));
        for (Object slot : slots) {
          lines.addBytes("access " + i + " slot", ByteString.copyFrom((byte[]) slot));
        }
      }
    }
  }

  /**
   * The transaction with its signature, ready to be sent.
   *
   * @param signature r and s, 64 bytes
   * @param recoveryId 0 or 1; the others, which one signature in 2^127 has, cannot be expressed
   * @throws IllegalArgumentException if a length or the recovery id is wrong
   */
  public ByteString signed(ByteString signature, int recoveryId) {
    if (signature.size() != SIGNATURE_BYTES || recoveryId < 0 || recoveryId > 1) {
      throw new IllegalArgumentException("not a signature with recovery id 0 or 1");
    }
    List<Object> all = new ArrayList<>(values);
    BigInteger v = BigInteger.valueOf(recoveryId);
    if (form == Form.LEGACY) {
      all.subList(form.parts.indexOf(Part.CHAIN_ID), all.size()).clear();
      v = v.add(number(Part.CHAIN_ID).shiftLeft(1)).add(BigInteger.valueOf(35));
    }
    all.add(scalar(v));
    all.add(scalar(new BigInteger(1, signature.substring(0, WORD_BYTES).toByteArray())));
    all.add(scalar(new BigInteger(1, signature.substring(WORD_BYTES).toByteArray())));
    return ByteString.copyFrom(encode(form, all));
  }

  private static byte[] scalar(BigInteger number) {
    byte[] bytes = number.toByteArray();
    return bytes[0] == 0 ? Arrays.copyOfRange(bytes, 1, bytes.length) : bytes;
  }

  private byte[] bytes(Part part) {
    return (byte[]) values.get(form.parts.indexOf(part));
  }

  private BigInteger number(Part part) {
    return new BigInteger(1, bytes(part));
  }

  private static void require(boolean condition) throws IntentException {
    if (!condition) {
      throw malformed();
    }
  }

  private static IntentException malformed() {
    return new IntentException(IntentProblem.ETHEREUM_TRANSACTION_MALFORMED);
  }
}
