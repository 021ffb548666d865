package io.coterie.mpc;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.ImportReply;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import io.coterie.proto.core.v1.VerifyCall;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The native core, loaded into this process. Thread-safe. Calls compute for micro- to milliseconds,
 * those of exact Ed25519 for up to half a second, and never block: run them on a bounded pool of
 * platform threads.
 */
public final class NativeMpcCore implements MpcCore, GroupVerifier, KeySplitter {
  private static final byte[] NONE = {};

  private static @Nullable NativeMpcCore loaded;

  private final NativeBindings bindings;
  private final Cleaner cleaner = Cleaner.create();
  private final AtomicLong open = new AtomicLong();
  private final AtomicLong rescued = new AtomicLong();

  private NativeMpcCore(NativeBindings bindings) {
    this.bindings = bindings;
  }

  /**
   * Loads the library, once a process: from the path in the system property {@code
   * coterie.mpc.library} if that is set, else {@code libcoterie_mpc.so} from {@code
   * java.library.path}, else the one in the jar.
   *
   * @throws IllegalStateException if there is none, or it has another interface version
   */
  public static synchronized NativeMpcCore load() {
    if (loaded == null) {
      loaded = new NativeMpcCore(new NativeBindings(NativeLibrary.load()));
    }
    return loaded;
  }

  /**
   * Protects the memory of this process, for ever, as far as the system allows: unreadable for
   * other processes of the user, no core dumps. For the {@code main} of a service; it also locks
   * out debuggers.
   *
   * @return the protections that hold
   */
  public Set<Protection> protectProcess() {
    return Protection.of(bindings.processProtect(1));
  }

  /** The protections that hold; changes nothing. */
  public Set<Protection> protections() {
    return Protection.of(bindings.processProtect(0));
  }

  /** Vaults and sessions that exist in the native core. */
  public long openHandles() {
    return open.get();
  }

  /**
   * Vaults and sessions that became garbage without having been closed. Each one is a bug in the
   * caller: its secrets stayed in memory longer than needed.
   */
  public long rescuedHandles() {
    return rescued.get();
  }

  /**
   * Argon2id (RFC 9106, version 0x13) in memory of the core, which is wiped and given back to the
   * system before this returns: on the heap of the JVM it would stay.
   *
   * @param passphrase any bytes; not changed
   * @param salt 8 to 64 bytes
   * @param memoryKib memory in KiB, 8 for each lane to 262144
   * @param passes over that memory, 1 to 64
   * @param lanes independent parts of it, 1 to 16
   * @return 32 bytes, secret; the caller zeroes them
   * @throws MpcException with INVALID_ARGUMENT, or INTERNAL if there is not so much memory
   */
  public byte[] argon2id(byte[] passphrase, byte[] salt, int memoryKib, int passes, int lanes) {
    try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
      MemorySegment out = call.bufferOut();
      int code =
          bindings.argon2id(call.view(passphrase), call.view(salt), memoryKib, passes, lanes, out);
      if (code != NativeBindings.OK) {
        throw NativeBindings.failure(code, "");
      }
      return NativeBindings.Call.bytes(out);
    }
  }

  @Override
  public Vault openVault(byte[] dataKey) {
    try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
      MemorySegment out = call.handleOut();
      int code = bindings.vaultOpen(call.view(dataKey), out);
      if (code != NativeBindings.OK) {
        throw NativeBindings.failure(code, "");
      }
      return wrapped(
          out.get(ValueLayout.ADDRESS, 0),
          bindings::vaultFree,
          pointer -> new NativeVault(this, pointer));
    } finally {
      Arrays.fill(dataKey, (byte) 0);
    }
  }

  @Override
  public MpcSession observe(SessionConfig config) {
    return startSession(MemorySegment.NULL, config, NONE, NONE);
  }

  @Override
  public Verdict judge(SessionConfig config, Accusation accusation) {
    try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
      MemorySegment verdict = call.intOut();
      MemorySegment detail = call.bufferOut();
      int code =
          bindings.judge(
              call.view(config.toByteArray()),
              call.view(accusation.toByteArray()),
              verdict,
              detail);
      if (code != NativeBindings.OK) {
        throw NativeBindings.failure(code, new String(NativeBindings.Call.bytes(detail), UTF_8));
      }
      return Verdict.forNumber(verdict.get(ValueLayout.JAVA_INT, 0));
    }
  }

  @Override
  public boolean verify(VerifyCall claims) {
    try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
      MemorySegment valid = call.intOut();
      MemorySegment detail = call.bufferOut();
      int code = bindings.verify(call.view(claims.toByteArray()), valid, detail);
      if (code != NativeBindings.OK) {
        throw NativeBindings.failure(code, new String(NativeBindings.Call.bytes(detail), UTF_8));
      }
      return valid.get(ValueLayout.JAVA_INT, 0) == 1;
    }
  }

  @Override
  public GroupReply call(GroupCall call) {
    return groupCall(MemorySegment.NULL, call, NONE);
  }

  @Override
  public ImportReply call(ImportCall call) {
    return importCall(MemorySegment.NULL, call, NONE);
  }

  /** Does a call about a group; {@code vault} is null for one that needs no secret. */
  GroupReply groupCall(MemorySegment vault, GroupCall call, byte[] sealedIdentity) {
    return replied(
        NativeBindings.About.GROUP,
        vault,
        sealedIdentity,
        call.toByteArray(),
        GroupReply::parseFrom);
  }

  /** Does a call about an imported key; {@code vault} is null for that of an owner. */
  ImportReply importCall(MemorySegment vault, ImportCall call, byte[] sealedIdentity) {
    byte[] encoded = call.toByteArray();
    try {
      return replied(
          NativeBindings.About.IMPORTED_KEY,
          vault,
          sealedIdentity,
          encoded,
          ImportReply::parseFrom);
    } finally {
      Arrays.fill(encoded, (byte) 0);
    }
  }

  private interface Decoder<T> {
    T decode(ByteBuffer encoded) throws InvalidProtocolBufferException;
  }

  private <T> T replied(
      NativeBindings.About about,
      MemorySegment vault,
      byte[] sealedIdentity,
      byte[] encoded,
      Decoder<T> decoder) {
    try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
      MemorySegment reply = call.bufferOut();
      MemorySegment detail = call.bufferOut();
      int code =
          bindings.call(about, vault, call.view(sealedIdentity), call.view(encoded), reply, detail);
      if (code != NativeBindings.OK) {
        throw NativeBindings.failure(code, new String(NativeBindings.Call.bytes(detail), UTF_8));
      }
      return decoder.decode(NativeBindings.Call.contents(reply).asByteBuffer());
    } catch (InvalidProtocolBufferException e) {
      throw new MpcException(
          MpcException.Reason.INTERNAL, "the native core made a reply that does not decode");
    }
  }

  /** Starts a session; {@code vault} is null for an observer. */
  MpcSession startSession(
      MemorySegment vault, SessionConfig config, byte[] sealedIdentity, byte[] sealedShare) {
    try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
      MemorySegment out = call.handleOut();
      MemorySegment step = call.bufferOut();
      MemorySegment detail = call.bufferOut();
      int code =
          bindings.sessionStart(
              vault,
              call.view(config.toByteArray()),
              call.view(sealedIdentity),
              call.view(sealedShare),
              out,
              step,
              detail);
      if (code != NativeBindings.OK) {
        throw NativeBindings.failure(code, new String(NativeBindings.Call.bytes(detail), UTF_8));
      }
      MemorySegment session = out.get(ValueLayout.ADDRESS, 0);
      return wrapped(
          session,
          bindings::sessionFree,
          pointer -> new NativeSession(this, pointer, NativeSession.step(step)));
    }
  }

  /**
   * Wraps an object of the library, which nobody else frees if that fails, for lack of memory say.
   */
  static <T> T wrapped(
      MemorySegment pointer, Consumer<MemorySegment> free, Function<MemorySegment, T> wrap) {
    try {
      return wrap.apply(pointer);
    } catch (Throwable e) {
      free.accept(pointer);
      throw e;
    }
  }

  NativeBindings bindings() {
    return bindings;
  }

  /** Makes {@code owner} the owner of an object of the library. */
  NativeHandle own(Object owner, MemorySegment pointer, Consumer<MemorySegment> free) {
    open.incrementAndGet();
    AtomicLong count = open;
    return new NativeHandle(
        owner,
        cleaner,
        pointer,
        freed -> {
          free.accept(freed);
          count.decrementAndGet();
        },
        rescued);
  }
}
