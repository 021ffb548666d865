package io.coterie.coordinator.custody.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.protocol.Protocol.Operation;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Which operation a stored renewal is. RefreshTest and ReshareTest cover the rest. */
class KeyRenewalsTest {
  private static Renewal of(SignedIntent intent) {
    return new Renewal(
        1,
        new RequestHeader("wallet", "0", ByteString.EMPTY, intent, Instant.EPOCH, Instant.EPOCH),
        "keys/test",
        1,
        2,
        List.of(),
        false,
        false,
        Renewal.State.RUNNING,
        0,
        null);
  }

  @Test
  void the_payload_type_of_the_intent_says_which_operation_a_renewal_is()
      throws GeneralSecurityException {
    IntentSigner wallet =
        new IntentSigner(
            "wallet", KeyPairGenerator.getInstance("Ed25519").generateKeyPair().getPrivate());
    assertThat(
            KeyRenewals.operation(
                of(wallet.sign(RefreshIntent.newBuilder().setPurpose("reshare").build()))))
        .isEqualTo(Operation.REFRESH);
    assertThat(KeyRenewals.operation(of(wallet.sign(ReshareIntent.getDefaultInstance()))))
        .isEqualTo(Operation.RESHARE);
    SignedIntent other =
        wallet.sign(SigningIntent.getDefaultInstance()).toBuilder()
            .setPayloadType("application/not-a-reshare")
            .build();
    assertThatThrownBy(() -> KeyRenewals.operation(of(other)))
        .isInstanceOf(IllegalStateException.class);
  }
}
