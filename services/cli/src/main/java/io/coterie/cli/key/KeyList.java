package io.coterie.cli.key;

import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.ListKeysResponse;
import java.io.PrintWriter;
import java.util.HashSet;
import java.util.Set;

/** Prints keys one by one: each only as far as it is attested. */
final class KeyList {
  /** A coordinator that lies could go on for ever. */
  private static final int MAX_KEYS = 100_000;

  private static final String ROW = "%-24s %-13s %-15s %-7s %s%n";

  private final AttestedKeys keys;
  private final Output output;
  private final PrintWriter out;
  private final PrintWriter err;
  private final ListKeysResponse.Builder json = ListKeysResponse.newBuilder();
  private final Set<String> names = new HashSet<>();
  private int count;
  private boolean refused;

  KeyList(AttestedKeys keys, Output output, PrintWriter out, PrintWriter err) {
    this.keys = keys;
    this.output = output;
    this.out = out;
    this.err = err;
    row("KEY", "STATE", "SCHEME", "T OF N", "PARTIES");
  }

  /**
   * Prints a page.
   *
   * @throws CliException if the list has no end, or a key twice: two keys can have one name if it
   *     was asked for twice, and only one of them is meant
   */
  void add(ListKeysResponse page) {
    requireSense(
        page.getKeysCount() > 0 || page.getNextPageToken().isEmpty(), "a page of it has no keys");
    for (Key key : page.getKeysList()) {
      requireSense(++count <= MAX_KEYS, "it has more than " + MAX_KEYS + " keys");
      requireSense(
          !IntentVerifier.isKeyName(key.getName()) || names.add(key.getName()),
          "it has " + key.getName() + " twice");
      add(key);
    }
    out.flush();
  }

  private static void requireSense(boolean condition, String why) {
    if (!condition) {
      throw new CliException(
          ExitCode.REFUSED,
          "the list of keys is not believed: "
              + why
              + ". Show it to the operators of the coordinator, and ask for single keys.");
    }
  }

  private void add(Key answer) {
    String name = answer.getName();
    if (IntentVerifier.isKeyName(name) && answer.getState() != Key.State.ACTIVE) {
      row(name, answer.getState().name(), "", "", "");
      json.addKeys(Output.stateOnly(name, answer));
      return;
    }
    try {
      AttestedKey key = keys.require(name, answer);
      row(
          name,
          answer.getState().name(),
          Spelling.scheme(key.scheme()),
          key.threshold() + " of " + key.parties().size(),
          String.join(", ", key.parties()));
      // No party was asked which epoch is current, so nobody has verified such an answer.
      json.addKeys(answer.toBuilder().clearCurrent());
    } catch (CliException e) {
      refused = true;
      row(IntentVerifier.isKeyName(name) ? name : "?", "NOT ATTESTED", "", "", "");
      err.println(output.failure(e));
    }
  }

  private void row(Object... columns) {
    if (output.isText()) {
      out.print(String.format(ROW, columns).stripTrailing() + System.lineSeparator());
    }
  }

  /** Ends the list, and returns the exit code. */
  int end() {
    if (!output.isText() && json.getKeysCount() == 0) {
      // For programs that go through them; the form of a message leaves an empty field out.
      out.println("{\n  \"keys\": []\n}");
    } else {
      output.json(out, json);
    }
    out.flush();
    return refused ? ExitCode.REFUSED : 0;
  }
}
