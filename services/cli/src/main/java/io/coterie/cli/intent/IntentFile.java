package io.coterie.cli.intent;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.cli.terminal.CliException;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequesterKeys;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Trust;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

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
    String name = signed.getSignaturesCount() == 1 ? signed.getSignatures(0).getKeyid() : "";
    List<byte[]> keys = trust.requester(name).map(Trust.Requester::publicKeys).orElse(List.of());
    IntentProblem problem = IntentProblem.REQUESTER_UNKNOWN;
    for (byte[] key : keys) {
      try {
        VerifiedIntent intent =
            IntentVerifier.verify(signed, _ -> Optional.of(RequesterKeys.publicKey(key)));
        if (intent instanceof VerifiedIntent.Signing signing) {
          return signing;
        }
        throw CliException.local(file + " is no intent to sign");
      } catch (IntentException e) {
        problem = e.problem();
      }
    }
    throw CliException.local(
        file + ": " + problem.text() + "; the trust file says whose signatures are known");
  }
}
