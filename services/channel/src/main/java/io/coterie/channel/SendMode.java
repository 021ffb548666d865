package io.coterie.channel;

/** How a broadcast travels. The two pairwise modes exist to compare against. */
public enum SendMode {
  /** One sealed-sender multi-recipient request, whatever the number of recipients. */
  GROUP,
  /** One pairwise message after another, each sent when the one before was accepted. */
  PAIRWISE_SEQUENTIAL,
  /** Pairwise messages, all in flight at once. */
  PAIRWISE_PARALLEL
}
