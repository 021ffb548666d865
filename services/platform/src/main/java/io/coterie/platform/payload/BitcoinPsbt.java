package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
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
import fr.acinq.bitcoin.XonlyPublicKey;
import fr.acinq.bitcoin.psbt.DataEntry;
import fr.acinq.bitcoin.psbt.Input;
import fr.acinq.bitcoin.psbt.Input.WitnessInput.PartiallySignedWitnessInput;
import fr.acinq.bitcoin.psbt.Psbt;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.scheme.TaprootKey;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A partially signed Bitcoin transaction (BIP-174, version 0). */
public final class BitcoinPsbt {
  /** Inputs. */
  private static final int MAX_INPUTS = 512;

  /** Outputs. */
  private static final int MAX_OUTPUTS = 1024;

  /** Type of the entry with the root of the script tree (BIP-371). */
  private static final byte TAP_MERKLE_ROOT = 0x18;

  /** How the script of a Taproot output begins; its key follows. */
  private static final ByteString TAPROOT_SCRIPT =
      ByteString.copyFrom(new byte[] {0x51, TaprootKey.X_ONLY_BYTES});

  /** Bytes of a key's hash, and how the script of a P2WPKH output begins; the hash follows. */
  private static final int HASH_BYTES = 20;

  private static final ByteString WITNESS_SCRIPT =
      ByteString.copyFrom(new byte[] {0x00, HASH_BYTES});

  private final Psbt psbt;

  /** The input as it was read; only the extended public keys count later. */
  private final PsbtMaps read;

  private BitcoinPsbt(Psbt psbt, PsbtMaps read) {
    this.psbt = psbt;
    this.read = read;
  }

  /**
   * Decodes a PSBT. Its maps may have their entries in any order. Every byte has to be understood:
   * the entries of the result, encoded again, are those that were read.
   *
   * @throws IntentException if it is no PSBT of version 0, has an entry twice, or something that is
   *     not in its shortest encoding
   */
  public static BitcoinPsbt decode(ByteString encoded) throws IntentException {
    PsbtMaps maps = PsbtMaps.read(encoded);
    BitcoinPsbt decoded = read(maps);
    require(decoded.maps().equals(maps), IntentProblem.PSBT_MALFORMED);
    return decoded;
  }

  private static BitcoinPsbt read(PsbtMaps maps) throws IntentException {
    Psbt psbt;
    try {
      // The library reads a map by recursion; the bound on its entries bounds the stack.
      psbt = Psbt.read(maps.withoutXpubs().encoded().toByteArray()).getRight();
    } catch (RuntimeException e) {
      // How the library says that bytes are no transaction, key or script; it has several ways.
      throw new IntentException(IntentProblem.PSBT_MALFORMED);
    }
    if (psbt == null || !isSane(psbt.global.tx) || !isProven(psbt)) {
      throw new IntentException(IntentProblem.PSBT_MALFORMED);
    }
    return new BitcoinPsbt(psbt, maps);
  }

  private static boolean isSane(Transaction tx) {
    Set<OutPoint> spent = new HashSet<>();
    return !tx.txIn.isEmpty()
        && tx.txIn.size() <= MAX_INPUTS
        && !tx.txOut.isEmpty()
        && tx.txOut.size() <= MAX_OUTPUTS
        && tx.txIn.stream().allMatch(in -> spent.add(in.outPoint));
  }

  /**
   * Each previous transaction is the one that its input names, and what the input says it spends is
   * the output there. The library looks, too, but the fee that is shown depends on it.
   */
  private static boolean isProven(Psbt psbt) {
    for (int i = 0; i < psbt.inputs.size(); i++) {
      Input input = psbt.inputs.get(i);
      Transaction previous = input.getNonWitnessUtxo();
      if (previous == null) {
        continue;
      }
      OutPoint spent = psbt.global.tx.txIn.get(i).outPoint;
      boolean there =
          previous.txid.equals(spent.txid)
              && spent.index >= 0
              && spent.index < previous.txOut.size();
      TxOut claimed = input.getWitnessUtxo();
      if (!there || claimed != null && !claimed.equals(previous.txOut.get((int) spent.index))) {
        return false;
      }
    }
    return true;
  }

  /** Its encoding, with the entries of each map in the order of their types and keys. */
  public ByteString encoded() {
    try {
      return maps().encoded();
    } catch (IntentException e) {
      throw new IllegalStateException("the library wrote what is no PSBT", e);
    }
  }

  private PsbtMaps maps() throws IntentException {
    return PsbtMaps.read(ByteString.copyFrom(Psbt.write(psbt).toByteArray())).withXpubsOf(read);
  }

  /**
   * The digest that an ECDSA key signs for an input: BIP-143, SIGHASH_ALL.
   *
   * @param publicKey the key that the output it spends must pay to by P2WPKH, 33 bytes
   * @throws IntentException if there is no such input, it is not of this key, or amounts are wrong
   */
  ByteString digest(int index, ByteString publicKey) throws IntentException {
    PublicKey key = new PublicKey(publicKey.toByteArray());
    require(
        spentByWitness(unsigned(index))
            .publicKeyScript
            .equals(new ByteVector(Script.write(Script.pay2wpkh(key)))),
        IntentProblem.PSBT_UTXO_NOT_OF_KEY);
    return witnessDigest(index, Crypto.hash160(key.value));
  }

  private ByteString witnessDigest(int index, byte[] keyHash) throws IntentException {
    Input input = unsigned(index);
    TxOut spent = spentByWitness(input);
    require(
        input.getRedeemScript() == null && input.getWitnessScript() == null,
        IntentProblem.PSBT_UTXO_NOT_OF_KEY);
    Integer sighash = input.getSighashType();
    require(sighash == null || sighash == SigHash.SIGHASH_ALL, IntentProblem.PSBT_SIGHASH);
    checkAmounts();
    requirePreviousTransactions();
    return witnessHash(index, keyHash, spent.amount);
  }

  /** BIP-143, SIGHASH_ALL, of an input that spends so much of P2WPKH. */
  ByteString witnessHash(int index, byte[] keyHash, Satoshi amount) {
    return ByteString.copyFrom(
        psbt.global.tx.hashForSigning(
            index,
            Script.pay2pkh(keyHash),
            SigHash.SIGHASH_ALL,
            amount,
            SigVersion.SIGVERSION_WITNESS_V0));
  }

  /**
   * The digest that a BIP-340 key signs for an input: BIP-341, key path, SIGHASH_DEFAULT or
   * SIGHASH_ALL.
   *
   * @param outputKey the key that the output it spends must pay to by P2TR, 32 bytes
   * @param merkleRoot the one that went into the output key; empty if none did
   * @throws IntentException if there is no such input, it is not of this key, what an input spends
   *     is not there, or amounts are wrong
   */
  ByteString taprootDigest(int index, ByteString outputKey, ByteString merkleRoot)
      throws IntentException {
    Input input = unsigned(index);
    TxOut spent = spentByWitness(input);
    require(
        spent.publicKeyScript.equals(new ByteVector(taprootScript(outputKey)))
            && input.getRedeemScript() == null
            && input.getWitnessScript() == null,
        IntentProblem.PSBT_UTXO_NOT_OF_KEY);
    require(taprootMerkleRoot(input).equals(merkleRoot), IntentProblem.PSBT_TAPROOT);
    XonlyPublicKey internal = input.getTaprootInternalKey();
    require(
        internal == null || isInternal(internal, merkleRoot, outputKey),
        IntentProblem.PSBT_TAPROOT);
    int sighash = taprootSighash(input);
    require(
        sighash == SigHash.SIGHASH_DEFAULT || sighash == SigHash.SIGHASH_ALL,
        IntentProblem.PSBT_SIGHASH);
    checkAmounts();
    List<TxOut> spentByAll = new ArrayList<>();
    for (int i = 0; i < psbt.inputs.size(); i++) {
      TxOut output = spentOutput(i);
      if (output == null) {
        throw new IntentException(IntentProblem.PSBT_UTXO_MISSING);
      }
      spentByAll.add(output);
    }
    return ByteString.copyFrom(
        psbt.global
            .tx
            .hashForSigningTaprootKeyPath(index, spentByAll, sighash, null)
            .toByteArray());
  }

  /**
   * The root of the script tree that an input's output commits to besides its key.
   *
   * @return 32 bytes, or empty if the PSBT names none
   * @throws IntentException if there is no such input, or what it names is no root
   */
  public ByteString taprootMerkleRoot(int index) throws IntentException {
    require(index >= 0 && index < psbt.inputs.size(), IntentProblem.PSBT_INPUT_UNKNOWN);
    return taprootMerkleRoot(psbt.inputs.get(index));
  }

  /**
   * Whether what an input spends pays by Taproot, as far as the PSBT says.
   *
   * @throws IntentException if there is no such input
   */
  public boolean isTaproot(int index) throws IntentException {
    require(index >= 0 && index < psbt.inputs.size(), IntentProblem.PSBT_INPUT_UNKNOWN);
    TxOut spent = psbt.inputs.get(index).getWitnessUtxo();
    return spent != null
        && isTaprootScript(ByteString.copyFrom(spent.publicKeyScript.toByteArray()));
  }

  private static ByteString taprootMerkleRoot(Input input) throws IntentException {
    for (DataEntry entry : input.getUnknown()) {
      if (entry.key.size() > 0 && entry.key.get(0) == TAP_MERKLE_ROOT) {
        require(
            entry.key.size() == 1 && entry.value.size() == KeyTarget.MERKLE_ROOT_BYTES,
            IntentProblem.PSBT_TAPROOT);
        return ByteString.copyFrom(entry.value.toByteArray());
      }
    }
    return ByteString.EMPTY;
  }

  private static int taprootSighash(Input input) {
    Integer sighash = input.getSighashType();
    return sighash == null ? SigHash.SIGHASH_DEFAULT : sighash;
  }

  private static boolean isInternal(
      XonlyPublicKey internal, ByteString merkleRoot, ByteString outputKey) {
    try {
      return TaprootKey.output(ByteString.copyFrom(internal.value.toByteArray()), merkleRoot)
          .equals(outputKey);
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /** OP_1 and a push of the key (BIP-341). */
  private static byte[] taprootScript(ByteString outputKey) {
    return TAPROOT_SCRIPT.concat(outputKey).toByteArray();
  }

  private static boolean isTaprootScript(ByteString script) {
    return script.startsWith(TAPROOT_SCRIPT)
        && script.size() == TAPROOT_SCRIPT.size() + TaprootKey.X_ONLY_BYTES;
  }

  private Input unsigned(int index) throws IntentException {
    require(index >= 0 && index < psbt.inputs.size(), IntentProblem.PSBT_INPUT_UNKNOWN);
    Input input = psbt.inputs.get(index);
    require(
        input.getScriptSig() == null && input.getScriptWitness() == null,
        IntentProblem.PSBT_INPUT_FINAL);
    return input;
  }

  private static TxOut spentByWitness(Input input) throws IntentException {
    TxOut spent = input.getWitnessUtxo();
    if (spent == null) {
      throw new IntentException(IntentProblem.PSBT_UTXO_MISSING);
    }
    return spent;
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

  /**
   * A signature after BIP-143 covers the amount of its own input only: a requester that lies about
   * the others gets two signatures which together pay a fee that neither signer saw
   * (CVE-2020-14199). A previous transaction proves an amount, as its id is signed. The own input
   * needs one as well, so that no amount that is shown is a claim; and those that say they are of
   * Taproot, since nothing else proves that they are.
   */
  private void requirePreviousTransactions() throws IntentException {
    for (Input input : psbt.inputs) {
      require(input.getNonWitnessUtxo() != null, IntentProblem.PSBT_PREVIOUS_TRANSACTION);
    }
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

  /**
   * The digest for the key that an input's output pays to, and the fields of the transaction, for a
   * requester who does not have the key at hand.
   *
   * @throws IntentException if there is no such input, it pays to no single key, or its amounts are
   *     wrong
   */
  ByteString preview(Lines lines, int index) throws IntentException {
    ByteString script =
        ByteString.copyFrom(spentByWitness(unsigned(index)).publicKeyScript.toByteArray());
    if (isTaprootScript(script)) {
      ByteString outputKey = script.substring(TAPROOT_SCRIPT.size());
      ByteString digest = taprootDigest(index, outputKey, taprootMerkleRoot(index));
      describe(lines, index);
      return digest;
    }
    require(
        script.startsWith(WITNESS_SCRIPT) && script.size() == WITNESS_SCRIPT.size() + HASH_BYTES,
        IntentProblem.PSBT_UTXO_NOT_OF_KEY);
    ByteString digest = witnessDigest(index, script.substring(WITNESS_SCRIPT.size()).toByteArray());
    describe(lines, index);
    return digest;
  }

  /**
   * The fields that the signer of an input is shown, once {@link #digest} or {@link #taprootDigest}
   * has accepted it.
   */
  void describe(Lines lines, int index) throws IntentException {
    Transaction tx = psbt.global.tx;
    TxIn in = tx.txIn.get(index);
    lines.add("input", index + " of " + tx.txIn.size());
    lines.add("spends", in.outPoint.txid + ":" + in.outPoint.index);
    TxOut spent = spentOutput(index);
    if (spent != null) {
      lines.add("amount", spent.amount.getSat());
    }
    for (int i = 0; i < tx.txIn.size(); i++) {
      if (i != index) {
        describeOther(lines, i);
      }
    }
    Satoshi fee = psbt.computeFees();
    lines.add("fee", fee == null ? "unknown" : Long.toString(fee.getSat()));
    lines.add("lock time", tx.lockTime);
    lines.add("sequence", in.sequence);
    lines.add("outputs", tx.txOut.size());
    for (int i = 0; i < tx.txOut.size(); i++) {
      TxOut out = tx.txOut.get(i);
      lines.add("output " + i, out.amount.getSat() + " to " + BitcoinOutputs.recipient(out, i));
    }
  }

  /** An input that somebody else signs, or the same key by another signature. */
  private void describeOther(Lines lines, int index) throws IntentException {
    OutPoint outPoint = psbt.global.tx.txIn.get(index).outPoint;
    TxOut spent = spentOutput(index);
    String amount =
        spent == null ? "unknown" : spent.amount.getSat() + " from " + BitcoinOutputs.holder(spent);
    lines.add("input " + index, amount + ", at " + outPoint.txid + ":" + outPoint.index);
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
    PartiallySignedWitnessInput input = signable(index);
    Map<PublicKey, ByteVector> signatures = new HashMap<>(input.getPartialSigs());
    signatures.put(
        new PublicKey(publicKey.toByteArray()),
        new ByteVector(
            derSignature
                .concat(ByteString.copyFrom(new byte[] {SigHash.SIGHASH_ALL}))
                .toByteArray()));
    return with(index, input, signatures, input.getTaprootKeySignature());
  }

  /**
   * The PSBT with the signature of a spend by key path.
   *
   * @param outputKey 32 bytes
   * @param signature 64 bytes
   * @throws IntentException if there is no such input, or it is not of this key
   */
  public BitcoinPsbt signedTaproot(int index, ByteString outputKey, ByteString signature)
      throws IntentException {
    taprootDigest(index, outputKey, taprootMerkleRoot(index));
    PartiallySignedWitnessInput input = signable(index);
    int sighash = taprootSighash(input);
    // The default has no byte of its own.
    ByteString whole =
        sighash == SigHash.SIGHASH_DEFAULT
            ? signature
            : signature.concat(ByteString.copyFrom(new byte[] {(byte) sighash}));
    return with(index, input, input.getPartialSigs(), new ByteVector(whole.toByteArray()));
  }

  private PartiallySignedWitnessInput signable(int index) throws IntentException {
    if (psbt.inputs.get(index) instanceof PartiallySignedWitnessInput input) {
      return input;
    }
    throw new IntentException(IntentProblem.PSBT_INPUT_FINAL);
  }

  private BitcoinPsbt with(
      int index,
      PartiallySignedWitnessInput input,
      Map<PublicKey, ByteVector> signatures,
      @Nullable ByteVector taprootSignature) {
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
            taprootSignature,
            input.getTaprootDerivationPaths(),
            input.getTaprootInternalKey(),
            input.getUnknown()));
    return new BitcoinPsbt(new Psbt(psbt.global, inputs, psbt.outputs), read);
  }

  private static void require(boolean condition, IntentProblem problem) throws IntentException {
    if (!condition) {
      throw new IntentException(problem);
    }
  }
}
