package io.coterie.cli.intent;

import com.google.protobuf.ByteString;
import io.coterie.cli.terminal.CliException;
import io.coterie.platform.intent.IntentVerifier;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** An approval, as {@code coterie group approve} writes it. */
public final class ApprovalFile {
  private ApprovalFile() {}

  /**
   * Reads an approval; whether it holds is not looked at.
   *
   * @throws CliException if it cannot be one
   */
  public static ByteString read(Path file) {
    try (InputStream in = Files.newInputStream(file)) {
      ByteString bytes = ByteString.copyFrom(in.readNBytes(IntentVerifier.APPROVAL_BYTES + 1));
      if (bytes.size() == IntentVerifier.APPROVAL_BYTES) {
        return bytes;
      }
    } catch (IOException e) {
      throw CliException.local("approval " + file + " cannot be read");
    }
    throw CliException.local(
        "%s is no approval: it does not have %d bytes"
            .formatted(file, IntentVerifier.APPROVAL_BYTES));
  }
}
