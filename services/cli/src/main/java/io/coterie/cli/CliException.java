package io.coterie.cli;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** A failure as the user sees it: one line that says what to do, and the exit code. */
final class CliException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private final int exitCode;

  CliException(int exitCode, String message) {
    super(message);
    this.exitCode = exitCode;
  }

  /** Something local that the user has to mend. */
  static CliException local(String message) {
    return new CliException(Coterie.LOCAL, message);
  }

  int exitCode() {
    return exitCode;
  }

  @Override
  public String getMessage() {
    String message = super.getMessage();
    return message == null ? "" : message;
  }

  static CliException of(Throwable failure) {
    return switch (failure) {
      case CliException known -> known;
      case StatusRuntimeException refused -> ofStatus(refused.getStatus(), refused);
      case StatusException refused -> ofStatus(refused.getStatus(), refused);
      default ->
          new CliException(
              Coterie.BUG,
              "unexpected "
                  + failure.getClass().getSimpleName()
                  + ": "
                  + Coterie.firstLine(failure.getMessage())
                  + ". Please report it.");
    };
  }

  private static CliException ofStatus(Status status, Throwable failure) {
    String said = text(status, failure);
    return switch (StatusErrors.code(failure)) {
      case UNAVAILABLE ->
          new CliException(
              Coterie.UNAVAILABLE,
              said
                  + ". Try again with the same request id; 'coterie doctor' checks the connection.");
      case DEADLINE_EXCEEDED ->
          new CliException(
              Coterie.UNAVAILABLE,
              said
                  + ". The work may go on: repeat with the same request id, or a longer --timeout.");
      case CANCELLED, RESOURCE_EXHAUSTED, ABORTED ->
          new CliException(Coterie.UNAVAILABLE, said + ". Try again with the same request id.");
      default -> new CliException(Coterie.REFUSED, said + advice(failure));
    };
  }

  /** What the error reference advises for the reason, if it is a known one. */
  private static String advice(Throwable failure) {
    ErrorInfo info = errorInfo(failure);
    if (info != null && info.getDomain().equals(ErrorReason.DOMAIN)) {
      for (ErrorReason known : ErrorReason.values()) {
        if (known.name().equals(info.getReason())) {
          return ". " + known.advice();
        }
      }
    }
    return "";
  }

  /** The stable reason and its facts if the service gave them, then its words, then the cause. */
  private static String text(Status status, Throwable failure) {
    ErrorInfo info = errorInfo(failure);
    String description = status.getDescription();
    StringBuilder text = new StringBuilder();
    text.append(
        info == null || info.getReason().isEmpty() ? status.getCode().name() : info.getReason());
    if (description != null && !description.isBlank()) {
      text.append(": ").append(Coterie.firstLine(description));
    }
    if (info != null && info.getMetadataCount() > 0) {
      text.append(
          info.getMetadataMap().entrySet().stream()
              .sorted(java.util.Map.Entry.comparingByKey())
              .map(e -> e.getKey() + "=" + e.getValue())
              .collect(Collectors.joining(", ", " (", ")")));
    }
    if (info == null && status.getCause() != null) {
      Throwable root = status.getCause();
      while (root.getCause() != null) {
        root = root.getCause();
      }
      text.append(" (").append(Coterie.firstLine(root.getMessage())).append(')');
    }
    return text.toString();
  }

  /** The {@code google.rpc.ErrorInfo} of a failed call. */
  static @Nullable ErrorInfo errorInfo(Throwable failure) {
    com.google.rpc.Status details = StatusProto.fromThrowable(failure);
    if (details != null) {
      for (Any detail : details.getDetailsList()) {
        if (detail.is(ErrorInfo.class)) {
          try {
            return detail.unpack(ErrorInfo.class);
          } catch (InvalidProtocolBufferException e) {
            return null;
          }
        }
      }
    }
    return null;
  }
}
