package io.coterie.cli.terminal;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import io.coterie.member.MemberException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** A failure as the user sees it: one line that says what to do, and the exit code. */
public final class CliException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Reasons with a code that asks for another attempt, although the request has ended. */
  private static final Set<ErrorReason> ENDED =
      EnumSet.of(
          ErrorReason.KEY_CREATION_FAILED,
          ErrorReason.REFRESH_FAILED,
          ErrorReason.RESHARE_FAILED,
          ErrorReason.OPERATION_CANCELLED);

  private final int exitCode;
  private final transient List<PartyRefusal> refusals;

  /**
   * A failure.
   *
   * @param exitCode one of {@link ExitCode}
   * @param message one line, with what the user can do
   */
  public CliException(int exitCode, String message) {
    this(exitCode, message, List.of());
  }

  /**
   * A failure that is said to come of refusals.
   *
   * @param exitCode one of {@link ExitCode}
   * @param message one line, with the refusals in words, and with what the user can do
   */
  public CliException(int exitCode, String message, List<PartyRefusal> refusals) {
    super(message);
    this.exitCode = exitCode;
    this.refusals = List.copyOf(refusals);
  }

  /** Something local that the user has to mend. */
  public static CliException local(String message) {
    return new CliException(ExitCode.LOCAL, message);
  }

  /** The exit code that the command ends with. */
  public int exitCode() {
    return exitCode;
  }

  /** The refusals that it comes of; for programs. */
  List<PartyRefusal> refusals() {
    return refusals;
  }

  @Override
  public String getMessage() {
    String message = super.getMessage();
    return message == null ? "" : message;
  }

  /** Any failure as the user sees it. */
  public static CliException of(Throwable failure) {
    return switch (failure) {
      case CliException known -> known;
      case StatusRuntimeException refused -> ofStatus(refused.getStatus(), refused);
      case StatusException refused -> ofStatus(refused.getStatus(), refused);
      case MemberException known -> new CliException(exitCode(known), known.getMessage());
      default ->
          new CliException(
              ExitCode.BUG,
              "unexpected "
                  + failure.getClass().getSimpleName()
                  + ": "
                  + firstLine(failure.getMessage())
                  + ". Please report it.");
    };
  }

  private static int exitCode(MemberException failure) {
    return switch (failure) {
      case MemberException.Folder _, MemberException.Unfit _ -> ExitCode.LOCAL;
      case MemberException.NotBelieved _,
          MemberException.RunAborted _,
          MemberException.TicketSpent _ ->
          ExitCode.REFUSED;
      case MemberException.RunUnanswered _ -> ExitCode.UNAVAILABLE;
      case MemberException.NotApproved _, MemberException.Unnamed _ -> ExitCode.NO;
    };
  }

  private static CliException ofStatus(Status status, Throwable failure) {
    String said = text(status, failure);
    // A certificate that one side does not accept is one after another attempt, too.
    if (isTls(status.getCause())) {
      return local(
          said + ". One side does not accept the other's certificate: 'coterie doctor' says more.");
    }
    ErrorReason reason = StatusErrors.reason(failure).orElse(null);
    if (reason != null && ENDED.contains(reason)) {
      return new CliException(ExitCode.REFUSED, said + ". " + reason.advice());
    }
    return switch (StatusErrors.code(failure)) {
      case UNAVAILABLE ->
          new CliException(
              ExitCode.UNAVAILABLE,
              said
                  + ". Try again with the same request id; 'coterie doctor' checks the connection.");
      case DEADLINE_EXCEEDED ->
          new CliException(
              ExitCode.UNAVAILABLE,
              said
                  + ". The work may go on: repeat with the same request id, or a longer --timeout.");
      case CANCELLED, RESOURCE_EXHAUSTED, ABORTED ->
          new CliException(
              ExitCode.UNAVAILABLE,
              said
                  + ". "
                  + (reason == null ? "Try again with the same request id." : reason.advice()));
      default ->
          new CliException(ExitCode.REFUSED, said + (reason == null ? "" : ". " + reason.advice()));
    };
  }

  /** The reason and words of a failed call, without advice. */
  public static String said(StatusRuntimeException failure) {
    return text(failure.getStatus(), failure);
  }

  private static boolean isTls(@Nullable Throwable cause) {
    for (Throwable at = cause; at != null; at = at.getCause()) {
      if (at instanceof SSLException) {
        return true;
      }
    }
    return false;
  }

  /** The stable reason and its facts if the service gave them, then its words, then the cause. */
  private static String text(Status status, Throwable failure) {
    ErrorInfo info = errorInfo(failure);
    String description = status.getDescription();
    StringBuilder text = new StringBuilder();
    text.append(
        info == null || info.getReason().isEmpty() ? status.getCode().name() : info.getReason());
    if (description != null && !description.isBlank()) {
      text.append(": ").append(firstLine(description));
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
      text.append(" (").append(firstLine(root.getMessage())).append(')');
    }
    return text.toString();
  }

  /** The first line of another's text, without its full stop. */
  public static String firstLine(@Nullable String text) {
    String line = (text == null ? "" : text).lines().findFirst().orElse("").strip();
    return line.endsWith(".") ? line.substring(0, line.length() - 1) : line;
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
