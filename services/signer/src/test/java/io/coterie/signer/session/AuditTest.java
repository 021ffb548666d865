package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.order.ApprovalGate;
import io.coterie.signer.order.SessionPlan;
import io.coterie.trust.Member;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The record of an order has every line that its payload was decoded to. */
class AuditTest {
  private static final ByteString BYTES_32 = ByteString.copyFrom(new byte[32]);

  @Test
  void a_payment_from_a_hundred_inputs_to_four_hundred_outputs_is_on_record() {
    List<DecodedPayload.Field> lines = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      lines.add(new DecodedPayload.Field("input", "x".repeat(DecodedPayload.MAX_VALUE)));
    }
    for (int i = 0; i < 400; i++) {
      lines.add(new DecodedPayload.Field("output", "x".repeat(DecodedPayload.MAX_VALUE)));
    }
    while (lines.size() < DecodedPayload.MAX_FIELDS) {
      lines.add(new DecodedPayload.Field("other", "as many as there may be"));
    }
    AuditEvent accepted =
        Audit.accepted(
            plan(),
            SessionFixture.member("coordinator", Member.Role.COORDINATOR, 0),
            new DecodedPayload(PayloadKind.BITCOIN_INPUT, BYTES_32, lines),
            new ApprovalGate.Counted("groups/treasury", 3, List.of(BYTES_32)));
    assertThat(accepted.fields())
        .containsKeys("payload.001.input", "payload.101.output", "payload.500.output")
        .containsEntry("approvals", "1")
        .containsEntry("approvers", "groups/treasury")
        .containsEntry("approvers_epoch", "3")
        .hasSizeGreaterThan(DecodedPayload.MAX_FIELDS);
  }

  private static SessionPlan plan() {
    return new SessionPlan(
        new SessionId(BYTES_32),
        Protocol.ECDSA_SIGN,
        "keys/main",
        1,
        2,
        List.of(SessionFixture.member("alpha", Member.Role.PARTY, 1)),
        new SessionPlan.Request(
            "wallet", "request", BYTES_32, BYTES_32, null, ByteString.EMPTY, List.of()),
        KeyTarget.SELF,
        new SessionPlan.Work.Sign(),
        Instant.EPOCH);
  }
}
