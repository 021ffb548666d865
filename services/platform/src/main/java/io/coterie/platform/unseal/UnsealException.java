package io.coterie.platform.unseal;

import org.jspecify.annotations.Nullable;

/** The data key cannot be had. The text names files and causes, never what is in them. */
public final class UnsealException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public UnsealException(String message) {
    this(message, null);
  }

  public UnsealException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
