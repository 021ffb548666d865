package io.coterie.mpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.proto.core.v1.SessionConfig;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The C functions themselves, with every argument wrong in every way that C allows to check. */
class RawCallTest {
  private static final int INVALID_ARGUMENT = 1;
  private static final MemorySegment NULL = MemorySegment.NULL;

  private final NativeBindings bindings = NativeMpcCore.load().bindings();
  private final Arena arena = Arena.ofConfined();
  private MemorySegment vault;

  private MemorySegment view(MemorySegment data, long length) {
    MemorySegment view = arena.allocate(NativeBindings.VIEW);
    view.set(ValueLayout.ADDRESS, 0, data);
    view.set(ValueLayout.JAVA_LONG, 8, length);
    return view;
  }

  private MemorySegment view(byte... bytes) {
    return view(arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes), bytes.length);
  }

  /** A buffer full of rubbish, so that the test sees whether it was cleared. */
  private MemorySegment dirty() {
    MemorySegment buffer = arena.allocate(NativeBindings.BUFFER);
    buffer.fill((byte) 0x55);
    return buffer;
  }

  private static boolean isCleared(MemorySegment out) {
    for (byte b : out.toArray(ValueLayout.JAVA_BYTE)) {
      if (b != 0) {
        return false;
      }
    }
    return true;
  }

  private List<MemorySegment> badViews() {
    return List.of(
        view(NULL, 1),
        view(NULL, Long.MAX_VALUE),
        view(NULL, -1),
        view(arena.allocate(1), NativeBindings.MAX_INPUT + 1L),
        view(arena.allocate(1), -1));
  }

  @BeforeEach
  void openVault() {
    MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
    assertThat(bindings.vaultOpen(view(new byte[32]), out)).isZero();
    vault = out.get(ValueLayout.ADDRESS, 0);
  }

  @AfterEach
  void close() {
    bindings.vaultFree(vault);
    arena.close();
  }

  @Test
  void argon2id() {
    MemorySegment good = view(new byte[16]);
    assertThat(bindings.argon2id(good, good, 64, 1, 1, NULL)).isEqualTo(INVALID_ARGUMENT);
    for (MemorySegment bad : badViews()) {
      for (boolean salt : new boolean[] {false, true}) {
        MemorySegment out = dirty();
        assertThat(bindings.argon2id(salt ? good : bad, salt ? bad : good, 64, 1, 1, out))
            .isEqualTo(INVALID_ARGUMENT);
        assertThat(isCleared(out)).isTrue();
      }
    }
  }

  @Test
  void vault_open() {
    assertThat(bindings.vaultOpen(view(new byte[32]), NULL)).isEqualTo(INVALID_ARGUMENT);
    for (MemorySegment bad : badViews()) {
      MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
      out.fill((byte) 0x55);
      assertThat(bindings.vaultOpen(bad, out)).isEqualTo(INVALID_ARGUMENT);
      assertThat(isCleared(out)).isTrue();
    }
  }

  @Test
  void vault_seal_and_unseal() {
    MemorySegment good = view((byte) 1);
    assertThat(bindings.vaultSeal(vault, good, good, NULL)).isEqualTo(INVALID_ARGUMENT);
    assertThat(bindings.vaultUnseal(vault, good, good, NULL)).isEqualTo(INVALID_ARGUMENT);
    MemorySegment out = dirty();
    assertThat(bindings.vaultSeal(NULL, good, good, out)).isEqualTo(INVALID_ARGUMENT);
    assertThat(isCleared(out)).isTrue();
    out = dirty();
    assertThat(bindings.vaultUnseal(NULL, good, good, out)).isEqualTo(INVALID_ARGUMENT);
    assertThat(isCleared(out)).isTrue();
    for (MemorySegment bad : badViews()) {
      for (int i = 0; i < 4; i++) {
        out = dirty();
        int code =
            switch (i) {
              case 0 -> bindings.vaultSeal(vault, bad, good, out);
              case 1 -> bindings.vaultSeal(vault, good, bad, out);
              case 2 -> bindings.vaultUnseal(vault, bad, good, out);
              default -> bindings.vaultUnseal(vault, good, bad, out);
            };
        assertThat(code).isEqualTo(INVALID_ARGUMENT);
        assertThat(isCleared(out)).isTrue();
      }
    }
  }

  @Test
  void vault_drop_presignature() {
    MemorySegment id = view(new byte[32]);
    assertThat(bindings.vaultDropPresignature(vault, id)).isZero();
    assertThat(bindings.vaultDropPresignature(NULL, id)).isEqualTo(INVALID_ARGUMENT);
    List<MemorySegment> bad = new ArrayList<>(badViews());
    bad.add(view());
    bad.add(view(new byte[31]));
    bad.add(view(new byte[33]));
    for (MemorySegment view : bad) {
      assertThat(bindings.vaultDropPresignature(vault, view)).isEqualTo(INVALID_ARGUMENT);
    }
  }

  @Test
  void identity_create() {
    MemorySegment name = view((byte) 'a');
    MemorySegment out = dirty();
    assertThat(bindings.identityCreate(vault, name, NULL, out)).isEqualTo(INVALID_ARGUMENT);
    assertThat(bindings.identityCreate(vault, name, out, NULL)).isEqualTo(INVALID_ARGUMENT);
    List<MemorySegment> bad = new ArrayList<>(badViews());
    bad.add(view());
    bad.add(view(new byte[256]));
    bad.add(view((byte) 0xff, (byte) 0xfe));
    for (MemorySegment view : bad) {
      MemorySegment sealed = dirty();
      MemorySegment key = dirty();
      assertThat(bindings.identityCreate(vault, view, sealed, key)).isEqualTo(INVALID_ARGUMENT);
      assertThat(isCleared(sealed) && isCleared(key)).isTrue();
    }
    MemorySegment sealed = dirty();
    MemorySegment key = dirty();
    assertThat(bindings.identityCreate(NULL, name, sealed, key)).isEqualTo(INVALID_ARGUMENT);
    assertThat(isCleared(sealed) && isCleared(key)).isTrue();
  }

  @Test
  void identity_sign() {
    MemorySegment good = view((byte) 1);
    assertThat(bindings.identitySign(vault, good, good, NULL)).isEqualTo(INVALID_ARGUMENT);
    List<MemorySegment> badStatements = new ArrayList<>(badViews());
    badStatements.add(view(new byte[Vault.MAX_STATEMENT + 1]));
    for (MemorySegment bad : badStatements) {
      MemorySegment out = dirty();
      assertThat(bindings.identitySign(vault, good, bad, out)).isEqualTo(INVALID_ARGUMENT);
      assertThat(isCleared(out)).isTrue();
    }
    for (MemorySegment bad : badViews()) {
      MemorySegment out = dirty();
      assertThat(bindings.identitySign(vault, bad, good, out)).isEqualTo(INVALID_ARGUMENT);
      assertThat(isCleared(out)).isTrue();
    }
    MemorySegment out = dirty();
    assertThat(bindings.identitySign(NULL, good, good, out)).isEqualTo(INVALID_ARGUMENT);
    assertThat(isCleared(out)).isTrue();
  }

  @Test
  void session_start() {
    MemorySegment empty = view(NULL, 0);
    MemorySegment config = view(SessionConfig.newBuilder().setSelf(1).build().toByteArray());
    MemorySegment handle = arena.allocate(ValueLayout.ADDRESS);
    assertThat(bindings.sessionStart(vault, config, empty, empty, NULL, dirty(), dirty()))
        .isEqualTo(INVALID_ARGUMENT);
    assertThat(bindings.sessionStart(vault, config, empty, empty, handle, NULL, dirty()))
        .isEqualTo(INVALID_ARGUMENT);
    assertThat(bindings.sessionStart(vault, config, empty, empty, handle, dirty(), NULL))
        .isEqualTo(INVALID_ARGUMENT);
    for (MemorySegment bad : badViews()) {
      for (int i = 0; i < 3; i++) {
        assertNotStarted(i == 0 ? bad : config, i == 1 ? bad : empty, i == 2 ? bad : empty);
      }
    }
  }

  @Test
  void session_start_with_random_and_truncated_configurations() {
    MemorySegment empty = view(NULL, 0);
    Random random = new Random(11);
    byte[] good;
    try (LocalParties parties = new LocalParties(3)) {
      good = parties.keygen(2).toBuilder().setSelf(1).build().toByteArray();
    }
    for (int i = 0; i < 1000; i++) {
      byte[] config;
      if (i < good.length) {
        config = Arrays.copyOf(good, i);
      } else {
        config = new byte[random.nextInt(500)];
        random.nextBytes(config);
      }
      assertNotStarted(view(config), empty, empty);
    }
  }

  private void assertNotStarted(MemorySegment config, MemorySegment identity, MemorySegment share) {
    MemorySegment handle = arena.allocate(ValueLayout.ADDRESS);
    handle.fill((byte) 0x55);
    MemorySegment step = dirty();
    MemorySegment detail = dirty();
    int code = bindings.sessionStart(vault, config, identity, share, handle, step, detail);
    assertThat(code).isBetween(INVALID_ARGUMENT, 3);
    assertThat(isCleared(handle) && isCleared(step)).isTrue();
    bindings.bufferFree(detail);
    assertThat(isCleared(detail)).isTrue();
  }

  @Test
  void session_handle_without_a_session() {
    MemorySegment step = dirty();
    assertThat(bindings.sessionHandle(NULL, 1, view((byte) 1), step)).isEqualTo(INVALID_ARGUMENT);
    assertThat(isCleared(step)).isTrue();
    assertThat(bindings.sessionHandle(NULL, 1, view((byte) 1), NULL)).isEqualTo(INVALID_ARGUMENT);
  }

  @ParameterizedTest
  @EnumSource
  void call_without_a_session(NativeBindings.About about) {
    MemorySegment empty = view(NULL, 0);
    MemorySegment reply = dirty();
    MemorySegment detail = dirty();
    assertThat(bindings.call(about, vault, empty, empty, NULL, detail)).isEqualTo(INVALID_ARGUMENT);
    assertThat(bindings.call(about, vault, empty, empty, reply, NULL)).isEqualTo(INVALID_ARGUMENT);
    for (MemorySegment bad : badViews()) {
      for (boolean identity : new boolean[] {false, true}) {
        MemorySegment outcome = dirty();
        int code =
            bindings.call(
                about, vault, identity ? bad : empty, identity ? empty : bad, outcome, detail);
        assertThat(code).isEqualTo(INVALID_ARGUMENT);
        assertThat(isCleared(outcome)).isTrue();
        bindings.bufferFree(detail);
      }
    }
    Random random = new Random(13);
    for (int i = 0; i < 1000; i++) {
      byte[] bytes = new byte[random.nextInt(300)];
      random.nextBytes(bytes);
      MemorySegment outcome = dirty();
      int code =
          bindings.call(about, i % 2 == 0 ? vault : NULL, empty, view(bytes), outcome, detail);
      assertThat(code).isBetween(INVALID_ARGUMENT, 3);
      assertThat(isCleared(outcome)).isTrue();
      bindings.bufferFree(detail);
    }
  }

  @Test
  void verify() {
    MemorySegment valid = dirty();
    MemorySegment detail = dirty();
    MemorySegment empty = view(NULL, 0);
    assertThat(bindings.verify(empty, NULL, detail)).isEqualTo(INVALID_ARGUMENT);
    assertThat(bindings.verify(empty, valid, NULL)).isEqualTo(INVALID_ARGUMENT);
    for (MemorySegment bad : badViews()) {
      MemorySegment outcome = dirty();
      assertThat(bindings.verify(bad, outcome, detail)).isEqualTo(INVALID_ARGUMENT);
      assertThat(outcome.get(ValueLayout.JAVA_INT, 0)).isZero();
      bindings.bufferFree(detail);
    }
  }

  @Test
  void free_functions_ignore_nothing_and_twice() {
    bindings.vaultFree(NULL);
    bindings.sessionFree(NULL);
    bindings.bufferFree(NULL);
    MemorySegment out = arena.allocate(NativeBindings.BUFFER);
    bindings.bufferFree(out);
    assertThat(bindings.vaultSeal(vault, view((byte) 1), view((byte) 1), out)).isZero();
    bindings.bufferFree(out);
    assertThat(isCleared(out)).isTrue();
    bindings.bufferFree(out);
  }
}
