package io.coterie.platform.payload;

import static io.coterie.platform.payload.SolanaReader.require;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/**
 * The message of a Solana transaction, legacy, version 0 or version 1 (SIMD-0385), which all its
 * signers sign.
 */
public final class SolanaTransaction {
  /** Bytes of a whole transaction, signatures and their count included. */
  private static final int MAX_TRANSACTION = 1232;

  /** The same of version 1, whose signatures have no count. */
  private static final int MAX_TRANSACTION_V1 = 4096;

  /** Signers of a transaction of version 1, at most. */
  private static final int MAX_SIGNERS_V1 = 12;

  private static final int MAX_ACCOUNTS_V1 = 64;
  private static final int MAX_INSTRUCTIONS_V1 = 64;

  /** Accounts that an index of one byte can name. */
  private static final int MAX_ACCOUNTS = 256;

  /** Units of computing of a transaction, whatever it asks for. */
  private static final BigInteger MAX_UNITS = BigInteger.valueOf(1_400_000);

  /** Micro-lamports of one lamport. */
  private static final BigInteger MICRO_LAMPORTS = BigInteger.valueOf(1_000_000);

  private static final int SIGNATURE_BYTES = 64;
  private static final int BLOCKHASH_BYTES = 32;

  /** A bit of the first byte: if it is set, the rest of the byte is a version. */
  static final int VERSIONED = 0x80;

  /** The forms of a message; all their numbers stand in the first byte. */
  private enum Version {
    LEGACY("legacy"),
    V0("0"),
    V1("1");

    private final String text;

    Version(String text) {
      this.text = text;
    }
  }

  private final ByteString encoded;
  private final Version version;
  private final int signers;
  private final int readOnlySigners;
  private final int readOnlyOthers;
  private final List<ByteString> keys;
  private final ByteString blockhash;
  private final List<Instruction> instructions;
  private final List<Loaded> loaded;

  /** Requests of version 1 that earlier versions make by instructions, by name. */
  private final Map<String, String> requests;

  /**
   * @param program index of an account
   * @param accounts indices of accounts
   */
  private record Instruction(int program, List<Integer> accounts, ByteString data) {}

  /** An account whose key only the chain knows: it is in a table there. */
  private record Loaded(ByteString table, int index) {}

  private SolanaTransaction(ByteString encoded) throws IntentException {
    this.encoded = encoded;
    SolanaReader in = new SolanaReader(encoded);
    int first = in.u8();
    this.version = version(first);
    this.signers = version == Version.LEGACY ? first : in.u8();
    this.readOnlySigners = in.u8();
    this.readOnlyOthers = in.u8();
    if (version == Version.V1) {
      int mask = SolanaRequests.mask(in);
      this.blockhash = in.bytes(BLOCKHASH_BYTES);
      int count = in.u8();
      this.keys = in.keys(in.u8());
      this.requests = SolanaRequests.read(mask, in);
      this.instructions = separateInstructions(count, in);
    } else {
      this.keys = in.keys(in.compact());
      this.blockhash = in.bytes(BLOCKHASH_BYTES);
      this.requests = Map.of();
      this.instructions = instructions(in);
    }
    this.loaded = version == Version.V0 ? loaded(in) : List.of();
    in.end();
    check();
  }

  private static Version version(int first) throws IntentException {
    if ((first & VERSIONED) == 0) {
      return Version.LEGACY;
    }
    return switch (first & ~VERSIONED) {
      case 0 -> Version.V0;
      case 1 -> Version.V1;
      default -> throw new IntentException(IntentProblem.SOLANA_TRANSACTION_VERSION);
    };
  }

  private static List<Instruction> instructions(SolanaReader in) throws IntentException {
    int count = in.compact();
    List<Instruction> parsed = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      parsed.add(new Instruction(in.u8(), in.indices(in.compact()), in.bytes(in.compact())));
    }
    return List.copyOf(parsed);
  }

  /** Version 1: the sizes of all instructions stand before the content of the first one. */
  private static List<Instruction> separateInstructions(int count, SolanaReader in)
      throws IntentException {
    record Sizes(int program, int accounts, int data) {}
    require(count <= MAX_INSTRUCTIONS_V1);
    List<Sizes> sizes = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      sizes.add(new Sizes(in.u8(), in.u8(), (int) in.littleEndian(Short.BYTES)));
    }
    List<Instruction> parsed = new ArrayList<>();
    for (Sizes next : sizes) {
      parsed.add(new Instruction(next.program, in.indices(next.accounts), in.bytes(next.data)));
    }
    return List.copyOf(parsed);
  }

  /** The accounts of the tables: of each those that may be written, then those that are read. */
  private static List<Loaded> loaded(SolanaReader in) throws IntentException {
    List<Loaded> all = new ArrayList<>();
    int tables = in.compact();
    for (int i = 0; i < tables; i++) {
      ByteString table = in.bytes(SolanaAddress.BYTES);
      int before = all.size();
      for (int list = 0; list < 2; list++) {
        for (int index : in.indices(in.compact())) {
          all.add(new Loaded(table, index));
        }
      }
      require(all.size() > before);
    }
    return List.copyOf(all);
  }

  /** The checks that the chain makes before it runs anything. */
  private void check() throws IntentException {
    int accounts = keys.size() + loaded.size();
    require(
        signers >= 1
            // The first one pays, so it is written.
            && readOnlySigners < signers
            && signers + readOnlyOthers <= keys.size()
            && accounts <= (version == Version.V1 ? MAX_ACCOUNTS_V1 : MAX_ACCOUNTS)
            && (version != Version.V1 || signers <= MAX_SIGNERS_V1)
            && new HashSet<>(keys).size() == keys.size()
            && loaded.stream().distinct().count() == loaded.size()
            && size() <= (version == Version.V1 ? MAX_TRANSACTION_V1 : MAX_TRANSACTION));
    for (Instruction instruction : instructions) {
      // Neither the payer is a program, nor one whose key is not here.
      require(instruction.program >= 1 && instruction.program < keys.size());
      for (int account : instruction.accounts) {
        require(account < accounts);
      }
    }
  }

  /** Bytes of the transaction with all its signatures, and their count where they have one. */
  private int size() {
    return (version == Version.V1 ? 0 : 1) + signers * SIGNATURE_BYTES + encoded.size();
  }

  /**
   * Decodes a message.
   *
   * @param encoded header, account keys, blockhash, instructions and, with version 0, lookups in
   *     tables of addresses; no signatures
   * @throws IntentException if it is anything else, is not in its only encoding, or can never be
   *     valid
   */
  public static SolanaTransaction decode(ByteString encoded) throws IntentException {
    require(!encoded.isEmpty() && encoded.size() <= MAX_TRANSACTION_V1);
    return new SolanaTransaction(encoded);
  }

  /** Whether bytes are the message of a transaction. */
  static boolean isTransaction(ByteString bytes) {
    try {
      decode(bytes);
      return true;
    } catch (IntentException e) {
      return false;
    }
  }

  /**
   * The bytes that are signed: the message as it is.
   *
   * @param publicKey the key that signs, 32 bytes
   * @throws IntentException if it is none of the required signers
   */
  ByteString toSign(ByteString publicKey) throws IntentException {
    place(publicKey);
    return encoded;
  }

  /** Where among the signatures the one of a key is. */
  private int place(ByteString publicKey) throws IntentException {
    int place = keys.subList(0, signers).indexOf(publicKey);
    if (place < 0) {
      throw new IntentException(IntentProblem.SOLANA_SIGNER_MISSING);
    }
    return place;
  }

  /**
   * The transaction with one signature, as nodes take it; the places of other signers are zero.
   *
   * @param publicKey whose signature it is, 32 bytes
   * @param signature 64 bytes
   * @throws IntentException if the key is none of the required signers
   */
  public ByteString signed(ByteString publicKey, ByteString signature) throws IntentException {
    int place = place(publicKey);
    if (signature.size() != SIGNATURE_BYTES) {
      throw new IllegalArgumentException("signature is not 64 bytes");
    }
    byte[] signatures = new byte[signers * SIGNATURE_BYTES];
    signature.copyTo(signatures, place * SIGNATURE_BYTES);
    if (version == Version.V1) {
      return encoded.concat(ByteString.copyFrom(signatures));
    }
    // The size of a transaction allows so few that their count takes one byte.
    return ByteString.copyFrom(new byte[] {(byte) signers})
        .concat(ByteString.copyFrom(signatures))
        .concat(encoded);
  }

  /**
   * The fields that people are shown.
   *
   * @throws IntentException if they are not all: for an instruction that is not one of {@link
   *     SolanaPrograms}, and for accounts that only the chain knows
   */
  void describe(Lines lines) throws IntentException {
    if (!loaded.isEmpty()) {
      throw new IntentException(
          IntentProblem.PAYLOAD_NOT_READ, "accounts out of an address lookup table");
    }
    lines.add("version", version.text);
    lines.add("fee payer", SolanaAddress.of(keys.getFirst()));
    for (int i = 1; i < signers; i++) {
      lines.add("also signed by", SolanaAddress.of(keys.get(i)));
    }
    lines.add("recent blockhash", SolanaAddress.of(blockhash));
    List<SolanaPrograms.Call> calls = calls();
    if (!calls.isEmpty() && calls.getFirst().advancesNonce()) {
      lines.add("expires", "never");
    }
    describePriorityFee(lines, calls);
    for (Map.Entry<String, String> request : requests.entrySet()) {
      lines.add(request.getKey(), request.getValue());
    }
    lines.add("instructions", instructions.size());
    for (int i = 0; i < instructions.size(); i++) {
      describe(lines, i, calls.get(i));
    }
    for (int i = signers; i < keys.size(); i++) {
      if (!isUsed(i)) {
        lines.add("used by no instruction", SolanaAddress.of(keys.get(i)));
      }
    }
  }

  private boolean isUsed(int key) {
    return instructions.stream().anyMatch(i -> i.program == key || i.accounts.contains(key));
  }

  private List<SolanaPrograms.Call> calls() throws IntentException {
    List<SolanaPrograms.Call> calls = new ArrayList<>();
    for (Instruction instruction : instructions) {
      String program = SolanaAddress.of(keys.get(instruction.program));
      List<SolanaPrograms.Account> accounts =
          instruction.accounts.stream()
              .map(i -> new SolanaPrograms.Account(SolanaAddress.of(keys.get(i)), i < signers))
              .toList();
      int number = calls.size();
      calls.add(
          SolanaPrograms.read(program, accounts, instruction.data, version == Version.V1)
              .orElseThrow(
                  () ->
                      new IntentException(
                          IntentProblem.PAYLOAD_NOT_READ,
                          "instruction " + number + " of program " + program)));
    }
    return calls;
  }

  /**
   * Before version 1 the payer pays for units of computing: those that the transaction asks for,
   * or, if it says nothing, as many as its instructions may have, which is never more than a
   * transaction may have.
   */
  private void describePriorityFee(Lines lines, List<SolanaPrograms.Call> calls)
      throws IntentException {
    Optional<BigInteger> price = most(calls, SolanaPrograms.Call::unitPrice);
    if (version == Version.V1 || price.isEmpty()) {
      return;
    }
    BigInteger units = most(calls, SolanaPrograms.Call::unitLimit).orElse(MAX_UNITS).min(MAX_UNITS);
    lines.add(
        "priority fee at most, lamports",
        price
            .get()
            .multiply(units)
            .add(MICRO_LAMPORTS.subtract(BigInteger.ONE))
            .divide(MICRO_LAMPORTS));
  }

  private static Optional<BigInteger> most(
      List<SolanaPrograms.Call> calls, Function<SolanaPrograms.Call, Optional<BigInteger>> number) {
    return calls.stream().map(number).flatMap(Optional::stream).max(Comparator.naturalOrder());
  }

  private void describe(Lines lines, int number, SolanaPrograms.Call call) throws IntentException {
    Instruction instruction = instructions.get(number);
    lines.add("instruction " + number, call.text());
    for (Map.Entry<String, String> value : call.values().entrySet()) {
      lines.add(number + " " + value.getKey(), value.getValue());
    }
    for (int i = 0; i < instruction.accounts.size(); i++) {
      lines.add(number + " " + call.account(i), account(instruction.accounts.get(i)));
    }
  }

  /** An account, and what the transaction may do to it. */
  private String account(int index) {
    boolean signs = index < signers;
    boolean writable =
        signs ? index < signers - readOnlySigners : index < keys.size() - readOnlyOthers;
    return SolanaAddress.of(keys.get(index))
        + (signs ? ", signs" : "")
        + (writable ? ", writable" : "");
  }
}
