package io.coterie.mpc;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.proto.core.v1.Step;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.concurrent.atomic.AtomicReference;

/** A session of the native core. */
final class NativeSession implements MpcSession {
  private enum State {
    IDLE,
    IN_CALL,
    /** Closed by another thread during a call, which frees the session when it ends. */
    CLOSING,
    CLOSED
  }

  private final NativeBindings bindings;
  private final NativeHandle handle;
  private final Step firstStep;
  private final AtomicReference<State> state = new AtomicReference<>(State.IDLE);

  NativeSession(NativeMpcCore core, MemorySegment pointer, Step firstStep) {
    this.bindings = core.bindings();
    this.firstStep = firstStep;
    this.handle = core.own(this, pointer, bindings::sessionFree);
  }

  @Override
  public Step firstStep() {
    State now = state.get();
    if (now == State.CLOSED || now == State.CLOSING) {
      throw new IllegalStateException("session is closed");
    }
    return firstStep;
  }

  @Override
  public Step handle(int authenticatedSender, byte[] envelope) {
    State before = state.compareAndExchange(State.IDLE, State.IN_CALL);
    switch (before) {
      case IDLE -> {}
      case IN_CALL -> throw new IllegalStateException("session is in use by another thread");
      case CLOSING, CLOSED -> throw new IllegalStateException("session is closed");
    }
    try (NativeBindings.Call call = new NativeBindings.Call(bindings)) {
      MemorySegment step = call.bufferOut();
      int code =
          bindings.sessionHandle(handle.pointer(), authenticatedSender, call.view(envelope), step);
      if (code != NativeBindings.OK) {
        throw NativeBindings.failure(code, "");
      }
      return step(step);
    } finally {
      if (!state.compareAndSet(State.IN_CALL, State.IDLE)) {
        state.set(State.CLOSED);
        handle.close();
      }
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Reads a step where the library put it, so that no further copy of a private message is made.
   */
  static Step step(MemorySegment buffer) {
    try {
      return Step.parseFrom(NativeBindings.Call.contents(buffer).asByteBuffer());
    } catch (InvalidProtocolBufferException e) {
      throw new MpcException(
          MpcException.Reason.INTERNAL, "the native core made a step that does not decode");
    }
  }

  /**
   * Wipes and frees the session; if another thread is in a call, at the end of that call.
   * Idempotent.
   */
  @Override
  public void close() {
    State before =
        state.getAndUpdate(
            now ->
                switch (now) {
                  case IDLE, CLOSED -> State.CLOSED;
                  case IN_CALL, CLOSING -> State.CLOSING;
                });
    if (before == State.IDLE) {
      handle.close();
    }
  }
}
