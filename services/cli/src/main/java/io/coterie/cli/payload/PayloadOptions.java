package io.coterie.cli.payload;

import com.google.protobuf.ByteString;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.payload.BitcoinPsbt;
import io.coterie.proto.custody.v1.BitcoinInput;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TaprootOutput;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The payload, and the child of the key that signs it. */
public final class PayloadOptions {
  /** Bytes of a file that is read; twice as many in hexadecimal, and some white space. */
  private static final int MAX_FILE = 256 * 1024;

  private static final Pattern HEX = Pattern.compile("(0x)?[0-9a-fA-F\\s]+");
  private static final Pattern BASE64 = Pattern.compile("[0-9a-zA-Z+/\\s]+=?\\s*=?");

  @ArgGroup @Nullable Kind given;

  @Option(
      names = "--path",
      paramLabel = "PATH",
      converter = DerivationPath.class,
      description = "The child of the key that signs, such as m/0/1; the key itself by default.")
  @Nullable DerivationPath path;

  @Option(
      names = "--scheme",
      completionCandidates = Spelling.Schemes.class,
      description =
          "${COMPLETION-CANDIDATES}; by default the one that signs this kind of payload,"
              + " for messages bls12381, for digests ecdsa-secp256k1.")
  @Nullable String scheme;

  @Option(
      names = "--taproot",
      arity = "0..1",
      fallbackValue = "",
      paramLabel = "ROOT",
      description =
          "BIP-340: the Taproot output key signs; with the root of its script tree, as hex,"
              + " if it has one. With --psbt by itself.")
  @Nullable String taproot;

  /** Exactly one form. */
  static final class Kind {
    @Option(
        names = {"-m", "--message"},
        paramLabel = "TEXT",
        description = "BLS, Ed25519: the message, as UTF-8.")
    @Nullable String text;

    @Option(
        names = "--message-hex",
        paramLabel = "HEX",
        description = "BLS, Ed25519: the message, as hex.")
    @Nullable String hex;

    @Option(
        names = {"-f", "--message-file"},
        paramLabel = "FILE",
        description = "BLS, Ed25519: the message, at most 64 KiB.")
    @Nullable Path file;

    @Option(
        names = "--digest",
        paramLabel = "HEX",
        description = "ECDSA, BIP-340: 32 bytes; the signers must allow it to this requester.")
    @Nullable String digest;

    @Option(
        names = "--ethereum-transaction",
        paramLabel = "FILE",
        description = "ECDSA: an unsigned transaction, as hex or in binary.")
    @Nullable Path transaction;

    @Option(
        names = "--ethereum-message",
        paramLabel = "TEXT",
        description = "ECDSA: a message as personal_sign takes it (EIP-191).")
    @Nullable String ethereumMessage;

    @Option(
        names = "--typed-data",
        paramLabel = "FILE",
        description = "ECDSA: the JSON of eth_signTypedData_v4 (EIP-712).")
    @Nullable Path typedData;

    @Option(
        names = "--solana-transaction",
        paramLabel = "FILE",
        description = "Ed25519: a transaction's message, as base64, as hex or in binary.")
    @Nullable Path solanaTransaction;

    @ArgGroup(exclusive = false)
    @Nullable PsbtInput psbt;
  }

  /** One input of a PSBT. */
  static final class PsbtInput {
    @Option(
        names = "--psbt",
        required = true,
        paramLabel = "FILE",
        description =
            "ECDSA, and BIP-340 if the input spends Taproot: a Bitcoin PSBT, as base64 or in binary.")
    Path file = Path.of("");

    @Option(
        names = "--input",
        paramLabel = "N",
        defaultValue = "0",
        description = "Which of its inputs; the first is ${DEFAULT-VALUE}.")
    int input;
  }

  /** The numbers of a derivation path. */
  List<Integer> derivationPath() {
    return path == null ? List.of() : path.numbers();
  }

  /** Whether the command line has a payload. */
  public boolean given() {
    return given != null;
  }

  /**
   * Puts scheme, path and payload into an intent.
   *
   * @param command for its usage error, if the command line has no payload
   */
  public SigningIntent.Builder into(SigningIntent.Builder intent, CommandLine command) {
    Kind kind = given;
    if (kind == null) {
      throw new ParameterException(command, "Give what to sign");
    }
    if (kind.text != null) {
      intent.setMessage(ByteString.copyFromUtf8(kind.text));
    } else if (kind.hex != null) {
      intent.setMessage(hex("--message-hex", kind.hex));
    } else if (kind.file != null) {
      intent.setMessage(read(kind.file));
    } else if (kind.digest != null) {
      intent.setDigest(hex("--digest", kind.digest));
    } else if (kind.transaction != null) {
      intent.setEthereumTransaction(hexOrBinary(read(kind.transaction)));
    } else if (kind.ethereumMessage != null) {
      intent.setEthereumMessage(ByteString.copyFromUtf8(kind.ethereumMessage));
    } else if (kind.typedData != null) {
      intent.setEthereumTypedData(utf8(kind.typedData));
    } else if (kind.solanaTransaction != null) {
      intent.setScheme(Scheme.SCHEME_ED25519).setSolanaTransaction(solana(kind.solanaTransaction));
    } else if (kind.psbt != null) {
      bitcoin(intent, kind.psbt);
    }
    if (taproot != null) {
      intent.setTaproot(TaprootOutput.newBuilder().setMerkleRoot(hex("--taproot", taproot)));
    }
    if (scheme != null) {
      intent.setScheme(Spelling.parseScheme(scheme));
    } else if (intent.getScheme() == Scheme.SCHEME_UNSPECIFIED) {
      intent.setScheme(
          kind.text != null || kind.hex != null || kind.file != null
              ? Scheme.SCHEME_BLS12381
              : Scheme.SCHEME_ECDSA_SECP256K1);
    }
    return intent.addAllDerivationPath(derivationPath());
  }

  /** Sets the scheme that the input asks for, and the tweak that it names. */
  private static void bitcoin(SigningIntent.Builder intent, PsbtInput given) {
    ByteString content = psbt(given.file);
    intent.setBitcoinInput(BitcoinInput.newBuilder().setPsbt(content).setInput(given.input));
    try {
      BitcoinPsbt psbt = BitcoinPsbt.decode(content);
      if (psbt.isTaproot(given.input)) {
        intent
            .setScheme(Scheme.SCHEME_BIP340_SECP256K1)
            .setTaproot(
                TaprootOutput.newBuilder().setMerkleRoot(psbt.taprootMerkleRoot(given.input)));
      }
    } catch (IntentException e) {
      throw CliException.local(given.file + ": " + e.problem().text());
    }
  }

  private static ByteString solana(Path file) {
    ByteString content = hexOrBinary(read(file));
    String text = content.toString(StandardCharsets.ISO_8859_1).strip();
    return BASE64.matcher(text).matches() ? base64(file, text) : content;
  }

  private static ByteString hex(String what, String hex) {
    return ByteString.copyFrom(Spelling.parseHex(what, hex));
  }

  private static ByteString read(Path file) {
    try (InputStream in = Files.newInputStream(file)) {
      byte[] bytes = in.readNBytes(MAX_FILE + 1);
      if (bytes.length > MAX_FILE) {
        throw CliException.local(file + " is larger than " + MAX_FILE + " bytes");
      }
      return ByteString.copyFrom(bytes);
    } catch (IOException e) {
      throw CliException.local("file " + file + " cannot be read");
    }
  }

  private static ByteString hexOrBinary(ByteString content) {
    String text = content.toString(StandardCharsets.ISO_8859_1).strip();
    return HEX.matcher(text).matches()
        ? hex("the file's content", text.replaceAll("\\s", ""))
        : content;
  }

  private static String utf8(Path file) {
    ByteString content = read(file);
    if (!content.isValidUtf8()) {
      throw CliException.local(file + " is not UTF-8 text");
    }
    return content.toStringUtf8();
  }

  private static ByteString base64(Path file, String text) {
    try {
      return ByteString.copyFrom(Base64.getMimeDecoder().decode(text));
    } catch (IllegalArgumentException e) {
      throw CliException.local(file + " is neither in binary nor base64");
    }
  }

  private static ByteString psbt(Path file) {
    ByteString content = read(file);
    return content.startsWith(ByteString.copyFromUtf8("psbt"))
        ? content
        : base64(file, content.toString(StandardCharsets.ISO_8859_1));
  }
}
