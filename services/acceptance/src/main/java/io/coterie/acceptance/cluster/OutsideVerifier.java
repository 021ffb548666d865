package io.coterie.acceptance.cluster;

import com.google.protobuf.ByteString;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Verification by implementations that are not ours and share no code with it: {@code
 * verifier/verify.mjs}, on node with @noble/curves, ethers, bitcoinjs-lib and Solana's own
 * libraries.
 */
public final class OutsideVerifier implements AutoCloseable {
  private static final Pattern ANSWER =
      Pattern.compile("\\{\"valid\":(true|false),\"by\":\"([^\"]+)\",\"value\":\"([^\"]*)\"}");

  /** Hash of no real block: nothing is sent to a chain. */
  private static final String BLOCKHASH = "EETubP5AKHgjPAhzPAFcb8BAY1hMH639CWCFTqi3hq1k";

  private final Process process;
  private final Writer questions;
  private final BufferedReader answers;

  /**
   * The verifier's answer.
   *
   * @param by name and version of the implementation
   * @param value its result: an address, or a transaction in hexadecimal; or empty
   */
  public record Verdict(boolean valid, String by, String value) {}

  private OutsideVerifier(Process process) {
    this.process = process;
    this.questions = process.outputWriter(StandardCharsets.US_ASCII);
    this.answers = process.inputReader(StandardCharsets.US_ASCII);
  }

  /**
   * Starts it.
   *
   * @param projectRoot where the Makefile is
   * @throws IllegalStateException if node or its packages are missing; never falls back to our own
   */
  public static OutsideVerifier start(Path projectRoot) {
    Path folder = projectRoot.resolve("services/acceptance/verifier");
    if (!Files.isDirectory(folder.resolve("node_modules"))) {
      throw new IllegalStateException(
          "the outside verifier is not installed: run `make build`, or `npm ci` in " + folder);
    }
    try {
      return new OutsideVerifier(
          new ProcessBuilder("node", folder.resolve("verify.mjs").toString())
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start());
    } catch (IOException e) {
      throw new IllegalStateException("node cannot be started: install Node.js 18 or newer", e);
    }
  }

  /** Verifies a BLS signature. */
  public Verdict verify(byte[] publicKey, byte[] message, byte[] signature) {
    return bls(publicKey, message, signature, Map.of());
  }

  /** Verifies a BLS signature and the proof of possession of its key. */
  public Verdict verify(byte[] publicKey, byte[] message, byte[] signature, byte[] proof) {
    return bls(publicKey, message, signature, Map.of("proof", hex(proof)));
  }

  private Verdict bls(
      byte[] publicKey, byte[] message, byte[] signature, Map<String, String> more) {
    Map<String, String> question = new HashMap<>(more);
    question.put("publicKey", hex(publicKey));
    question.put("message", hex(message));
    question.put("signature", hex(signature));
    return ask("bls", question, "");
  }

  /** Verifies an ECDSA signature, 64 bytes, with low s. */
  public Verdict ecdsa(ByteString publicKey, ByteString digest, ByteString signature) {
    return ask(
        "ecdsa",
        Map.of("publicKey", hex(publicKey), "digest", hex(digest), "signature", hex(signature)),
        "");
  }

  /** Verifies an Ed25519 signature (RFC 8032, strictly). */
  public Verdict ed25519(ByteString publicKey, ByteString message, ByteString signature) {
    return ask(
        "ed25519",
        Map.of("publicKey", hex(publicKey), "message", hex(message), "signature", hex(signature)),
        "");
  }

  /** Verifies a BIP-340 signature. */
  public Verdict bip340(ByteString publicKey, ByteString digest, ByteString signature) {
    return ask(
        "bip340",
        Map.of("publicKey", hex(publicKey), "digest", hex(digest), "signature", hex(signature)),
        "");
  }

  /** Computes the Ethereum address of a descendant of an extended public key. */
  public Verdict ethereumAddress(String xpub, List<Integer> path) {
    return ask("ethereum-address", Map.of("xpub", xpub, "path", steps(path)), "");
  }

  /** Recovers the sender of a raw Ethereum transaction. */
  public Verdict ethereumTransaction(ByteString transaction) {
    return ask("ethereum-transaction", Map.of("transaction", hex(transaction)), "");
  }

  /** Recovers who signed an EIP-191 message. */
  public Verdict ethereumMessage(ByteString message, ByteString signature, int recoveryId) {
    return ask(
        "ethereum-message",
        Map.of("message", hex(message), "signature", hex(signature)),
        ",\"recoveryId\":" + recoveryId);
  }

  /** Recovers who signed EIP-712 typed data. */
  public Verdict ethereumTypedData(String json, ByteString signature, int recoveryId) {
    return ask(
        "ethereum-typed-data",
        Map.of("typedData", hex(ByteString.copyFromUtf8(json)), "signature", hex(signature)),
        ",\"recoveryId\":" + recoveryId);
  }

  /** Verifies every signature of a PSBT and makes the final transaction. */
  public Verdict bitcoinPsbt(ByteString psbt) {
    return ask("bitcoin-psbt", Map.of("psbt", hex(psbt)), "");
  }

  /**
   * Has a wallet's library write the transaction that it wants signed.
   *
   * @param to an address
   * @param value in wei
   */
  public ByteString ethereumDraft(long chainId, long nonce, String to, String value) {
    return draft(
        "ethereum-draft",
        Map.of(
            "chainId",
            Long.toString(chainId),
            "nonce",
            Long.toString(nonce),
            "to",
            to,
            "value",
            value));
  }

  /**
   * Has a wallet's library write a PSBT that spends outputs of a key.
   *
   * @param inputs how many outputs it spends
   * @param amount of each, in satoshi
   * @param to an address of the main net, which gets all but the fee
   */
  public ByteString bitcoinDraft(
      ByteString publicKey, int inputs, long amount, String to, long fee) {
    return draft(
        "bitcoin-draft",
        Map.of(
            "publicKey", hex(publicKey),
            "inputs", Integer.toString(inputs),
            "amount", Long.toString(amount),
            "to", to,
            "fee", Long.toString(fee)));
  }

  /** Verifies every signature of a Solana transaction; tells who pays for it. */
  public Verdict solanaTransaction(ByteString transaction) {
    return ask("solana-transaction", Map.of("transaction", hex(transaction)), "");
  }

  /**
   * Has a wallet's library write the message of a transfer on Solana.
   *
   * @param version {@code legacy} or {@code 0}
   * @param from address of who pays and signs
   * @param to address
   */
  public ByteString solanaDraft(String version, String from, String to, long lamports) {
    return draft(
        "solana-draft",
        Map.of(
            "version", version,
            "from", from,
            "to", to,
            "lamports", Long.toString(lamports),
            "blockhash", BLOCKHASH));
  }

  /** Computes the Taproot address, without scripts, of a descendant of an extended public key. */
  public Verdict taprootAddress(String xpub, List<Integer> path) {
    return ask("taproot-address", Map.of("xpub", xpub, "path", steps(path)), "");
  }

  /**
   * Has a wallet's library write a PSBT that spends Taproot outputs by key path.
   *
   * @param script the only one of the output's script tree; empty for none
   * @param inputs how many outputs it spends
   * @param amount of each, in satoshi
   * @param to an address of the main net, which gets all but the fee
   */
  public ByteString taprootDraft(
      String xpub,
      List<Integer> path,
      ByteString script,
      int inputs,
      long amount,
      String to,
      long fee) {
    return draft(
        "taproot-draft",
        Map.of(
            "xpub", xpub,
            "path", steps(path),
            "script", hex(script),
            "inputs", Integer.toString(inputs),
            "amount", Long.toString(amount),
            "to", to,
            "fee", Long.toString(fee)));
  }

  private static String steps(List<Integer> path) {
    return path.stream().map(Object::toString).collect(Collectors.joining("/"));
  }

  private ByteString draft(String task, Map<String, String> question) {
    Verdict draft = ask(task, question, "");
    if (!draft.valid()) {
      throw new IllegalArgumentException(task + " is not possible: " + question);
    }
    return ByteString.fromHex(draft.value());
  }

  private synchronized Verdict ask(String task, Map<String, String> question, String more) {
    StringBuilder json = new StringBuilder("{\"task\":\"" + task + "\"");
    question.forEach((name, value) -> json.append(",\"%s\":\"%s\"".formatted(name, value)));
    try {
      questions.write(json.append(more).append("}\n").toString());
      questions.flush();
      String line = answers.readLine();
      Matcher answer = ANSWER.matcher(line == null ? "" : line);
      if (!answer.matches()) {
        throw new IllegalStateException("the outside verifier said: " + line);
      }
      return new Verdict(Boolean.parseBoolean(answer.group(1)), answer.group(2), answer.group(3));
    } catch (IOException e) {
      throw new UncheckedIOException("the outside verifier has ended", e);
    }
  }

  private static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }

  private static String hex(ByteString bytes) {
    return hex(bytes.toByteArray());
  }

  @Override
  public void close() {
    try {
      questions.close();
      if (!process.waitFor(5, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (IOException e) {
      process.destroyForcibly();
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
