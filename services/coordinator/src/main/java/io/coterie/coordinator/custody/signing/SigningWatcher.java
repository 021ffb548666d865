package io.coterie.coordinator.custody.signing;

/**
 * Someone who wants to know about every change of a signing. Called on the thread that makes it.
 */
public interface SigningWatcher {
  void changed(SigningRecord record);

  /** This replica stops and will not tell any more. */
  void stopping();
}
