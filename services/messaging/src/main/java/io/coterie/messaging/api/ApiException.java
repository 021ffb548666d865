package io.coterie.messaging.api;

/** Ends a call with a status other than 2xx. Costs no stack trace: it is an ordinary outcome. */
public final class ApiException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private final transient ApiResponse response;

  public ApiException(ApiResponse response) {
    super("status " + response.status(), null, false, false);
    this.response = response;
  }

  public static ApiException status(int status) {
    return new ApiException(ApiResponse.empty(status));
  }

  /** Cannot be read. */
  public static ApiException badRequest() {
    return status(400);
  }

  public static ApiException unauthorized() {
    return status(401);
  }

  public static ApiException forbidden() {
    return status(403);
  }

  public static ApiException notFound() {
    return status(404);
  }

  public static ApiException tooLarge() {
    return status(413);
  }

  /** Can be read, but a value is not acceptable. */
  public static ApiException unprocessable() {
    return status(422);
  }

  public ApiResponse response() {
    return response;
  }
}
