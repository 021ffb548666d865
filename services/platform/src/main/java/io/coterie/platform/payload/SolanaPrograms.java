package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Explains instructions of well-known Solana programs. An instruction that is not exactly one of
 * these is shown by its program, its accounts and its data.
 */
final class SolanaPrograms {
  private static final String SYSTEM = "11111111111111111111111111111111";
  private static final String TOKEN = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
  private static final String TOKEN_2022 = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb";
  private static final String COMPUTE_BUDGET = "ComputeBudget111111111111111111111111111111";
  private static final String MEMO_1 = "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo";
  private static final String MEMO_2 = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXtDLGmfcHr";

  /** Type of a number in an instruction's data, little-endian. */
  private enum Number {
    U8(1),
    U32(4),
    U64(8);

    private final int bytes;

    Number(int bytes) {
      this.bytes = bytes;
    }
  }

  /**
   * @param name of the number
   * @param type how it is encoded
   */
  private record Operand(String name, Number type) {}

  /**
   * One kind of instruction.
   *
   * @param tag how its data begins
   * @param operands numbers behind the tag, and nothing after them
   * @param accounts names of its accounts
   * @param more whether accounts may follow
   */
  private record Form(
      String text,
      String program,
      ByteString tag,
      List<Operand> operands,
      List<String> accounts,
      boolean more) {}

  /** Signers of a multisig, and what transfer hooks need, follow the accounts of a transfer. */
  private static final boolean MORE = true;

  private static final List<Form> FORMS =
      List.of(
          new Form(
              "system program: transfer",
              SYSTEM,
              tag(2, Number.U32),
              List.of(new Operand("lamports", Number.U64)),
              List.of("from", "to"),
              false),
          // A transaction that begins with it does not expire.
          new Form(
              "system program: advance nonce",
              SYSTEM,
              tag(4, Number.U32),
              List.of(),
              List.of("nonce account", "recent blockhashes", "authority"),
              false),
          transfer("SPL token", TOKEN),
          transferChecked("SPL token", TOKEN),
          transfer("SPL token 2022", TOKEN_2022),
          transferChecked("SPL token 2022", TOKEN_2022),
          budget("heap", 1, new Operand("bytes", Number.U32)),
          budget("unit limit", 2, new Operand("units", Number.U32)),
          budget("unit price", 3, new Operand("micro-lamports", Number.U64)),
          budget("loaded accounts", 4, new Operand("bytes", Number.U32)));

  private static Form transfer(String name, String program) {
    return new Form(
        name + ": transfer",
        program,
        tag(3, Number.U8),
        List.of(new Operand("amount", Number.U64)),
        List.of("from", "to", "authority"),
        MORE);
  }

  private static Form transferChecked(String name, String program) {
    return new Form(
        name + ": transfer checked",
        program,
        tag(12, Number.U8),
        List.of(new Operand("amount", Number.U64), new Operand("decimals", Number.U8)),
        List.of("from", "mint", "to", "authority"),
        MORE);
  }

  private static Form budget(String name, int tag, Operand operand) {
    return new Form(
        "compute budget: " + name,
        COMPUTE_BUDGET,
        tag(tag, Number.U8),
        List.of(operand),
        List.of(),
        false);
  }

  private static ByteString tag(int value, Number type) {
    byte[] tag = new byte[type.bytes];
    tag[0] = (byte) value;
    return ByteString.copyFrom(tag);
  }

  private SolanaPrograms() {}

  /**
   * An instruction in words.
   *
   * @param text its effect
   * @param values its data, by name
   * @param accountNames names of its first accounts
   */
  record Call(String text, Map<String, String> values, List<String> accountNames) {
    /** The name of one of its accounts. */
    String account(int index) {
      return index < accountNames.size() ? accountNames.get(index) : "account " + index;
    }
  }

  /**
   * Reads an instruction.
   *
   * @param program address of the program that it calls
   * @param accounts how many accounts it names
   */
  static Call read(String program, int accounts, ByteString data) {
    for (Form form : FORMS) {
      if (form.program.equals(program)
          && data.startsWith(form.tag)
          && data.size() == form.tag.size() + size(form.operands)
          && accounts >= form.accounts.size()
          && (form.more || accounts == form.accounts.size())) {
        return new Call(form.text, values(form, data), form.accounts);
      }
    }
    if (program.equals(MEMO_1) || program.equals(MEMO_2)) {
      Optional<String> text = Lines.utf8(data);
      if (text.isPresent()) {
        return new Call("memo", Map.of("text", text.get()), List.of());
      }
    }
    return new Call(
        "program " + program, Map.of("data, not understood", Lines.hex(data)), List.of());
  }

  private static int size(List<Operand> operands) {
    return operands.stream().mapToInt(operand -> operand.type.bytes).sum();
  }

  private static Map<String, String> values(Form form, ByteString data) {
    Map<String, String> values = new LinkedHashMap<>();
    int at = form.tag.size();
    for (Operand operand : form.operands) {
      ByteString number = data.substring(at, at + operand.type.bytes);
      values.put(operand.name, unsigned(number));
      at += operand.type.bytes;
    }
    return values;
  }

  private static String unsigned(ByteString number) {
    byte[] padded = new byte[Number.U64.bytes];
    number.copyTo(padded, 0);
    return Long.toUnsignedString(ByteBuffer.wrap(padded).order(ByteOrder.LITTLE_ENDIAN).getLong());
  }
}
