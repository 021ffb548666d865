package io.coterie.signer.session;

import java.util.ArrayList;
import java.util.List;

/** Places of one session, in the order in which it took them. Touched by its lane alone. */
final class HeldPlaces implements AutoCloseable {
  private final List<Runnable> returns = new ArrayList<>();

  /**
   * Keeps a place until {@link #close}.
   *
   * @param giveBack frees the place; run once
   */
  void add(Runnable giveBack) {
    returns.add(giveBack);
  }

  /** Gives back all places that are held now. Further calls give back nothing. */
  @Override
  public void close() {
    List<Runnable> all = List.copyOf(returns);
    returns.clear();
    all.forEach(Runnable::run);
  }
}
