package io.coterie.mpc;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.ImportReply;
import io.coterie.proto.core.v1.SessionConfig;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Function;

/** A vault of the native core. Its calls run side by side; closing waits for them. */
final class NativeVault implements Vault {
  private final NativeMpcCore core;
  private final NativeBindings bindings;
  private final NativeHandle handle;
  private final ReadWriteLock lock = new ReentrantReadWriteLock();
  private boolean closed;

  NativeVault(NativeMpcCore core, MemorySegment pointer) {
    this.core = core;
    this.bindings = core.bindings();
    this.handle = core.own(this, pointer, bindings::vaultFree);
  }

  @Override
  public byte[] seal(String label, byte[] plaintext) {
    return whileOpen(
        vault -> {
          try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
            MemorySegment out = call.bufferOut();
            int code =
                bindings.vaultSeal(
                    vault, call.view(label.getBytes(UTF_8)), call.view(plaintext), out);
            if (code != NativeBindings.OK) {
              throw NativeBindings.failure(code, "");
            }
            return NativeBindings.Call.bytes(out);
          }
        });
  }

  @Override
  public byte[] unseal(String label, byte[] sealed) {
    return whileOpen(
        vault -> {
          try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
            MemorySegment out = call.bufferOut();
            int code =
                bindings.vaultUnseal(
                    vault, call.view(label.getBytes(UTF_8)), call.view(sealed), out);
            if (code != NativeBindings.OK) {
              throw NativeBindings.failure(code, "");
            }
            return NativeBindings.Call.bytes(out);
          }
        });
  }

  @Override
  public void dropPresignature(byte[] id) {
    whileOpen(
        vault -> {
          try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
            int code = bindings.vaultDropPresignature(vault, call.view(id));
            if (code != NativeBindings.OK) {
              throw NativeBindings.failure(code, "");
            }
            return code;
          }
        });
  }

  @Override
  public SealedIdentity createIdentity(String partyName) {
    return whileOpen(
        vault -> {
          try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
            MemorySegment sealed = call.bufferOut();
            MemorySegment evidenceKey = call.bufferOut();
            int code =
                bindings.identityCreate(
                    vault, call.view(partyName.getBytes(UTF_8)), sealed, evidenceKey);
            if (code != NativeBindings.OK) {
              throw NativeBindings.failure(code, "");
            }
            return new SealedIdentity(
                NativeBindings.Call.bytes(sealed), NativeBindings.Call.bytes(evidenceKey));
          }
        });
  }

  @Override
  public byte[] signStatement(byte[] sealedIdentity, byte[] statement) {
    return whileOpen(
        vault -> {
          try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
            MemorySegment out = call.bufferOut();
            int code =
                bindings.identitySign(vault, call.view(sealedIdentity), call.view(statement), out);
            if (code != NativeBindings.OK) {
              throw NativeBindings.failure(code, "");
            }
            return NativeBindings.Call.bytes(out);
          }
        });
  }

  @Override
  public MpcSession start(SessionConfig config, byte[] sealedIdentity, byte[] sealedShare) {
    return whileOpen(vault -> core.startSession(vault, config, sealedIdentity, sealedShare));
  }

  @Override
  public GroupReply call(GroupCall call, byte[] sealedIdentity) {
    return whileOpen(vault -> core.groupCall(vault, call, sealedIdentity));
  }

  @Override
  public ImportReply call(ImportCall call, byte[] sealedIdentity) {
    return whileOpen(vault -> core.importCall(vault, call, sealedIdentity));
  }

  private <T> T whileOpen(Function<MemorySegment, T> call) {
    Lock shared = lock.readLock();
    shared.lock();
    try {
      if (closed) {
        throw new IllegalStateException("vault is closed");
      }
      return call.apply(handle.pointer());
    } finally {
      shared.unlock();
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public void close() {
    Lock exclusive = lock.writeLock();
    exclusive.lock();
    try {
      closed = true;
      handle.close();
    } finally {
      exclusive.unlock();
    }
  }
}
