package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Explains instructions of well-known Solana programs. A transaction with an instruction that is
 * not exactly one of these is refused: nobody here knows what the program does with it.
 */
final class SolanaPrograms {
  private static final String SYSTEM = "11111111111111111111111111111111";
  private static final String TOKEN = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
  private static final String TOKEN_2022 = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb";
  private static final String ASSOCIATED_TOKEN = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
  private static final String COMPUTE_BUDGET = "ComputeBudget111111111111111111111111111111";
  private static final String MEMO_1 = "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo";
  private static final String MEMO_2 = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXtDLGmfcHr";

  private static final String SYSTEM_CALL = "system program: ";
  private static final String BUDGET_CALL = "compute budget: ";
  private static final String ADVANCE_NONCE = "advance nonce";
  private static final String UNIT_LIMIT = "unit limit";
  private static final String UNITS = "units";
  private static final String UNIT_PRICE = "unit price";
  private static final String MICRO_LAMPORTS = "micro-lamports";

  /** Type of a value in an instruction's data: a number, little-endian. */
  private enum Type {
    U8(1),
    U32(4),
    U64(8),
    /** An amount that may be the largest there is, which is no limit. */
    ALLOWANCE(8);

    private final int bytes;

    Type(int bytes) {
      this.bytes = bytes;
    }
  }

  /**
   * @param name of the value
   * @param type how it is encoded
   */
  private record Operand(String name, Type type) {}

  /**
   * @param name of the account
   * @param addresses that it may have: of a program that the called one calls; empty for any
   */
  private record Role(String name, Set<String> addresses) {}

  /**
   * One kind of instruction.
   *
   * @param tag how its data begins
   * @param operands values behind the tag, and nothing after them
   * @param accounts in their order
   * @param multisig whether signers of an account of several may follow
   */
  private record Form(
      String text,
      String program,
      ByteString tag,
      List<Operand> operands,
      List<Role> accounts,
      boolean multisig) {}

  /** The largest number of 8 bytes. */
  private static final String MOST = Long.toUnsignedString(-1);

  private static final Operand AMOUNT = new Operand("amount", Type.U64);
  private static final Operand ALLOWANCE = new Operand("amount", Type.ALLOWANCE);
  private static final Operand DECIMALS = new Operand("decimals", Type.U8);

  private static final List<Form> FORMS =
      Stream.of(
              system("transfer", 2, List.of(new Operand("lamports", Type.U64)), "from", "to"),
              system(
                  ADVANCE_NONCE, 4, List.of(), "nonce account", "recent blockhashes", "authority"),
              tokens("SPL token", TOKEN),
              tokens("SPL token 2022", TOKEN_2022),
              associatedToken("create", ByteString.EMPTY),
              associatedToken("create", tag(0, Type.U8)),
              associatedToken("create if missing", tag(1, Type.U8)),
              budget("heap", 1, new Operand("bytes", Type.U32)),
              budget(UNIT_LIMIT, 2, new Operand(UNITS, Type.U32)),
              budget(UNIT_PRICE, 3, new Operand(MICRO_LAMPORTS, Type.U64)),
              budget("loaded accounts", 4, new Operand("bytes", Type.U32)))
          .flatMap(forms -> forms)
          .toList();

  private static Stream<Form> system(
      String name, int tag, List<Operand> operands, String... accounts) {
    return Stream.of(
        new Form(SYSTEM_CALL + name, SYSTEM, tag(tag, Type.U32), operands, roles(accounts), false));
  }

  private static Stream<Form> tokens(String name, String program) {
    return Stream.of(
        // Transfers and approvals that do not name the mint could be of any token, and to close an
        // account pays out all its lamports, which the payload does not say.
        token(name + ": revoke", program, 5, List.of(), "account", "authority"),
        token(
            name + ": transfer checked",
            program,
            12,
            List.of(AMOUNT, DECIMALS),
            "from",
            "mint",
            "to",
            "authority"),
        token(
            name + ": approve checked",
            program,
            13,
            List.of(ALLOWANCE, DECIMALS),
            "account",
            "mint",
            "delegate",
            "authority"));
  }

  private static Form token(
      String text, String program, int tag, List<Operand> operands, String... accounts) {
    return new Form(text, program, tag(tag, Type.U8), operands, roles(accounts), true);
  }

  /** It calls the program of its last account. */
  private static Stream<Form> associatedToken(String name, ByteString tag) {
    List<Role> accounts = new ArrayList<>(roles("payer", "account", "wallet", "mint"));
    accounts.add(new Role("system program", Set.of(SYSTEM)));
    accounts.add(new Role("token program", Set.of(TOKEN, TOKEN_2022)));
    return Stream.of(
        new Form(
            "associated token account: " + name,
            ASSOCIATED_TOKEN,
            tag,
            List.of(),
            List.copyOf(accounts),
            false));
  }

  private static Stream<Form> budget(String name, int tag, Operand operand) {
    return Stream.of(
        new Form(
            BUDGET_CALL + name,
            COMPUTE_BUDGET,
            tag(tag, Type.U8),
            List.of(operand),
            List.of(),
            false));
  }

  private static List<Role> roles(String... names) {
    return Stream.of(names).map(name -> new Role(name, Set.of())).toList();
  }

  private static ByteString tag(int value, Type type) {
    byte[] tag = new byte[type.bytes];
    tag[0] = (byte) value;
    return ByteString.copyFrom(tag);
  }

  private SolanaPrograms() {}

  /**
   * An account of an instruction.
   *
   * @param signs whether it signs the transaction
   */
  record Account(String address, boolean signs) {}

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

    /** Whether a transaction that begins with it can be sent at any time, as its nonce holds. */
    boolean advancesNonce() {
      return text.equals(SYSTEM_CALL + ADVANCE_NONCE);
    }

    /** The units of computing that it asks for at most, if it is about that. */
    Optional<BigInteger> unitLimit() {
      return text.equals(BUDGET_CALL + UNIT_LIMIT)
          ? Optional.of(new BigInteger(values.get(UNITS)))
          : Optional.empty();
    }

    /** The micro-lamports that it offers for such a unit, if it is about that. */
    Optional<BigInteger> unitPrice() {
      return text.equals(BUDGET_CALL + UNIT_PRICE)
          ? Optional.of(new BigInteger(values.get(MICRO_LAMPORTS)))
          : Optional.empty();
    }
  }

  /**
   * Reads an instruction.
   *
   * @param program address of the program that it calls
   * @param accounts that it names
   * @param withoutBudget whether the transaction asks for its budget elsewhere: version 1 runs
   *     instructions that ask for one, and they change nothing
   * @return empty if it is none that is known here
   */
  static Optional<Call> read(
      String program, List<Account> accounts, ByteString data, boolean withoutBudget) {
    if (program.equals(MEMO_1) || program.equals(MEMO_2)) {
      return Lines.utf8(data)
          .filter(_ -> accounts.stream().allMatch(Account::signs))
          .map(text -> new Call("memo", Map.of("text", text), List.of()));
    }
    boolean idle = withoutBudget && program.equals(COMPUTE_BUDGET);
    return FORMS.stream()
        .filter(form -> form.program.equals(program))
        .filter(form -> data.startsWith(form.tag))
        .filter(form -> data.size() == form.tag.size() + size(form.operands))
        .filter(form -> fit(form, accounts))
        .findFirst()
        .map(
            form ->
                new Call(
                    idle ? form.text + ", without effect" : form.text,
                    values(form, data),
                    form.accounts.stream().map(Role::name).toList()));
  }

  /**
   * Whether the accounts are those of a form. Those that follow sign for an account of several
   * owners; others would be for code that the token's issuer chose, and that nobody here knows.
   */
  private static boolean fit(Form form, List<Account> accounts) {
    int named = form.accounts.size();
    if (accounts.size() < named || accounts.size() > named && !form.multisig) {
      return false;
    }
    for (int i = 0; i < named; i++) {
      Set<String> addresses = form.accounts.get(i).addresses;
      if (!addresses.isEmpty() && !addresses.contains(accounts.get(i).address)) {
        return false;
      }
    }
    return accounts.subList(named, accounts.size()).stream().allMatch(Account::signs);
  }

  private static int size(List<Operand> operands) {
    return operands.stream().mapToInt(operand -> operand.type.bytes).sum();
  }

  private static Map<String, String> values(Form form, ByteString data) {
    Map<String, String> values = new LinkedHashMap<>();
    int at = form.tag.size();
    for (Operand operand : form.operands) {
      ByteString value = data.substring(at, at + operand.type.bytes);
      String number = unsigned(value);
      boolean unlimited = operand.type == Type.ALLOWANCE && number.equals(MOST);
      values.put(operand.name, unlimited ? number + ", without limit" : number);
      at += operand.type.bytes;
    }
    return values;
  }

  private static String unsigned(ByteString number) {
    byte[] padded = new byte[Type.U64.bytes];
    number.copyTo(padded, 0);
    return Long.toUnsignedString(ByteBuffer.wrap(padded).order(ByteOrder.LITTLE_ENDIAN).getLong());
  }
}
