package io.coterie.platform.error;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import com.google.rpc.Status;
import io.coterie.proto.custody.v1.Refusals;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.nio.channels.ClosedChannelException;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Reasons to {@code google.rpc.Status} with {@code ErrorInfo} (AIP-193), and back. */
public final class StatusErrors {
  /** Metadata key: name of the party concerned. */
  public static final String PARTY = "party";

  /** Metadata key: round of the protocol, decimal. */
  public static final String ROUND = "round";

  /** Metadata key: name of the {@code AbortCause} or {@code RefusalReason}. */
  public static final String CAUSE = "cause";

  /** Metadata key: name of the {@link io.coterie.platform.intent.IntentProblem}. */
  public static final String PROBLEM = "problem";

  /** Metadata key: the part of the payload that has the {@link #PROBLEM}, one line for people. */
  public static final String PART = "part";

  /**
   * Metadata key: which rule a party refused by, one line in its words. A party may lie, so it is
   * for people alone.
   */
  public static final String DETAIL = "detail";

  /** Characters (code points) of a {@link #DETAIL}. */
  public static final int MAX_DETAIL = 200;

  /** Metadata key: resource name concerned. */
  public static final String RESOURCE = "resource";

  private StatusErrors() {}

  /** The words of a party as a {@link #DETAIL}: printing characters of one line, and not many. */
  public static String detail(String untrusted) {
    return untrusted
        .codePoints()
        .limit(MAX_DETAIL)
        .map(c -> prints(c) ? c : '?')
        .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
        .toString()
        .strip();
  }

  private static boolean prints(int codePoint) {
    return switch (Character.getType(codePoint)) {
      case Character.CONTROL,
          Character.FORMAT,
          Character.LINE_SEPARATOR,
          Character.PARAGRAPH_SEPARATOR,
          Character.SURROGATE,
          Character.PRIVATE_USE,
          Character.UNASSIGNED ->
          false;
      default -> true;
    };
  }

  /** The status to store or to send. */
  public static Status status(ErrorReason reason, Map<String, String> metadata) {
    return status(reason, metadata, List.of());
  }

  /**
   * The status to store or to send.
   *
   * @param refusals REFUSED receipts of parties; few, because a status travels in trailers
   */
  public static Status status(
      ErrorReason reason, Map<String, String> metadata, List<SignedReceipt> refusals) {
    Status.Builder status =
        Status.newBuilder()
            .setCode(reason.code().value())
            .setMessage(reason.text())
            .addDetails(
                Any.pack(
                    ErrorInfo.newBuilder()
                        .setReason(reason.name())
                        .setDomain(ErrorReason.DOMAIN)
                        .putAllMetadata(metadata)
                        .build()));
    reason
        .retryAfter()
        .ifPresent(
            pause ->
                status.addDetails(
                    Any.pack(
                        RetryInfo.newBuilder()
                            .setRetryDelay(
                                com.google.protobuf.Duration.newBuilder()
                                    .setSeconds(pause.toSeconds())
                                    .setNanos(pause.getNano()))
                            .build())));
    if (!refusals.isEmpty()) {
      status.addDetails(Any.pack(Refusals.newBuilder().addAllReceipts(refusals).build()));
    }
    return status.build();
  }

  /** The exception a gRPC handler ends a call with. */
  public static StatusRuntimeException of(ErrorReason reason, Map<String, String> metadata) {
    return StatusProto.toStatusRuntimeException(status(reason, metadata));
  }

  /** The exception a gRPC handler ends a call with. */
  public static StatusRuntimeException of(ErrorReason reason) {
    return of(reason, Map.of());
  }

  /** The exception a gRPC handler ends a call with. */
  public static StatusRuntimeException of(CustodyException failure) {
    return StatusProto.toStatusRuntimeException(
        status(failure.reason(), failure.metadata(), failure.refusals()));
  }

  /**
   * The code of what a gRPC stub threw. A connection that closes under a call is UNAVAILABLE, also
   * where grpc-java reports it as UNKNOWN: it does so when the channel closes between the choice of
   * the connection and the first write. Signing requests are idempotent, so such a call is
   * repeated.
   */
  public static io.grpc.Status.Code code(Throwable thrown) {
    io.grpc.Status status = io.grpc.Status.fromThrowable(thrown);
    return status.getCode() == io.grpc.Status.Code.UNKNOWN
            && status.getCause() instanceof ClosedChannelException
        ? io.grpc.Status.Code.UNAVAILABLE
        : status.getCode();
  }

  /** The error info of this system in a status, if it has one. */
  public static Optional<ErrorInfo> info(Status status) {
    for (Any detail : status.getDetailsList()) {
      if (detail.is(ErrorInfo.class)) {
        try {
          ErrorInfo info = detail.unpack(ErrorInfo.class);
          if (info.getDomain().equals(ErrorReason.DOMAIN)) {
            return Optional.of(info);
          }
        } catch (InvalidProtocolBufferException e) {
          return Optional.empty();
        }
      }
    }
    return Optional.empty();
  }

  /** The receipts of refusals in a status; nobody has verified them. */
  public static List<SignedReceipt> refusals(Status status) {
    for (Any detail : status.getDetailsList()) {
      if (detail.is(Refusals.class)) {
        try {
          return detail.unpack(Refusals.class).getReceiptsList();
        } catch (InvalidProtocolBufferException e) {
          return List.of();
        }
      }
    }
    return List.of();
  }

  /** The error info of this system in what a gRPC stub threw, if it has one. */
  public static Optional<ErrorInfo> info(Throwable thrown) {
    Status status = StatusProto.fromThrowable(thrown);
    return status == null ? Optional.empty() : info(status);
  }

  /** The reason in what a gRPC stub threw, if this version knows it. */
  public static Optional<ErrorReason> reason(Throwable thrown) {
    return info(thrown).flatMap(info -> reason(info.getReason()));
  }

  /** The reason in a status, if this version knows it. */
  public static Optional<ErrorReason> reason(Status status) {
    return info(status).flatMap(info -> reason(info.getReason()));
  }

  private static Optional<ErrorReason> reason(String name) {
    for (ErrorReason reason : ErrorReason.values()) {
      if (reason.name().equals(name)) {
        return Optional.of(reason);
      }
    }
    return Optional.empty();
  }
}
