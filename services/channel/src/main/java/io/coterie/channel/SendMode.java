package io.coterie.channel;

/** How a broadcast travels. All but {@link #GROUP} exist to compare against. */
public enum SendMode {
  /** One sealed-sender multi-recipient request, whatever the number of recipients. */
  GROUP,
  /** One pairwise message after another, each sent when the one before was accepted. */
  PAIRWISE_SEQUENTIAL,
  /** Pairwise messages, all in flight at once. */
  PAIRWISE_PARALLEL,
  /**
   * One pairwise message after another, each with the sender's name, over a REST call of its own,
   * stored by the messaging service: how prototypes without sealed sender and WebSocket send.
   */
  NAMED_STORED;

  /**
   * Refuses a mode that tells messaging who sends, unless that is what is wanted.
   *
   * @param measured whether the service runs to be measured, and for nothing else
   * @throws IllegalArgumentException saying so
   */
  public void requireFor(boolean measured) {
    if (this == NAMED_STORED && !measured) {
      throw new IllegalArgumentException(
          "channel.send-mode "
              + this
              + " tells messaging who sends: only where channel.measured is true");
    }
  }
}
