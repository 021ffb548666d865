package io.coterie.coordinator.custody.key;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.TestEvidence;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.SignedIntent;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class MadeKeyTest {
  private static Completion made(String payloadType, int epoch) {
    return TestEvidence.completion(
        ByteString.EMPTY,
        KeyPublic.newBuilder().setEpoch(epoch).build(),
        SignedIntent.newBuilder().setPayloadType(payloadType).build(),
        List.of(),
        Set.of());
  }

  private static Completion refresh(int epoch) {
    return made(VerifiedIntent.KeyRefresh.PAYLOAD_TYPE, epoch);
  }

  private static Completion reshare(int epoch) {
    return made(VerifiedIntent.KeyReshare.PAYLOAD_TYPE, epoch);
  }

  @Test
  void a_refresh_is_shown_until_another_session_follows() {
    Completion creation = made("creation", 1);
    MadeKey key = MadeKey.created(creation).renewed(refresh(2)).renewed(refresh(3));
    assertThat(key.attestation().getCompletionsList()).containsExactly(creation, refresh(3));
    key = key.renewed(reshare(4)).renewed(refresh(5));
    assertThat(key.attestation().getCompletionsList())
        .containsExactly(creation, reshare(4), refresh(5));
    assertThat(key.keyPublic().getEpoch()).isEqualTo(5);
  }

  /** Clients would refuse the key for ever. */
  @Test
  void no_number_of_renewals_makes_an_attestation_too_long_for_clients() {
    Completion creation = made("creation", 1);
    MadeKey key = MadeKey.created(creation);
    int last = AttestedKey.MAX_COMPLETIONS + 3;
    for (int epoch = 2; epoch <= last; epoch++) {
      key = key.renewed(reshare(epoch));
    }
    for (MadeKey each : List.of(key, key.renewed(refresh(last + 1)))) {
      assertThat(each.attestation().getCompletionsList())
          .hasSize(AttestedKey.MAX_COMPLETIONS)
          .startsWith(creation)
          .contains(reshare(last));
    }
    assertThat(key.renewed(refresh(last + 1)).keyPublic().getEpoch()).isEqualTo(last + 1);
  }
}
