package io.coterie.signer.claim;

import java.io.IOException;

/**
 * A number outside a party's store, by which the party notices at its start that the store went
 * back although nobody has told it: all parties at once, say, or with a network that is hostile as
 * well.
 *
 * <p>The contract. The number belongs to one party. It never becomes less, whoever restarts,
 * restores or moves the volume of the party's store: an attacker that can put both back together
 * gets past it. {@link #raise} has returned only when the number is at least that high for good. A
 * counter that cannot be reached says so by an exception; the party does not start without it.
 * Calls come from one thread at a time.
 */
public interface OutsideCounter {
  /** No counter. */
  OutsideCounter NONE =
      new OutsideCounter() {
        @Override
        public long read() {
          return 0;
        }

        @Override
        public void raise(long least) {
          // Nothing remembers it.
        }
      };

  /** The number; 0 if it was never raised. */
  long read() throws IOException;

  /** Makes the number at least so high. */
  void raise(long least) throws IOException;
}
