package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The maps of a PSBT as bytes (BIP-174), the global one first. Each map is sorted by its keys, so
 * PSBTs that differ in the order of entries alone are equal.
 */
record PsbtMaps(List<List<Entry>> maps) {
  /** Entries of one map. */
  private static final int MAX_ENTRIES = 256;

  private static final ByteString MAGIC =
      ByteString.copyFrom(new byte[] {0x70, 0x73, 0x62, 0x74, (byte) 0xff});

  /** Type of a global entry with an extended public key. */
  private static final byte GLOBAL_XPUB = 0x01;

  /** Bytes of a serialised extended public key (BIP-32), and of a master key's fingerprint. */
  private static final int XPUB_BYTES = 78;

  private static final int FINGERPRINT_BYTES = 4;
  private static final int STEP_BYTES = 4;

  /** Places within an entry's key: after its type. */
  private static final int XPUB_DEPTH = 1 + 4;

  private static final int XPUB_CHAIN_CODE = XPUB_DEPTH + 1 + 4 + 4;
  private static final int XPUB_PUBLIC_KEY = XPUB_CHAIN_CODE + ExtendedPublicKey.CHAIN_CODE_BYTES;

  private static final Comparator<Entry> BY_KEY =
      Comparator.comparing(Entry::key, ByteString.unsignedLexicographicalComparator());

  /** One entry; its key begins with its type. */
  record Entry(ByteString key, ByteString value) {
    private boolean isXpub() {
      return key.byteAt(0) == GLOBAL_XPUB;
    }
  }

  PsbtMaps {
    maps = maps.stream().map(List::copyOf).toList();
  }

  /**
   * Reads maps and sorts them.
   *
   * @throws IntentException if the bytes are no maps, a key stands twice in a map, a size takes
   *     more bytes than it needs, or an extended public key is none
   */
  static PsbtMaps read(ByteString encoded) throws IntentException {
    require(encoded.startsWith(MAGIC));
    List<List<Entry>> maps = new ArrayList<>();
    List<Entry> map = new ArrayList<>();
    Reader reader = new Reader(encoded, MAGIC.size());
    while (!reader.atEnd()) {
      ByteString key = reader.next();
      if (key.isEmpty()) {
        maps.add(sorted(map));
        map = new ArrayList<>();
      } else {
        map.add(new Entry(key, reader.next()));
        require(map.size() <= MAX_ENTRIES);
      }
    }
    require(map.isEmpty() && !maps.isEmpty());
    for (Entry entry : maps.getFirst()) {
      require(!entry.isXpub() || isWellFormedXpub(entry));
    }
    return new PsbtMaps(maps);
  }

  private static List<Entry> sorted(List<Entry> map) throws IntentException {
    map.sort(BY_KEY);
    for (int i = 1; i < map.size(); i++) {
      require(!map.get(i).key().equals(map.get(i - 1).key()));
    }
    return map;
  }

  /** A point, its place in the tree, and the whole path to this place from the master key. */
  private static boolean isWellFormedXpub(Entry entry) {
    ByteString key = entry.key();
    if (key.size() != 1 + XPUB_BYTES
        || entry.value().size()
            != FINGERPRINT_BYTES + STEP_BYTES * (key.byteAt(XPUB_DEPTH) & 0xff)) {
      return false;
    }
    try {
      ExtendedPublicKey.of(
          key.substring(XPUB_PUBLIC_KEY), key.substring(XPUB_CHAIN_CODE, XPUB_PUBLIC_KEY));
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /**
   * Without extended public keys: the library that reads the rest needs native code for them. They
   * name a wallet's accounts and change nothing in what is signed.
   */
  PsbtMaps withoutXpubs() {
    return withGlobal(maps.getFirst().stream().filter(entry -> !entry.isXpub()).toList());
  }

  /** A copy with the extended public keys of another PSBT. */
  PsbtMaps withXpubsOf(PsbtMaps other) {
    List<Entry> global = new ArrayList<>(maps.getFirst());
    other.maps.getFirst().stream().filter(Entry::isXpub).forEach(global::add);
    global.sort(BY_KEY);
    return withGlobal(global);
  }

  private PsbtMaps withGlobal(List<Entry> global) {
    List<List<Entry>> changed = new ArrayList<>(maps);
    changed.set(0, global);
    return new PsbtMaps(changed);
  }

  /** The encoding with entries in the order of their keys. */
  ByteString encoded() {
    ByteString.Output out = ByteString.newOutput();
    writeBytes(out, MAGIC);
    for (List<Entry> map : maps) {
      for (Entry entry : map) {
        write(out, entry.key());
        write(out, entry.value());
      }
      out.write(0);
    }
    return out.toByteString();
  }

  private static void write(ByteString.Output out, ByteString bytes) {
    int size = bytes.size();
    if (size < 0xfd) {
      out.write(size);
    } else {
      int width = size < 1 << 16 ? 2 : 4;
      out.write(width == 2 ? 0xfd : 0xfe);
      for (int i = 0; i < width; i++) {
        out.write(size >>> 8 * i);
      }
    }
    writeBytes(out, bytes);
  }

  private static void writeBytes(ByteString.Output out, ByteString bytes) {
    byte[] array = bytes.toByteArray();
    out.write(array, 0, array.length);
  }

  private static void require(boolean condition) throws IntentException {
    if (!condition) {
      throw new IntentException(IntentProblem.PSBT_MALFORMED);
    }
  }

  /** Reads byte strings with a compact size before each. */
  private static final class Reader {
    private final ByteString bytes;
    private int at;

    Reader(ByteString bytes, int at) {
      this.bytes = bytes;
      this.at = at;
    }

    boolean atEnd() {
      return at == bytes.size();
    }

    ByteString next() throws IntentException {
      long length = compactSize();
      require(length >= 0 && length <= bytes.size() - at);
      int from = at;
      at += (int) length;
      return bytes.substring(from, at);
    }

    /** Negative if it has eight bytes and the first bit of the number is set. */
    private long compactSize() throws IntentException {
      int first = (int) littleEndian(1);
      return switch (first) {
        case 0xfd -> atLeast(0xfd, littleEndian(2));
        case 0xfe -> atLeast(1L << 16, littleEndian(4));
        case 0xff -> atLeast(1L << 32, littleEndian(8));
        default -> first;
      };
    }

    private static long atLeast(long least, long size) throws IntentException {
      require(size >= least);
      return size;
    }

    private long littleEndian(int width) throws IntentException {
      require(width <= bytes.size() - at);
      long number = 0;
      for (int i = width - 1; i >= 0; i--) {
        number = number << 8 | bytes.byteAt(at + i) & 0xff;
      }
      at += width;
      return number;
    }
  }
}
