package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import fr.acinq.bitcoin.Bitcoin;
import fr.acinq.bitcoin.Block;
import fr.acinq.bitcoin.ByteVector;
import fr.acinq.bitcoin.Crypto;
import fr.acinq.bitcoin.OutPoint;
import fr.acinq.bitcoin.PublicKey;
import fr.acinq.bitcoin.Satoshi;
import fr.acinq.bitcoin.Script;
import fr.acinq.bitcoin.SigHash;
import fr.acinq.bitcoin.SigVersion;
import fr.acinq.bitcoin.Transaction;
import fr.acinq.bitcoin.TxIn;
import fr.acinq.bitcoin.TxOut;
import fr.acinq.bitcoin.psbt.Input;
import fr.acinq.bitcoin.psbt.Input.WitnessInput.PartiallySignedWitnessInput;
import fr.acinq.bitcoin.psbt.Psbt;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A partially signed Bitcoin transaction (BIP-174, version 0). */
public final class BitcoinPsbt {
  /** Entries of one of its maps. The library reads a map by recursion, so this bounds its stack. */
  private static final int MAX_ENTRIES = 256;

  /** Inputs. */
  private static final int MAX_INPUTS = 512;

  /** Outputs. */
  private static final int MAX_OUTPUTS = 1024;

  private static final byte[] MAGIC = {0x70, 0x73, 0x62, 0x74, (byte) 0xff};

  private final Psbt psbt;

  private BitcoinPsbt(Psbt psbt) {
    this.psbt = psbt;
  }

  /**
   * Decodes a PSBT.
   *
   * @param encoded in the encoding that {@link #canonical} gives
   * @throws IntentException if it is anything else
   */
  public static BitcoinPsbt decode(ByteString encoded) throws IntentException {
    BitcoinPsbt decoded = read(encoded);
    require(decoded.encoded().equals(encoded), IntentProblem.PSBT_MALFORMED);
    return decoded;
  }

  /**
   * The same PSBT with the entries of its maps in the order of their types and keys. BIP-174 leaves
   * the order open; what is signed must have only one encoding.
   *
   * @throws IntentException if it is no PSBT
   */
  public static ByteString canonical(ByteString encoded) throws IntentException {
    return read(encoded).encoded();
  }

  private static BitcoinPsbt read(ByteString encoded) throws IntentException {
    require(isBounded(encoded), IntentProblem.PSBT_MALFORMED);
    Psbt psbt;
    try {
      psbt = Psbt.read(encoded.toByteArray()).getRight();
    } catch (RuntimeException e) {
      // How the library says that bytes are no transaction, key or script; it has several ways.
      throw new IntentException(IntentProblem.PSBT_MALFORMED);
    }
    if (psbt == null || !isSane(psbt.global.tx)) {
      throw new IntentException(IntentProblem.PSBT_MALFORMED);
    }
    return new BitcoinPsbt(psbt);
  }

  /** Walks the maps by their lengths alone. */
  private static boolean isBounded(ByteString encoded) {
    if (!encoded.startsWith(ByteString.copyFrom(MAGIC))) {
      return false;
    }
    int entries = 0;
    long at = MAGIC.length;
    while (at < encoded.size()) {
      long key = length(encoded, at);
      at = key < 0 ? Long.MAX_VALUE : at + width(encoded, at) + key;
      if (key == 0) {
        entries = 0;
        continue;
      }
      long value = at < encoded.size() ? length(encoded, at) : -1;
      at = value < 0 ? Long.MAX_VALUE : at + width(encoded, at) + value;
      if (++entries > MAX_ENTRIES || at > encoded.size()) {
        return false;
      }
    }
    return at == encoded.size();
  }

  /** Bytes of the compact size at a place. */
  private static int width(ByteString bytes, long at) {
    return switch (bytes.byteAt((int) at) & 0xff) {
      case 0xfd -> 3;
      case 0xfe -> 5;
      case 0xff -> 9;
      default -> 1;
    };
  }

  /** The compact size at a place; negative if it is cut off or exceeds what is there. */
  private static long length(ByteString bytes, long at) {
    int width = width(bytes, at);
    if (width > bytes.size() - at) {
      return -1;
    }
    long length = bytes.byteAt((int) at) & 0xff;
    if (width > 1) {
      length = 0;
      for (int i = width - 1; i > 0; i--) {
        length = length << 8 | bytes.byteAt((int) at + i) & 0xff;
      }
    }
    return length <= bytes.size() - at - width ? length : -1;
  }

  private static boolean isSane(Transaction tx) {
    Set<OutPoint> spent = new HashSet<>();
    return !tx.txIn.isEmpty()
        && tx.txIn.size() <= MAX_INPUTS
        && !tx.txOut.isEmpty()
        && tx.txOut.size() <= MAX_OUTPUTS
        && tx.txIn.stream().allMatch(in -> spent.add(in.outPoint));
  }

  /** Its encoding. */
  public ByteString encoded() {
    return ByteString.copyFrom(Psbt.write(psbt).toByteArray());
  }

  /**
   * What is signed for an input: BIP-143, SIGHASH_ALL.
   *
   * @param publicKey the key that the output it spends must pay to by P2WPKH, 33 bytes
   * @throws IntentException if there is no such input, it is not of this key, or amounts are wrong
   */
  ByteString digest(int index, ByteString publicKey) throws IntentException {
    require(index >= 0 && index < psbt.inputs.size(), IntentProblem.PSBT_INPUT_UNKNOWN);
    Input input = psbt.inputs.get(index);
    require(
        input.getScriptSig() == null && input.getScriptWitness() == null,
        IntentProblem.PSBT_INPUT_FINAL);
    TxOut spent = input.getWitnessUtxo();
    if (spent == null) {
      throw new IntentException(IntentProblem.PSBT_UTXO_MISSING);
    }
    PublicKey key = new PublicKey(publicKey.toByteArray());
    require(
        spent.publicKeyScript.equals(new ByteVector(Script.write(Script.pay2wpkh(key))))
            && input.getRedeemScript() == null
            && input.getWitnessScript() == null,
        IntentProblem.PSBT_UTXO_NOT_OF_KEY);
    Integer sighash = input.getSighashType();
    require(sighash == null || sighash == SigHash.SIGHASH_ALL, IntentProblem.PSBT_SIGHASH);
    checkAmounts();
    return ByteString.copyFrom(
        psbt.global.tx.hashForSigning(
            index,
            Script.pay2pkh(Crypto.hash160(key.value)),
            SigHash.SIGHASH_ALL,
            spent.amount,
            SigVersion.SIGVERSION_WITNESS_V0));
  }

  /** Each amount and each sum can exist, and not more is paid than is spent. */
  private void checkAmounts() throws IntentException {
    long paid = 0;
    for (TxOut output : psbt.global.tx.txOut) {
      paid = add(paid, output);
    }
    long spent = 0;
    boolean known = true;
    for (int i = 0; i < psbt.inputs.size(); i++) {
      TxOut output = spentOutput(i);
      known &= output != null;
      spent = output == null ? spent : add(spent, output);
    }
    require(!known || paid <= spent, IntentProblem.PSBT_AMOUNT);
  }

  private static long add(long sum, TxOut output) throws IntentException {
    long amount = output.amount.getSat();
    require(
        amount >= 0 && amount <= Satoshi.Companion.getMAX_MONEY().getSat() - sum,
        IntentProblem.PSBT_AMOUNT);
    return sum + amount;
  }

  /** The output that an input spends, if the PSBT says. */
  private @Nullable TxOut spentOutput(int index) {
    Input input = psbt.inputs.get(index);
    TxOut witness = input.getWitnessUtxo();
    Transaction previous = input.getNonWitnessUtxo();
    return witness != null || previous == null
        ? witness
        : previous.txOut.get((int) psbt.global.tx.txIn.get(index).outPoint.index);
  }

  /** What it says, for the one who signs an input that {@link #digest} has accepted. */
  void describe(Lines lines, int index) {
    Transaction tx = psbt.global.tx;
    TxIn in = tx.txIn.get(index);
    lines.add("input", index + " of " + tx.txIn.size());
    lines.add("spends", in.outPoint.txid + ":" + in.outPoint.index);
    TxOut spent = spentOutput(index);
    if (spent != null) {
      lines.add("amount", spent.amount.getSat());
    }
    describeFee(lines);
    lines.add("lock time", tx.lockTime);
    lines.add("sequence", in.sequence);
    lines.add("outputs", tx.txOut.size());
    for (int i = 0; i < tx.txOut.size(); i++) {
      TxOut out = tx.txOut.get(i);
      lines.add("output " + i, out.amount.getSat() + " to " + recipient(out));
    }
  }

  /**
   * The fee, and whether it can be relied on: a signature covers the amount of its own input only,
   * and what the PSBT claims of the others is shown to be true by their transactions alone.
   */
  private void describeFee(Lines lines) {
    Satoshi fee = psbt.computeFees();
    boolean proven =
        psbt.inputs.size() == 1
            || psbt.inputs.stream().allMatch(input -> input.getNonWitnessUtxo() != null);
    lines.add(
        proven ? "fee" : "fee as claimed", fee == null ? "unknown" : Long.toString(fee.getSat()));
  }

  /** The address in its main-net form (the transaction names no network), or else the script. */
  private static String recipient(TxOut output) {
    String address =
        Bitcoin.addressFromPublicKeyScript(
                Block.LivenetGenesisBlock.hash, output.publicKeyScript.toByteArray())
            .getRight();
    return address != null
        ? address
        : "script " + Lines.hex(ByteString.copyFrom(output.publicKeyScript.toByteArray()));
  }

  /**
   * The PSBT with a partial signature for an input of a key.
   *
   * @param publicKey 33 bytes
   * @param derSignature as {@code Signing.der_signature} has it, without the byte of the sighash
   * @throws IntentException if there is no such input, or it is not of this key
   */
  public BitcoinPsbt signed(int index, ByteString publicKey, ByteString derSignature)
      throws IntentException {
    digest(index, publicKey);
    if (!(psbt.inputs.get(index) instanceof PartiallySignedWitnessInput input)) {
      throw new IntentException(IntentProblem.PSBT_INPUT_FINAL);
    }
    Map<PublicKey, ByteVector> signatures = new HashMap<>(input.getPartialSigs());
    signatures.put(
        new PublicKey(publicKey.toByteArray()),
        new ByteVector(
            derSignature
                .concat(ByteString.copyFrom(new byte[] {SigHash.SIGHASH_ALL}))
                .toByteArray()));
    List<Input> inputs = new ArrayList<>(psbt.inputs);
    inputs.set(
        index,
        new PartiallySignedWitnessInput(
            input.getTxOut(),
            input.getNonWitnessUtxo(),
            input.getSighashType(),
            signatures,
            input.getDerivationPaths(),
            input.getRedeemScript(),
            input.getWitnessScript(),
            input.getRipemd160(),
            input.getSha256(),
            input.getHash160(),
            input.getHash256(),
            input.getTaprootKeySignature(),
            input.getTaprootDerivationPaths(),
            input.getTaprootInternalKey(),
            input.getUnknown()));
    return new BitcoinPsbt(new Psbt(psbt.global, inputs, psbt.outputs));
  }

  private static void require(boolean condition, IntentProblem problem) throws IntentException {
    if (!condition) {
      throw new IntentException(problem);
    }
  }
}
