package io.coterie.coordinator.custody.presignature;

import io.coterie.coordinator.custody.presignature.PresignatureStock.Combination;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Presignature;
import java.util.ArrayDeque;
import java.util.Optional;

/** The state of one combination. Guarded by the stock. */
final class Shelf {
  /** One that is ready for use. */
  record Ready(Presignature presignature, long madeNanos) {}

  final Combination combination;

  /** Most that one session makes. */
  final int batch;

  final ArrayDeque<Ready> ready = new ArrayDeque<>();

  /** Requests that wait for presignatures that are being made; never more than these. */
  final ArrayDeque<Promise> promised = new ArrayDeque<>();

  int making;
  int wanted;
  long usedNanos;
  int failures;
  long pausedUntilNanos;

  Shelf(Combination combination, int batch, long nowNanos) {
    this.combination = combination;
    this.batch = batch;
    this.usedNanos = nowNanos;
    this.pausedUntilNanos = nowNanos;
  }

  /** Ready, and being made for requests to come. */
  int stock() {
    return ready.size() + making - promised.size();
  }

  /** Breaks the promises that cannot be kept with so many in the making. */
  void keepPromises(int making) {
    while (promised.size() > making) {
      promised.removeLast().made().complete(Optional.empty());
    }
  }

  /** Whether as many lack as one session makes. */
  boolean lacksASession() {
    return wanted - stock() >= Math.min(batch, wanted);
  }

  /** Whether one takes a party's processor for half a second and more. */
  boolean takesLong() {
    return combination.isOfPair();
  }

  double filled() {
    return (double) stock() / wanted;
  }
}
