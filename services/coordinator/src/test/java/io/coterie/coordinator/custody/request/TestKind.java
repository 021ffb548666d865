package io.coterie.coordinator.custody.request;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.DecodedPayload;
import io.coterie.proto.custody.v1.Signing;
import java.time.Instant;
import java.util.List;
import java.util.OptionalInt;

/** Signings whose work is the test's own. */
interface TestKind extends RequestKind<SigningRecord, VerifiedIntent.Signing, SigningRecord> {
  /** The time at which all of it is. */
  Instant NOW = Instant.parse("2030-01-01T00:00:00Z");

  /** The request with a signature. */
  static SigningRecord signed(SigningRecord request) {
    SigningRecord.Result result =
        new SigningRecord.Result(
            ByteString.copyFromUtf8("signature"), OptionalInt.empty(), ByteString.EMPTY, false);
    return request.signed(result, List.of("p1"), 1, NOW);
  }

  @Override
  default String name() {
    return "test";
  }

  @Override
  default String metricLabel() {
    return CoordinatorMetrics.SIGNING_WORK;
  }

  @Override
  default Class<VerifiedIntent.Signing> intents() {
    return VerifiedIntent.Signing.class;
  }

  @Override
  default SigningRecord prepare(VerifiedIntent.Signing intent, Instant now) {
    return SigningRecord.pending(
        RequestHeader.of(intent, now),
        intent.key(),
        intent.scheme(),
        null,
        DecodedPayload.getDefaultInstance());
  }

  @Override
  default boolean giveEnd(SigningRecord stored, Run<SigningRecord> run) {
    if (stored.state() == Signing.State.PENDING) {
      return false;
    }
    run.finish(stored);
    return true;
  }
}
