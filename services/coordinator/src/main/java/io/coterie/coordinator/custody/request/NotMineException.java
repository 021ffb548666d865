package io.coterie.coordinator.custody.request;

/** A request has become the work of another replica, which decides its end. */
final class NotMineException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  NotMineException(String message) {
    super(message, null, false, false);
  }
}
