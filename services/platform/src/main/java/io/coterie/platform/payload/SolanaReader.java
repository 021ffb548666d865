package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads a transaction of Solana from front to end; no count is believed before its bytes are there.
 */
final class SolanaReader {
  /** Bytes of a compact-u16. */
  private static final int MAX_COMPACT = 3;

  private final ByteString bytes;
  private int at;

  SolanaReader(ByteString bytes) {
    this.bytes = bytes;
  }

  /**
   * @throws IntentException if the bytes are no transaction because the condition does not hold
   */
  static void require(boolean condition) throws IntentException {
    if (!condition) {
      throw new IntentException(IntentProblem.SOLANA_TRANSACTION_MALFORMED);
    }
  }

  int u8() throws IntentException {
    require(at < bytes.size());
    return bytes.byteAt(at++) & 0xff;
  }

  ByteString bytes(int count) throws IntentException {
    require(count <= bytes.size() - at);
    at += count;
    return bytes.substring(at - count, at);
  }

  /** A compact-u16: seven bits a byte, lowest first, in as few bytes as it takes. */
  int compact() throws IntentException {
    int value = 0;
    for (int i = 0; i < MAX_COMPACT; i++) {
      int next = u8();
      value |= (next & 0x7f) << 7 * i;
      if ((next & 0x80) == 0) {
        require((i == 0 || next != 0) && value <= 0xffff);
        return value;
      }
    }
    throw new IntentException(IntentProblem.SOLANA_TRANSACTION_MALFORMED);
  }

  /** An unsigned number of at most eight bytes; a negative one has the top bit of all eight. */
  long littleEndian(int count) throws IntentException {
    ByteString number = bytes(count);
    long value = 0;
    for (int i = count - 1; i >= 0; i--) {
      value = value << Byte.SIZE | number.byteAt(i) & 0xff;
    }
    return value;
  }

  List<Integer> indices(int count) throws IntentException {
    ByteString indices = bytes(count);
    List<Integer> list = new ArrayList<>(indices.size());
    for (byte index : indices) {
      list.add(index & 0xff);
    }
    return List.copyOf(list);
  }

  List<ByteString> keys(int count) throws IntentException {
    List<ByteString> keys = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      keys.add(bytes(SolanaAddress.BYTES));
    }
    return List.copyOf(keys);
  }

  void end() throws IntentException {
    require(at == bytes.size());
  }
}
