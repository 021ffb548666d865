package io.coterie.channel.keys;

import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.metadata.certificate.CertificateValidator;
import org.signal.libsignal.metadata.certificate.InvalidCertificateException;
import org.signal.libsignal.metadata.certificate.SenderCertificate;
import org.signal.libsignal.protocol.IdentityKey;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.ecc.ECPublicKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sender certificates: the own one, fetched and renewed, and those of others, verified.
 *
 * <p>A certificate from the messaging service proves nothing by itself, since the service is not
 * trusted: it must also carry the identity key that the roster pins. Verification costs two
 * signatures, so the last good one of each peer is remembered, byte for byte.
 */
public final class Certificates {
  private static final Logger LOG = LoggerFactory.getLogger(Certificates.class);

  /** An own certificate is renewed when less than this is left of it, or half its life. */
  private static final Duration RENEW = Duration.ofHours(1);

  /** Pause after a certificate could not be had. */
  private static final Duration RETRY = Duration.ofSeconds(1);

  /** The identity key that the roster pins for a peer, and its certificate that last verified. */
  public static final class Pinned {
    private final IdentityKey identity;
    private volatile @Nullable Verified last;

    public Pinned(IdentityKey identity) {
      this.identity = identity;
    }
  }

  private record Verified(byte[] certificate, long untilMs) {}

  private final Member self;
  private final CertificateValidator validator;
  private final Supplier<CompletableFuture<byte[]>> service;

  // Guarded by this.

  private @Nullable SenderCertificate own;

  /** For callers that came while there was no valid certificate. */
  private CompletableFuture<SenderCertificate> next = new CompletableFuture<>();

  private boolean fetching;
  private boolean closed;
  private long renewAtMs;

  /**
   * @param trustRoot the key under which certificates must verify
   * @param service asks the messaging service for a certificate of this member
   */
  public Certificates(Member self, byte[] trustRoot, Supplier<CompletableFuture<byte[]>> service) {
    this.self = self;
    this.service = service;
    try {
      this.validator = new CertificateValidator(new ECPublicKey(trustRoot));
    } catch (InvalidKeyException e) {
      throw new IllegalArgumentException("the trust root is not a public key", e);
    }
  }

  /** The own certificate, valid: at once, or when the service has given one. */
  public synchronized CompletableFuture<SenderCertificate> own() {
    SenderCertificate certificate = own;
    if (certificate != null && certificate.getExpiration() > System.currentTimeMillis()) {
      return CompletableFuture.completedFuture(certificate);
    }
    if (next.isDone() && !closed) {
      // It was completed with a certificate that has expired since.
      next = new CompletableFuture<>();
    }
    return next.copy();
  }

  /** Fetches the own certificate when there is none or it is due; one request at a time. */
  public void renew() {
    synchronized (this) {
      if (closed || fetching || System.currentTimeMillis() < renewAtMs) {
        return;
      }
      fetching = true;
    }
    fetch()
        .thenAccept(this::accept)
        .whenComplete(
            (done, failure) -> {
              synchronized (this) {
                fetching = false;
                if (failure != null) {
                  renewAtMs = System.currentTimeMillis() + RETRY.toMillis();
                }
              }
              if (failure != null) {
                String why = ChannelException.of(failure).getMessage();
                LOG.info("this member got no new sender certificate: {}", why);
              }
            });
  }

  private CompletableFuture<byte[]> fetch() {
    try {
      return service.get();
    } catch (RuntimeException | Error e) {
      // Any error ends here: the next request must not wait for the end of this one.
      return CompletableFuture.failedFuture(e);
    }
  }

  private void accept(byte[] bytes) {
    long now = System.currentTimeMillis();
    try {
      SenderCertificate certificate = new SenderCertificate(bytes);
      validator.validate(certificate, now);
      if (!certificate.getSenderUuid().equals(self.aci().toString())
          || certificate.getSenderDeviceId() != self.deviceId()
          || !Arrays.equals(certificate.getKey().serialize(), self.identityKey())) {
        throw new ChannelException(
            Cause.UNTRUSTED, "the messaging service certified another identity than this one");
      }
      long left = certificate.getExpiration() - now;
      CompletableFuture<SenderCertificate> waiting;
      synchronized (this) {
        renewAtMs = now + Math.max(left / 2, left - RENEW.toMillis());
        own = certificate;
        waiting = next;
      }
      waiting.complete(certificate);
    } catch (InvalidCertificateException e) {
      throw new ChannelException(
          Cause.UNTRUSTED, "the own sender certificate does not verify against the trust root", e);
    }
  }

  /** No certificate is fetched any more; callers that wait for one fail. */
  public void close() {
    CompletableFuture<SenderCertificate> waiting;
    synchronized (this) {
      closed = true;
      if (next.isDone()) {
        next = new CompletableFuture<>();
      }
      waiting = next;
    }
    waiting.completeExceptionally(new ChannelException(Cause.CLOSED, "the channel is closed"));
  }

  /**
   * Verifies the certificate of a message that claims to come from that peer.
   *
   * @return why it is refused, or null
   */
  public ChannelMetrics.@Nullable Rejection refusal(Pinned peer, SenderCertificate certificate) {
    long now = System.currentTimeMillis();
    byte[] bytes = certificate.getSerialized();
    Verified last = peer.last;
    if (last != null && now < last.untilMs && Arrays.equals(bytes, last.certificate)) {
      return null;
    }
    try {
      validator.validate(certificate, now);
    } catch (InvalidCertificateException e) {
      return ChannelMetrics.Rejection.CERTIFICATE;
    }
    if (!certificate.getKey().equals(peer.identity.getPublicKey())) {
      return ChannelMetrics.Rejection.IDENTITY;
    }
    peer.last = new Verified(bytes, certificate.getExpiration());
    return null;
  }
}
