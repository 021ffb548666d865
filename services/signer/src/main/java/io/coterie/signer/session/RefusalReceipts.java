package io.coterie.signer.session;

import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.limit.Rate;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.party.v1.Refused;
import io.coterie.signer.party.ProtocolCore;
import java.time.InstantSource;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives requesters this party's own word that it refused an order to sign, so that they need not
 * take a coordinator's. It promises nothing and nothing is stored for it. It costs a signature in
 * the lane of a session that makes none, for a known requester alone and at a rate, because a
 * coordinator can have any number of orders refused. Thread-safe.
 */
final class RefusalReceipts {
  private static final Logger log = LoggerFactory.getLogger(RefusalReceipts.class);

  /** Receipts of one requester that are given at once. */
  static final int BURST = 50;

  /** Receipts of one requester that are given each second after that. */
  static final int PER_SECOND = 10;

  /** Follows the detail of a refusal beyond the rate. */
  static final String TOO_MANY = "; without a receipt, since too many orders are refused";

  private final ProtocolCore core;
  private final int self;
  private final InstantSource clock;
  private final LongSupplier nanoTime;

  /** By requester: those that are configured here. */
  private final Map<String, Rate> rates = new ConcurrentHashMap<>();

  /**
   * @param self id of this party
   * @param nanoTime a clock that only goes forward
   */
  RefusalReceipts(ProtocolCore core, int self, InstantSource clock, LongSupplier nanoTime) {
    this.core = core;
    this.self = self;
    this.clock = clock;
    this.nanoTime = nanoTime;
  }

  /**
   * Adds the receipt to a refusal.
   *
   * @param request null if no requester is known to have signed for it: no work for strangers
   */
  void give(Receipts.@Nullable Refusable request, Refused.Builder refused) {
    if (request == null) {
      return;
    }
    long now = nanoTime.getAsLong();
    Rate rate = rates.computeIfAbsent(request.requester(), _ -> new Rate(BURST, PER_SECOND, now));
    if (!rate.take(now)) {
      refused.setDetail(refused.getDetail() + TOO_MANY);
      return;
    }
    Receipt receipt = Receipts.refused(request, refused.getReason(), clock.millis(), self);
    try {
      refused.setReceipt(Receipts.signed(receipt, core.signStatement(Receipts.statement(receipt))));
    } catch (RuntimeException e) {
      log.error("the receipt of a refusal could not be signed", e);
    }
  }
}
