package io.coterie.coordinator.custody.request;

/**
 * The database did not do what it was asked, and may do it later. Nothing is known to have changed.
 */
public final class StoreUnavailableException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public StoreUnavailableException(String message, Throwable cause) {
    super(message, cause);
  }

  public StoreUnavailableException(String message) {
    super(message);
  }
}
