package io.coterie.cli.intent;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.cli.terminal.CliException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.SignedIntent;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** A signed intent, as {@code coterie intent sign} writes it. */
public final class IntentFile {
  /** Bytes: the largest payload, and less than as much again around it. */
  private static final int MAX_BYTES = 2 * IntentVerifier.MAX_PAYLOAD;

  private IntentFile() {}

  /**
   * Reads all of a file, so that every command sees the same intent in it.
   *
   * @throws CliException if it is none
   */
  public static SignedIntent read(Path file) {
    try (InputStream in = Files.newInputStream(file)) {
      byte[] bytes = in.readNBytes(MAX_BYTES + 1);
      if (bytes.length <= MAX_BYTES) {
        return SignedIntent.parseFrom(bytes);
      }
    } catch (InvalidProtocolBufferException e) {
      // Said below.
    } catch (IOException e) {
      throw CliException.local("intent file " + file + " cannot be read");
    }
    throw CliException.local("intent file " + file + " is no intent");
  }
}
