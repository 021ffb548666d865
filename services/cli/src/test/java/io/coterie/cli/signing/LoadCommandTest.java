package io.coterie.cli.signing;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.protobuf.util.Timestamps;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The requests of {@code coterie load}. */
class LoadCommandTest {
  private static final Timestamp END = Timestamps.fromSeconds(1_800_000_000);

  @ParameterizedTest
  @EnumSource(
      names = {"SCHEME_UNSPECIFIED", "UNRECOGNIZED"},
      mode = EnumSource.Mode.EXCLUDE)
  void loadAsksEveryKeyForSomethingThatItSigns(Scheme scheme) {
    AttestedKey key =
        new AttestedKey(
            "keys/hot",
            scheme,
            2,
            List.of("p1", "p2"),
            1,
            KeyPublic.getDefaultInstance(),
            ByteString.EMPTY,
            List.of(),
            List.of());
    LoadCommand load = new LoadCommand();
    SigningIntent first = load.intent(key, 1, END);
    SignedPayload.check(first);
    assertThat(first.getScheme()).isEqualTo(scheme);
    assertThat(SignedPayload.toSign(first, ByteString.EMPTY))
        .isNotEqualTo(SignedPayload.toSign(load.intent(key, 2, END), ByteString.EMPTY));
  }
}
