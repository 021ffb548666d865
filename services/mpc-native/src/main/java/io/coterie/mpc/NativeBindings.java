package io.coterie.mpc;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * {@code services/mpc-core/abi/include/coterie_mpc.h}, function by function. A test reads that
 * header and compares.
 */
final class NativeBindings {
  /** {@code MPC_ABI_VERSION}. */
  static final int ABI_VERSION = 1;

  /** {@code MPC_MAX_INPUT}, bytes. */
  static final int MAX_INPUT = 4_194_304;

  static final int OK = 0;

  private static final MemoryLayout.PathElement LEN = MemoryLayout.PathElement.groupElement("len");

  /** {@code mpc_view}: bytes borrowed for the call. */
  static final StructLayout VIEW =
      MemoryLayout.structLayout(ADDRESS.withName("data"), JAVA_LONG.withName("len"));

  /** {@code mpc_buffer}: bytes that the library owns. */
  static final StructLayout BUFFER =
      MemoryLayout.structLayout(ADDRESS.withName("data"), JAVA_LONG.withName("len"));

  static final Map<String, FunctionDescriptor> FUNCTIONS =
      new TreeMap<>(
          Map.ofEntries(
              Map.entry("mpc_abi_version", FunctionDescriptor.of(JAVA_INT)),
              Map.entry("mpc_process_protect", FunctionDescriptor.of(JAVA_INT, JAVA_INT)),
              Map.entry(
                  "mpc_argon2id",
                  FunctionDescriptor.of(
                      JAVA_INT, VIEW, VIEW, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS)),
              Map.entry("mpc_vault_open", FunctionDescriptor.of(JAVA_INT, VIEW, ADDRESS)),
              Map.entry("mpc_vault_free", FunctionDescriptor.ofVoid(ADDRESS)),
              Map.entry(
                  "mpc_vault_seal", FunctionDescriptor.of(JAVA_INT, ADDRESS, VIEW, VIEW, ADDRESS)),
              Map.entry(
                  "mpc_vault_unseal",
                  FunctionDescriptor.of(JAVA_INT, ADDRESS, VIEW, VIEW, ADDRESS)),
              Map.entry(
                  "mpc_vault_drop_presignature", FunctionDescriptor.of(JAVA_INT, ADDRESS, VIEW)),
              Map.entry(
                  "mpc_identity_create",
                  FunctionDescriptor.of(JAVA_INT, ADDRESS, VIEW, ADDRESS, ADDRESS)),
              Map.entry(
                  "mpc_identity_sign",
                  FunctionDescriptor.of(JAVA_INT, ADDRESS, VIEW, VIEW, ADDRESS)),
              Map.entry(
                  "mpc_session_start",
                  FunctionDescriptor.of(
                      JAVA_INT, ADDRESS, VIEW, VIEW, VIEW, ADDRESS, ADDRESS, ADDRESS)),
              Map.entry(
                  "mpc_session_handle",
                  FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, VIEW, ADDRESS)),
              Map.entry("mpc_judge", FunctionDescriptor.of(JAVA_INT, VIEW, VIEW, ADDRESS, ADDRESS)),
              Map.entry("mpc_verify", FunctionDescriptor.of(JAVA_INT, VIEW, ADDRESS, ADDRESS)),
              Map.entry(
                  "mpc_group_call",
                  FunctionDescriptor.of(JAVA_INT, ADDRESS, VIEW, VIEW, ADDRESS, ADDRESS)),
              Map.entry(
                  "mpc_import_call",
                  FunctionDescriptor.of(JAVA_INT, ADDRESS, VIEW, VIEW, ADDRESS, ADDRESS)),
              Map.entry("mpc_session_free", FunctionDescriptor.ofVoid(ADDRESS)),
              Map.entry("mpc_buffer_free", FunctionDescriptor.ofVoid(ADDRESS))));

  /** The subjects of calls that need no session. */
  enum About {
    GROUP,
    IMPORTED_KEY
  }

  private final MethodHandle processProtect;
  private final MethodHandle argon2id;
  private final MethodHandle vaultOpen;
  private final MethodHandle vaultFree;
  private final MethodHandle vaultSeal;
  private final MethodHandle vaultUnseal;
  private final MethodHandle vaultDropPresignature;
  private final MethodHandle identityCreate;
  private final MethodHandle identitySign;
  private final MethodHandle sessionStart;
  private final MethodHandle sessionHandle;
  private final MethodHandle judge;
  private final MethodHandle verify;
  private final MethodHandle groupCall;
  private final MethodHandle importCall;
  private final MethodHandle sessionFree;
  private final MethodHandle bufferFree;

  /**
   * Binds every function.
   *
   * @throws IllegalStateException if the library is not one of this interface
   */
  NativeBindings(SymbolLookup library) {
    int version = abiVersion(handle(library, "mpc_abi_version"));
    if (version != ABI_VERSION) {
      throw new IllegalStateException(
          "the native core has interface version " + version + ", needed is " + ABI_VERSION);
    }
    processProtect = handle(library, "mpc_process_protect");
    argon2id = handle(library, "mpc_argon2id");
    vaultOpen = handle(library, "mpc_vault_open");
    vaultFree = handle(library, "mpc_vault_free");
    vaultSeal = handle(library, "mpc_vault_seal");
    vaultUnseal = handle(library, "mpc_vault_unseal");
    vaultDropPresignature = handle(library, "mpc_vault_drop_presignature");
    identityCreate = handle(library, "mpc_identity_create");
    identitySign = handle(library, "mpc_identity_sign");
    sessionStart = handle(library, "mpc_session_start");
    sessionHandle = handle(library, "mpc_session_handle");
    judge = handle(library, "mpc_judge");
    verify = handle(library, "mpc_verify");
    groupCall = handle(library, "mpc_group_call");
    importCall = handle(library, "mpc_import_call");
    sessionFree = handle(library, "mpc_session_free");
    bufferFree = handle(library, "mpc_buffer_free");
  }

  private static MethodHandle handle(SymbolLookup library, String name) {
    FunctionDescriptor descriptor = FUNCTIONS.get(name);
    if (descriptor == null) {
      throw new IllegalStateException(name + " is not in the table of functions");
    }
    MemorySegment symbol =
        library
            .find(name)
            .orElseThrow(
                () -> new IllegalStateException("the native core does not export " + name));
    return Linker.nativeLinker().downcallHandle(symbol, descriptor);
  }

  private static int abiVersion(MethodHandle function) {
    try {
      return (int) function.invokeExact();
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int argon2id(
      MemorySegment passphrase,
      MemorySegment salt,
      int memoryKib,
      int passes,
      int lanes,
      MemorySegment out) {
    try {
      return (int) argon2id.invokeExact(passphrase, salt, memoryKib, passes, lanes, out);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int processProtect(int protect) {
    try {
      return (int) processProtect.invokeExact(protect);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int vaultOpen(MemorySegment dataKey, MemorySegment out) {
    try {
      return (int) vaultOpen.invokeExact(dataKey, out);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  void vaultFree(MemorySegment vault) {
    try {
      vaultFree.invokeExact(vault);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int vaultSeal(
      MemorySegment vault, MemorySegment label, MemorySegment plaintext, MemorySegment out) {
    try {
      return (int) vaultSeal.invokeExact(vault, label, plaintext, out);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int vaultUnseal(
      MemorySegment vault, MemorySegment label, MemorySegment sealed, MemorySegment out) {
    try {
      return (int) vaultUnseal.invokeExact(vault, label, sealed, out);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int vaultDropPresignature(MemorySegment vault, MemorySegment presignatureId) {
    try {
      return (int) vaultDropPresignature.invokeExact(vault, presignatureId);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int identityCreate(
      MemorySegment vault,
      MemorySegment partyName,
      MemorySegment sealedIdentity,
      MemorySegment evidencePublicKey) {
    try {
      return (int) identityCreate.invokeExact(vault, partyName, sealedIdentity, evidencePublicKey);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int identitySign(
      MemorySegment vault,
      MemorySegment sealedIdentity,
      MemorySegment statement,
      MemorySegment signature) {
    try {
      return (int) identitySign.invokeExact(vault, sealedIdentity, statement, signature);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int sessionStart(
      MemorySegment vault,
      MemorySegment config,
      MemorySegment sealedIdentity,
      MemorySegment sealedShare,
      MemorySegment out,
      MemorySegment step,
      MemorySegment errorDetail) {
    try {
      return (int)
          sessionStart.invokeExact(
              vault, config, sealedIdentity, sealedShare, out, step, errorDetail);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int sessionHandle(
      MemorySegment session, int authenticatedSender, MemorySegment envelope, MemorySegment step) {
    try {
      return (int) sessionHandle.invokeExact(session, authenticatedSender, envelope, step);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int judge(
      MemorySegment config,
      MemorySegment accusation,
      MemorySegment verdict,
      MemorySegment errorDetail) {
    try {
      return (int) judge.invokeExact(config, accusation, verdict, errorDetail);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  int verify(MemorySegment call, MemorySegment valid, MemorySegment errorDetail) {
    try {
      return (int) verify.invokeExact(call, valid, errorDetail);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  /** A call that needs no session. */
  int call(
      About about,
      MemorySegment vault,
      MemorySegment sealedIdentity,
      MemorySegment call,
      MemorySegment reply,
      MemorySegment errorDetail) {
    MethodHandle function =
        switch (about) {
          case GROUP -> groupCall;
          case IMPORTED_KEY -> importCall;
        };
    try {
      return (int) function.invokeExact(vault, sealedIdentity, call, reply, errorDetail);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  void sessionFree(MemorySegment session) {
    try {
      sessionFree.invokeExact(session);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  void bufferFree(MemorySegment buffer) {
    try {
      bufferFree.invokeExact(buffer);
    } catch (Throwable e) {
      throw cannotHappen(e);
    }
  }

  /** A call of C throws nothing; an exception is an error of the JVM or of this class. */
  private static RuntimeException cannotHappen(Throwable thrown) {
    if (thrown instanceof Error error) {
      throw error;
    }
    return new IllegalStateException("call of the native core", thrown);
  }

  /** The text is {@code detail}, or what the code means; both without secrets. */
  static MpcException failure(int code, String detail) {
    MpcException.Reason reason =
        switch (code) {
          case 1 -> MpcException.Reason.INVALID_ARGUMENT;
          case 2 -> MpcException.Reason.UNSEAL_FAILED;
          case 3 -> MpcException.Reason.SETUP_REFUSED;
          case 4 -> MpcException.Reason.POISONED;
          default -> MpcException.Reason.INTERNAL;
        };
    return new MpcException(reason, detail.isEmpty() ? reason.name() : detail);
  }

  /** The native memory of one call: inputs are wiped and outputs freed when it closes. */
  static final class Call implements AutoCloseable {
    private final NativeBindings bindings;
    private final Arena arena = Arena.ofConfined();
    private final List<MemorySegment> inputs = new ArrayList<>(3);
    private final List<MemorySegment> buffers = new ArrayList<>(2);

    Call(NativeBindings bindings) {
      this.bindings = bindings;
    }

    /** A view of a copy of {@code bytes}. */
    MemorySegment view(byte[] bytes) {
      if (bytes.length > MAX_INPUT) {
        throw new MpcException(
            MpcException.Reason.INVALID_ARGUMENT,
            "input has " + bytes.length + " bytes, at most " + MAX_INPUT + " are allowed");
      }
      MemorySegment view = arena.allocate(VIEW);
      if (bytes.length > 0) {
        MemorySegment copy = arena.allocate(bytes.length);
        inputs.add(copy);
        MemorySegment.copy(bytes, 0, copy, JAVA_BYTE, 0, bytes.length);
        view.set(ADDRESS, 0, copy);
      }
      view.set(JAVA_LONG, VIEW.byteOffset(LEN), bytes.length);
      return view;
    }

    /** A place for a handle that the library makes. */
    MemorySegment handleOut() {
      return arena.allocate(ADDRESS);
    }

    /** A place for a number that the library sets. */
    MemorySegment intOut() {
      return arena.allocate(JAVA_INT);
    }

    /** A place for bytes that the library makes. */
    MemorySegment bufferOut() {
      MemorySegment buffer = arena.allocate(BUFFER);
      buffers.add(buffer);
      return buffer;
    }

    /** The bytes that the library put into a buffer; valid until this closes. */
    static MemorySegment contents(MemorySegment buffer) {
      long length = buffer.get(JAVA_LONG, BUFFER.byteOffset(LEN));
      return buffer.get(ADDRESS, 0).reinterpret(length);
    }

    /** A copy of {@link #contents}. */
    static byte[] bytes(MemorySegment buffer) {
      return contents(buffer).toArray(JAVA_BYTE);
    }

    @Override
    public void close() {
      inputs.forEach(input -> input.fill((byte) 0));
      buffers.forEach(bindings::bufferFree);
      arena.close();
    }
  }
}
