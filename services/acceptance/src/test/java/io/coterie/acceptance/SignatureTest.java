package io.coterie.acceptance;

import static io.coterie.acceptance.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.acceptance.SharedCluster.Running;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.custody.v1.CreateKeyRequest;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.WatchSigningRequest;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The everyday requests of a wallet backend. */
@ExtendWith(SharedCluster.class)
class SignatureTest {

  @Test
  void aSignatureVerifiesOutsideAndARetryGivesTheSameBytes(Running shared) {
    byte[] message = "withdrawal 4711".getBytes(StandardCharsets.UTF_8);
    WalletBackend wallet = shared.wallet();
    SignRequest request =
        WalletBackend.signRequest(
            wallet.intents().sign(WalletBackend.signingIntent(SharedCluster.KEY, message).build()));

    Signing signing = wallet.signings().sign(request);

    assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(signing.getSigningSetList()).hasSize(2);
    assertThat(shared.cluster().partyNames()).containsAll(signing.getSigningSetList());
    byte[] publicKey = shared.key().getPublicKey().toByteArray();
    assertThat(
            shared
                .outside()
                .verify(
                    publicKey,
                    message,
                    signing.getSignature().toByteArray(),
                    shared.key().getProofOfPossession().toByteArray())
                .valid())
        .isTrue();
    assertThat(
            shared
                .outside()
                .verify(
                    publicKey,
                    "other".getBytes(StandardCharsets.UTF_8),
                    signing.getSignature().toByteArray())
                .valid())
        .isFalse();
    assertThat(wallet.signings().sign(request)).isEqualTo(signing);
    assertThat(
            wallet
                .signings()
                .getSigning(GetSigningRequest.newBuilder().setName(signing.getName()).build()))
        .isEqualTo(signing);
    Iterator<Signing> watched =
        wallet
            .signings()
            .watchSigning(WatchSigningRequest.newBuilder().setName(signing.getName()).build());
    assertThat(watched.next()).isEqualTo(signing);
    assertThat(watched.hasNext()).as("the stream ends after the last state").isFalse();
  }

  @Test
  void aSignatureIsTheSameWhoeverMakesIt(Running shared) {
    byte[] message = "deterministic".getBytes(StandardCharsets.UTF_8);
    assertThat(shared.wallet().sign(SharedCluster.KEY, message).getSignature())
        .isEqualTo(shared.wallet().sign(SharedCluster.KEY, message).getSignature());
  }

  @Test
  void keysCanBeLookedUpAndListedInPages(Running shared) {
    WalletBackend wallet = shared.wallet();
    for (int i = 0; i < 3; i++) {
      assertThat(wallet.createKey("page-" + i, 2, List.of("party-1", "party-2")).getState())
          .isEqualTo(Key.State.ACTIVE);
    }
    assertThat(
            wallet
                .keys()
                .getKey(GetKeyRequest.newBuilder().setName("keys/" + SharedCluster.KEY).build()))
        .isEqualTo(shared.key());
    ListKeysResponse all =
        wallet.keys().listKeys(ListKeysRequest.newBuilder().setPageSize(1000).build());
    ListKeysResponse.Builder paged = ListKeysResponse.newBuilder();
    String token = "";
    do {
      ListKeysResponse page =
          wallet
              .keys()
              .listKeys(ListKeysRequest.newBuilder().setPageSize(2).setPageToken(token).build());
      assertThat(page.getKeysCount()).isBetween(1, 2);
      paged.addAllKeys(page.getKeysList());
      token = page.getNextPageToken();
    } while (!token.isEmpty());
    assertThat(paged.getKeysList()).isEqualTo(all.getKeysList());
    assertThat(all.getKeysList().stream().map(Key::getName))
        .contains("keys/shared", "keys/page-0", "keys/page-1", "keys/page-2")
        .isSorted();
    refused(
        ErrorReason.KEY_NOT_FOUND,
        () -> wallet.keys().getKey(GetKeyRequest.newBuilder().setName("keys/absent").build()));
    refused(
        ErrorReason.RESOURCE_NAME_INVALID,
        () -> wallet.keys().getKey(GetKeyRequest.newBuilder().setName("absent").build()));
    refused(
        ErrorReason.PAGE_TOKEN_INVALID,
        () -> wallet.keys().listKeys(ListKeysRequest.newBuilder().setPageToken("x").build()));
  }

  @Test
  void creatingAKeyAgainGivesTheSameKeyAndItsNameIsTaken(Running shared) {
    WalletBackend wallet = shared.wallet();
    CreateKeyRequest request =
        WalletBackend.request(
            wallet
                .intents()
                .sign(WalletBackend.keyIntent("once", 2, shared.cluster().partyNames()).build()));
    Key key = wallet.keys().createKey(request);
    assertThat(wallet.keys().createKey(request)).isEqualTo(key);
    refused(
        ErrorReason.KEY_EXISTS, () -> wallet.createKey("once", 2, shared.cluster().partyNames()));
  }
}
