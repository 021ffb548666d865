package io.coterie.platform.payload;

import io.coterie.platform.intent.IntentException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The fee and the resources that a version 1 transaction of Solana asks for (SIMD-0385): a mask
 * says which are there, four bytes of value for each of its bits. Requests that are not there have
 * fixed values, which people are shown as well.
 */
final class SolanaRequests {
  /** The fee has two bits, and both or none. */
  private static final int FEE = 0b11;

  private static final int UNITS = 0b100;
  private static final int LOADED = 0b1000;
  private static final int HEAP = 0b10000;
  private static final int KNOWN = FEE | UNITS | LOADED | HEAP;

  /** Bytes of heap: without a request, and the most; always a multiple of the step. */
  private static final int LEAST_HEAP = 32 * 1024;

  private static final int MOST_HEAP = 256 * 1024;
  private static final int STEP_HEAP = 1024;

  private SolanaRequests() {}

  /**
   * Reads the mask.
   *
   * @throws IntentException if it has a bit of which nobody knows the meaning, or half a fee
   */
  static int mask(SolanaReader in) throws IntentException {
    int mask = (int) in.littleEndian(Integer.BYTES);
    SolanaReader.require((mask & ~KNOWN) == 0 && ((mask & FEE) == 0 || (mask & FEE) == FEE));
    return mask;
  }

  /** Reads the values that a mask announces; the requests by name, in the order of their bits. */
  static Map<String, String> read(int mask, SolanaReader in) throws IntentException {
    Map<String, String> requests = new LinkedHashMap<>();
    requests.put("priority fee, lamports", value(mask, FEE, Long.BYTES, 0, in));
    requests.put("compute units", value(mask, UNITS, Integer.BYTES, 0, in));
    requests.put("loaded accounts, bytes", value(mask, LOADED, Integer.BYTES, 0, in));
    String heap = value(mask, HEAP, Integer.BYTES, LEAST_HEAP, in);
    long bytes = Long.parseUnsignedLong(heap);
    SolanaReader.require(bytes >= LEAST_HEAP && bytes <= MOST_HEAP && bytes % STEP_HEAP == 0);
    requests.put("heap, bytes", heap);
    return requests;
  }

  private static String value(int mask, int bits, int bytes, long otherwise, SolanaReader in)
      throws IntentException {
    return Long.toUnsignedString((mask & bits) == 0 ? otherwise : in.littleEndian(bytes));
  }
}
