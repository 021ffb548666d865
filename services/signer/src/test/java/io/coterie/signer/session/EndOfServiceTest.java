package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.Installation;
import io.coterie.signer.session.SessionLifecycle.Event;
import io.coterie.signer.share.KeyShare;
import java.time.Duration;
import java.util.HashSet;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The end of the process, and orders that are none. */
abstract class EndOfServiceTest extends SessionFixture {
  @Test
  void draining_refuses_new_orders_and_lets_running_ones_finish() throws Exception {
    ecdsaKey();
    SessionId session = give(ecdsaSigning(ecdsaIntent()));
    awaitEnvelope(session);
    assertThat(driver().drain(Duration.ofMillis(10))).as("one still runs").isFalse();
    SessionId late = give(ecdsaSigning(ecdsaIntent()));
    assertThat(awaitReport(late).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    CompletableFuture<Boolean> drained =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return driver().drain(Installation.PATIENCE);
              } catch (InterruptedException e) {
                return false;
              }
            });
    bravoPlays(session, 3);
    assertThat(drained.get()).isTrue();
    awaitEnded("ecdsa_sign completed none");
  }

  @Test
  void what_still_lives_at_the_end_is_stopped() {
    ecdsaKey();
    given(ecdsaIntent());
    ledger.held = true;
    give(ecdsaSigning(ecdsaIntent()));
    Installation.until("one claims", () -> ledger.waiting.size() == 1);
    driver().close();
    assertThat(watch.ended)
        .containsExactlyInAnyOrder("ecdsa_sign stopped none", "ecdsa_sign stopped none");
    assertThat(core.open.get()).isZero();
  }

  @Test
  void key_generations_are_stopped_wherever_they_are() {
    SessionId running = give(keygen(RequestId.next()));
    awaitEnvelope(running);
    driver().close();
    start();
    shares.held = true;
    SessionId storing = give(keygen(RequestId.next()));
    bravoPlays(storing);
    Installation.until("it stores", () -> shares.waiting.size() == 1);
    driver().close();
    start();
    key(KeyShare.State.PROVISIONAL);
    start();
    give(signing(1, 2));
    awaitMove(Event.KEY_PROVISIONAL);
    driver().close();
    assertThat(watch.ended)
        .containsExactly(
            "bls_keygen stopped none", "bls_keygen stopped none", "bls_sign stopped none");
    assertThat(core.open.get()).isZero();
  }

  @Test
  void cancelled_key_generation() {
    SessionId session = give(keygen(RequestId.next()));
    awaitEnvelope(session);
    driver().onCancel(coordinator, session);
    awaitEnded("bls_keygen cancelled none");
  }

  @Test
  void used_session_id_is_refused() {
    key(KeyShare.State.ACTIVE);
    ByteString bytes = signing(1).build().toByteString();
    driver().onOrder(coordinator, bytes, null);
    awaitEnded("bls_sign completed none");
    net.sent.clear();
    driver().onOrder(coordinator, bytes, null);
    assertThat(awaitReport(SessionId.ofOrder(bytes)).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED);
  }

  @Test
  void garbage_is_refused() {
    driver().onOrder(coordinator, ByteString.copyFromUtf8("garbage"), null);
    awaitEnded("unknown refused malformed_order");
    assertThat(new HashSet<>(watch.ended)).hasSize(1);
  }
}
