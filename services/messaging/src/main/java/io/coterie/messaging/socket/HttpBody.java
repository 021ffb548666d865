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
  private static final byte[] NOTHING = {};

  private final ConnectionMemory.Account account;
  private final FrameAssembler parts;
  private final Runnable onRead;

  /**
   * @param source of the call
   * @param maxBytes most bytes that it may have
   * @param onRead is run after each part, and returns when more may be read
   */
  HttpBody(ConnectionMemory memory, Source source, int maxBytes, Runnable onRead) {
    this.onRead = onRead;
    this.account = memory.open(source, this::close);
    this.parts = new FrameAssembler(maxBytes, account);
  }

  /**
   * Reads it to its end, or until it is refused: it need have no end.
   *
   * @throws ApiException 413 if it is too large, 503 if it had to give way to those of others
   */
  byte[] read(InputStream in) throws IOException {
    byte[] part = new byte[PART_BYTES];
    for (int read = in.read(part); read >= 0; read = in.read(part)) {
      onRead.run();
      add(ByteBuffer.wrap(part, 0, read), false);
    }
    byte[] body = add(ByteBuffer.allocate(0), true);
    account.take(body.length);
    return body;
  }

  /** The whole body with its last part, and nothing before. */
  private byte[] add(ByteBuffer part, boolean last) {
    return switch (parts.add(part, last)) {
      case FrameAssembler.Outcome.Complete(byte[] body) -> body;
      case FrameAssembler.Outcome.Incomplete more -> NOTHING;
      case FrameAssembler.Outcome.Closed gaveWay ->
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
