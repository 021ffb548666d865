package io.coterie.messaging.socket;

import io.coterie.messaging.api.ApiException;
import io.coterie.messaging.api.ApiResponse;
import io.coterie.messaging.limit.Source;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;

/**
 * The body of one call over HTTP, from its first byte until the call is answered. It counts like
 * what WebSockets of clients without credentials hold: nobody has proved anything yet.
 */
final class HttpBody implements AutoCloseable {
  private static final int PART_BYTES = 8 * 1024;

  private final ConnectionMemory.Account account;
  private final FrameAssembler parts;

  /**
   * @param source of the call
   * @param maxBytes most bytes that it may have
   */
  HttpBody(ConnectionMemory memory, Source source, int maxBytes) {
    this.account = memory.open(source, this::close);
    this.parts = new FrameAssembler(maxBytes, account);
  }

  /**
   * Reads it to its end.
   *
   * @throws ApiException 413 if it is too large, 503 if it had to give way to those of others
   */
  byte[] read(InputStream in) throws IOException {
    byte[] part = new byte[PART_BYTES];
    for (int read = in.read(part); read >= 0; read = in.read(part)) {
      if (parts.add(ByteBuffer.wrap(part, 0, read), false)
          instanceof FrameAssembler.Outcome.Refused) {
        throw ApiException.tooLarge();
      }
    }
    return switch (parts.add(ByteBuffer.allocate(0), true)) {
      case FrameAssembler.Outcome.Complete(byte[] body) -> {
        account.take(body.length);
        yield body;
      }
      case FrameAssembler.Outcome.Incomplete gaveWay ->
          throw new ApiException(ApiResponse.unavailable());
      case FrameAssembler.Outcome.Refused refused -> throw ApiException.tooLarge();
    };
  }

  @Override
  public void close() {
    parts.close();
    account.close();
  }
}
