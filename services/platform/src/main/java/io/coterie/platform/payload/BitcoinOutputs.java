package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import fr.acinq.bitcoin.Bitcoin;
import fr.acinq.bitcoin.Block;
import fr.acinq.bitcoin.TxOut;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Says whom outputs of Bitcoin transactions pay. */
final class BitcoinOutputs {
  /** How the script of an output without a recipient begins; a push of up to 75 bytes follows. */
  private static final byte OP_RETURN = 0x6a;

  private static final int MAX_PUSH = 75;

  private static final byte OP_0 = 0;
  private static final byte OP_1 = 0x51;
  private static final byte OP_16 = 0x60;

  /** Bytes of the program that a script is which has a version and one push. */
  private static final int MIN_PROGRAM = 2;

  private static final int MAX_PROGRAM = 40;

  private BitcoinOutputs() {}

  /** The address whose owner signs for another input, or else its script. */
  static String holder(TxOut output) {
    String address = address(output);
    return address != null ? address : "script " + Lines.hex(script(output));
  }

  /**
   * The address that an output pays to, or the text that it holds: nobody can spend its amount.
   *
   * @throws IntentException if it is neither: the script says who is paid, and people read none
   */
  static String recipient(TxOut output, int index) throws IntentException {
    String address = address(output);
    if (address != null) {
      return address;
    }
    return text(script(output))
        .map(text -> "nobody, with text: " + text)
        .orElseThrow(
            () -> new IntentException(IntentProblem.PAYLOAD_NOT_READ, "script of output " + index));
  }

  /** The address in its main-net form: the transaction names no network. */
  private static @Nullable String address(TxOut output) {
    if (!hasKnownRule(script(output))) {
      return null;
    }
    return Bitcoin.addressFromPublicKeyScript(
            Block.LivenetGenesisBlock.hash, output.publicKeyScript.toByteArray())
        .getRight();
  }

  /**
   * Whether it is clear who can spend: of witness programs of versions and sizes that have no rule
   * yet it is anybody, though they have an address.
   */
  private static boolean hasKnownRule(ByteString script) {
    boolean program =
        script.size() >= MIN_PROGRAM + 2
            && script.size() <= MAX_PROGRAM + 2
            && script.byteAt(1) == script.size() - 2
            && (script.byteAt(0) == OP_0 || script.byteAt(0) >= OP_1 && script.byteAt(0) <= OP_16);
    if (!program) {
      return true;
    }
    return switch (script.byteAt(0)) {
      case OP_0 -> script.byteAt(1) == 20 || script.byteAt(1) == 32;
      case OP_1 -> script.byteAt(1) == 32;
      default -> false;
    };
  }

  /** The text of a script that is OP_RETURN and one push of a text. */
  private static Optional<String> text(ByteString script) {
    boolean pushes =
        script.size() > 2
            && script.byteAt(0) == OP_RETURN
            && script.byteAt(1) <= MAX_PUSH
            && script.byteAt(1) == script.size() - 2;
    return pushes
        ? Lines.utf8(script.substring(2))
            .filter(text -> text.codePoints().noneMatch(Characters::misleads))
        : Optional.empty();
  }

  private static ByteString script(TxOut output) {
    return ByteString.copyFrom(output.publicKeyScript.toByteArray());
  }
}
