package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.Installation;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.order.PresignatureLimits;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.share.KeyShare;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Presignatures are made, kept, used once and dropped. */
abstract class PresigningTest extends SessionFixture {
  @Test
  void presignature_is_made_used_once_and_gone() {
    ecdsaKey();
    ByteString id = presign();
    assertThat(watch.ready).isEqualTo(1);
    assertThat(net.sent).filteredOn(s -> s.message().hasEnvelope()).hasSize(2);
    net.sent.clear();
    SessionId signing = give(presigned(id));
    envelope(signing, ROUND_1);
    awaitEnded("ecdsa_sign_presigned completed none");
    assertThat(net.sent.element().to()).containsExactly(bravo, coordinator);
    SessionConfig config = List.copyOf(core.configs).getLast();
    assertThat(config.getPresignatureId()).isEqualTo(id);
    assertThat(config.getSealedPresignature())
        .isEqualTo(ByteString.copyFromUtf8("contribution of 1"));
    assertThat(awaitRefusal(give(presigned(id))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(watch.pool).containsExactly("made", "used");
    assertThat(watch.ready).isZero();
  }

  @Test
  void a_coordinator_that_has_its_share_of_the_disk_gets_no_more_presignatures() {
    ledger.kept.put(MemoryLedger.COORDINATOR, 70_000_000L);
    ledger.diskBytes = 10_000_000;
    start();
    ecdsaKey();
    SessionId session = give(presigning());
    assertThat(awaitReport(session).getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED);
    assertThat(awaitReport(session).getRefused().getDetail()).contains("this coordinator");
    assertThat(ledger.sessions).isEmpty();
  }

  @Test
  void presignature_for_something_else_is_unknown_and_stays() {
    ecdsaKey();
    ByteString id = presign(1, 2);
    List<Order.Builder> wrong =
        List.of(
            presigned(id),
            presigned(id, 1),
            presigned(id, 2, 1),
            presigned(id, 1, 2).addSigningSet(3),
            presigned(ByteString.copyFrom(new byte[32]), 1, 2));
    for (Order.Builder order : wrong) {
      assertThat(awaitRefusal(give(order)))
          .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    }
    ByteString ofOther = presigned(id, 1, 2).build().toByteString();
    driver().onOrder(other, ofOther, null);
    Sent refusal =
        awaitSent(
            "the other coordinator is refused",
            m ->
                m.getReport().hasRefused()
                    && m.getReport().getSessionId().equals(SessionId.ofOrder(ofOther).bytes()));
    assertThat(refusal.message().getReport().getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    assertThat(watch.pool).containsExactly("made");
    SessionId right = give(presigned(id, 1, 2));
    awaitEnvelope(right);
  }

  @Test
  void presignature_is_burnt_before_the_claim_and_never_comes_back() {
    ecdsaKey();
    ByteString id = presign();
    ledger.held = true;
    SessionId signing = give(presigned(id));
    Installation.until("it claims", () -> ledger.waiting.size() == 1);
    assertThat(awaitRefusal(give(presigned(id))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
    ledger.waiting.getFirst().complete(ClaimLedger.Outcome.REQUEST_ID_REUSED);
    assertThat(awaitRefusal(signing)).isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_ID_REUSED);
    Installation.until("it is lost", () -> watch.pool.contains("not_started"));
    assertThat(core.presignatures).as("the core keeps nothing for it").isEmpty();
    assertThat(awaitRefusal(give(presigned(id))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN);
  }

  @Test
  void order_that_may_not_be_signed_costs_no_presignature() {
    ecdsaKey();
    ByteString id = presign();
    Order.Builder bad =
        ecdsaSigning(ecdsaIntent().setEthereumTransaction(ByteString.copyFromUtf8("x")))
            .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED)
            .setPresignatureId(id);
    assertThat(awaitRefusal(give(bad))).isEqualTo(RefusalReason.REFUSAL_REASON_BAD_PAYLOAD);
    awaitEnvelope(give(presigned(id)));
  }

  @Test
  void pool_has_limits_of_its_own() {
    limits = new SessionLimits(2, 1, Duration.ofSeconds(60), Duration.ZERO, Duration.ZERO, POOL);
    start();
    ecdsaKey();
    SessionId first = give(presigning());
    awaitEnvelope(first);
    SessionId second = give(presigning());
    awaitEnvelope(second);
    assertThat(awaitRefusal(give(presigning()))).isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED);
    awaitEnvelope(give(ecdsaSigning(ecdsaIntent())));
    bravoPlays(first, 2);
    bravoPlays(second, 2);
    Installation.until("both are ready", () -> watch.ready == 2);
    Installation.until("they have ended", () -> live() == 1);
    assertThat(awaitRefusal(give(presigning()))).isEqualTo(RefusalReason.REFUSAL_REASON_POOL_FULL);
    driver().onCancel(other, first);
    driver().onCancel(bravo, first);
    assertThat(watch.ready).isEqualTo(2);
    driver().onCancel(coordinator, first);
    assertThat(watch.pool).contains("cancelled");
    assertThat(watch.ready).isEqualTo(1);
    Installation.until("the refused one has ended", () -> live() == 1);
    awaitEnvelope(give(presigning()));
  }

  @Test
  void session_makes_as_many_presignatures_as_were_ordered() {
    limits =
        new SessionLimits(
            8,
            8,
            Duration.ofSeconds(60),
            Duration.ZERO,
            Duration.ZERO,
            new PresignatureLimits(5, 8, 4, 4, Duration.ofMinutes(1)));
    start();
    ecdsaKey();
    SessionId session = give(presigning().setPresignatureCount(4));
    awaitEnvelope(session);
    // The room for all of them is taken before the first one is made.
    assertThat(awaitRefusal(give(presigning().setPresignatureCount(2))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_POOL_FULL);
    bravoPlays(session, 2);
    List<ByteString> ids = awaitReport(session).getCompleted().getPresignatureIdsList();
    assertThat(ids).hasSize(4).doesNotHaveDuplicates();
    awaitEnded("ecdsa_presign completed none");
    assertThat(watch.ready).isEqualTo(4);
    awaitEnvelope(give(presigned(ids.get(2))));
    assertThat(watch.ready).isEqualTo(3);
    driver().onCancel(coordinator, session);
    assertThat(watch.ready).isZero();
    assertThat(watch.pool)
        .containsExactly(
            "made", "made", "made", "made", "used", "cancelled", "cancelled", "cancelled");
    assertThat(core.presignatures).isEmpty();
  }

  @Test
  void of_presignatures_with_an_id_that_is_known_none_is_kept() {
    ecdsaKey();
    core.oneId = true;
    SessionId twice = give(presigning().setPresignatureCount(2));
    bravoPlays(twice, 2);
    assertThat(awaitRefusal(twice)).isEqualTo(RefusalReason.REFUSAL_REASON_INTERNAL);
    Installation.until("its room in the pool is free", () -> live() == 0);
    assertThat(watch.pool).isEmpty();
    assertThat(core.presignatures).isEmpty();
    presign();
    SessionId again = give(presigning());
    bravoPlays(again, 2);
    assertThat(awaitRefusal(again)).isEqualTo(RefusalReason.REFUSAL_REASON_INTERNAL);
    assertThat(watch.pool).containsExactly("made", "duplicate");
    assertThat(watch.ready).isZero();
    assertThat(core.presignatures).isEmpty();
    Installation.until("all have ended", () -> live() == 0);
    core.oneId = false;
    presign();
  }

  @Test
  void presignatures_of_an_earlier_process_of_the_coordinator_are_dropped() {
    ecdsaKey();
    ByteString old = ByteString.copyFrom(new byte[16]);
    ByteString now = ByteString.copyFromUtf8("another process ");
    presign(presigning().setCoordinatorIncarnation(old));
    presign(presigning().setCoordinatorIncarnation(old));
    assertThat(watch.ready).isEqualTo(2);
    // Another coordinator's are its own.
    driver()
        .onOrder(other, presigning(7).setCoordinatorIncarnation(now).build().toByteString(), null);
    Installation.until(
        "it is refused", () -> watch.ended.stream().anyMatch(e -> e.contains("pool_full")));
    assertThat(watch.pool).doesNotContain("orphaned");
    ByteString id = presign(presigning().setCoordinatorIncarnation(now));
    assertThat(watch.pool).filteredOn("orphaned"::equals).hasSize(2);
    assertThat(watch.ready).isEqualTo(1);
    awaitEnvelope(give(presigned(id)));
    assertThat(awaitRefusal(give(presigning().setCoordinatorIncarnation(now.substring(1)))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
    assertThat(awaitRefusal(give(ecdsaSigning(ecdsaIntent()).setCoordinatorIncarnation(now))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
  }

  @Test
  void failed_presigning_gives_its_room_back() {
    ecdsaKey();
    for (int attempt = 0; attempt < 3; attempt++) {
      SessionId session = give(presigning());
      awaitEnvelope(session);
      driver().onCancel(coordinator, session);
      assertThat(awaitReport(session).getTimedOut().getMissingList()).containsExactly(2);
      Installation.until("it has ended", () -> live() == 0);
    }
    presign();
  }

  @Test
  void presignature_has_an_age() {
    limits =
        new SessionLimits(
            8,
            8,
            Duration.ofSeconds(60),
            Duration.ZERO,
            Duration.ZERO,
            new PresignatureLimits(2, 2, 2, 4, Duration.ofNanos(1)));
    start();
    ecdsaKey();
    presign();
    Installation.until("it is dropped", () -> watch.pool.contains("aged"));
    assertThat(core.presignatures).isEmpty();
    assertThat(watch.ready).isZero();
  }

  @Test
  void presigning_needs_the_key_as_it_is() {
    assertThat(awaitRefusal(give(presigning())))
        .isEqualTo(RefusalReason.REFUSAL_REASON_UNKNOWN_KEY);
    ecdsaKey(KeyShare.State.PROVISIONAL, 1, "request");
    assertThat(awaitRefusal(give(presigning()))).isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    ecdsaKey();
    assertThat(awaitRefusal(give(presigning().setEpoch(2))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    assertThat(awaitRefusal(give(presigning().setThreshold(1))))
        .isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    List<Order.Builder> malformed =
        List.of(
            presigning(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
            presigning(-1),
            presigning().setSignedIntent(SignedIntent.getDefaultInstance()),
            presigning().setPresignatureId(DIGEST),
            presigning().clearPresignatureCount(),
            presigning().setPresignatureCount(5),
            presigning().setPresignatureCount(-1),
            presigned(DIGEST).setPresignatureCount(1),
            ecdsaSigning(ecdsaIntent()).setPresignatureCount(1),
            presigned(DIGEST).clearPresignatureId(),
            presigned(DIGEST.substring(1)),
            presigned(DIGEST).addDerivationPath(1),
            ecdsaSigning(ecdsaIntent()).setPresignatureId(DIGEST),
            ecdsaSigning(ecdsaIntent()).clearSignedIntent());
    for (Order.Builder order : malformed) {
      assertThat(awaitRefusal(give(order))).isEqualTo(RefusalReason.REFUSAL_REASON_MALFORMED_ORDER);
    }
    assertThat(core.started.get()).isZero();
  }
}
