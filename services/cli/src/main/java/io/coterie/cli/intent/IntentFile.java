package io.coterie.cli.intent;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.cli.terminal.CliException;
import io.coterie.member.Approvals;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Trust;
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

  /**
   * Verifies that a requester of the trust file has signed what was read from a file. It may have
   * several keys.
   *
   * @throws CliException if none has, or it is no intent to sign
   */
  public static VerifiedIntent.Signing verified(Trust trust, Path file, SignedIntent signed) {
    try {
      if (Approvals.verified(trust, signed) instanceof VerifiedIntent.Signing signing) {
        return signing;
      }
    } catch (IntentException e) {
      throw CliException.local(
          file + ": " + e.problem().text() + "; the trust file says whose signatures are known");
    }
    throw CliException.local(file + " is no intent to sign");
  }
}
