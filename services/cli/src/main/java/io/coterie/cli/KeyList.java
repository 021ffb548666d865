package io.coterie.cli;

import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.ListKeysResponse;
import java.io.PrintWriter;

/** Prints keys one by one: each only as far as it is attested. */
final class KeyList {
  private static final String ROW = "%-24s %-13s %-15s %-7s %s%n";

  private final AttestedKeys keys;
  private final Output output;
  private final PrintWriter out;
  private final PrintWriter err;
  private final ListKeysResponse.Builder json = ListKeysResponse.newBuilder();
  private boolean refused;

  KeyList(AttestedKeys keys, Output output, PrintWriter out, PrintWriter err) {
    this.keys = keys;
    this.output = output;
    this.out = out;
    this.err = err;
    row("KEY", "STATE", "SCHEME", "T OF N", "PARTIES");
  }

  void add(Key answer) {
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
          Output.scheme(key.scheme().name()),
          key.threshold() + " of " + key.parties().size(),
          String.join(", ", key.parties()));
      json.addKeys(answer);
    } catch (CliException e) {
      refused = true;
      row(IntentVerifier.isKeyName(name) ? name : "?", "NOT ATTESTED", "", "", "");
      err.println("coterie: " + e.getMessage());
    }
  }

  private void row(Object... columns) {
    if (output.format == Output.Format.TEXT) {
      out.print(String.format(ROW, columns).stripTrailing() + System.lineSeparator());
    }
  }

  /** Ends the list, and returns the exit code. */
  int end() {
    output.json(out, json);
    out.flush();
    return refused ? Coterie.REFUSED : 0;
  }
}
