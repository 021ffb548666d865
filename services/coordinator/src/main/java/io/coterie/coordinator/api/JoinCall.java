package io.coterie.coordinator.api;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.group.MemberAdmissions;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.custody.v1.JoinEnd;
import io.coterie.proto.custody.v1.JoinGroupRequest;
import io.coterie.proto.custody.v1.JoinGroupResponse;
import io.coterie.proto.custody.v1.JoinStart;
import io.coterie.proto.custody.v1.MemberEnvelope;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/** The stream of one run of a join: a start, then envelopes both ways, then the end. */
final class JoinCall implements StreamObserver<JoinGroupRequest>, MemberAdmissions.Joiner {
  private final ServerCallStreamObserver<JoinGroupResponse> answer;
  private final BiFunction<JoinStart, MemberAdmissions.Joiner, MemberAdmissions.Run> start;

  /** There once it has started. Touched by the call's thread alone. */
  private MemberAdmissions.@Nullable Run run;

  /** Guarded by {@code this}, as the answer is. */
  private boolean over;

  /**
   * @param start starts the run that a client has ordered
   */
  JoinCall(
      ServerCallStreamObserver<JoinGroupResponse> answer,
      BiFunction<JoinStart, MemberAdmissions.Joiner, MemberAdmissions.Run> start) {
    this.answer = answer;
    this.start = start;
    answer.setOnCancelHandler(this::leave);
  }

  @Override
  public void onNext(JoinGroupRequest request) {
    try {
      MemberAdmissions.Run begun = run;
      if (request.hasStart() == (begun != null)) {
        throw new CustodyException(ErrorReason.APPLICANT_INVALID);
      }
      if (begun == null) {
        run = start.apply(request.getStart(), this);
      } else {
        begun.envelope(request.getEnvelope().getIssuer(), request.getEnvelope().getEnvelope());
      }
    } catch (RuntimeException e) {
      // The interceptors answer.
      leave();
      throw e;
    }
  }

  @Override
  public void onError(Throwable gone) {
    leave();
  }

  /** The client has nothing more to say; its issuers may. */
  @Override
  public void onCompleted() {}

  private void leave() {
    synchronized (this) {
      over = true;
    }
    if (run != null) {
      run.leave();
    }
  }

  @Override
  public synchronized void envelope(int issuer, ByteString envelope) {
    if (!over) {
      answer.onNext(
          JoinGroupResponse.newBuilder()
              .setEnvelope(MemberEnvelope.newBuilder().setIssuer(issuer).setEnvelope(envelope))
              .build());
    }
  }

  @Override
  public synchronized void ended() {
    if (!over) {
      over = true;
      answer.onNext(JoinGroupResponse.newBuilder().setEnd(JoinEnd.getDefaultInstance()).build());
      answer.onCompleted();
    }
  }

  @Override
  public synchronized void failed(CustodyException why) {
    if (!over) {
      over = true;
      answer.onError(StatusErrors.of(why));
    }
  }
}
