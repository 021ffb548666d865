package io.coterie.coordinator;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.KeyPublic;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Dealt keys for tests of other packages. */
public final class TestKeys {
  private TestKeys() {}

  /** A key and what can be done with all of its shares. */
  public record Key(KeyPublic keyPublic, TestBlsHandle shares) {
    public ByteString publicKey() {
      return keyPublic.getPublicKey();
    }

    public ByteString sign(String message) {
      return shares.sign(message);
    }
  }

  /** Signs with all shares. */
  public interface TestBlsHandle {
    ByteString sign(String message);
  }

  public static Key deal(int threshold, List<Integer> parties, long seed) {
    TestBls.Dealt dealt = TestBls.deal("keys/test", threshold, parties, seed);
    return new Key(
        dealt.keyPublic(),
        message -> {
          Map<Integer, byte[]> partials = new TreeMap<>();
          dealt
              .shares()
              .forEach(
                  (party, share) ->
                      partials.put(
                          party, TestBls.partial(share, message.getBytes(StandardCharsets.UTF_8))));
          return ByteString.copyFrom(TestBls.combine(partials));
        });
  }
}
