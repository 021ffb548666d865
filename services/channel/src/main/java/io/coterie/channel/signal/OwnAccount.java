package io.coterie.channel.signal;

import io.coterie.channel.ChannelAccount;
import io.coterie.channel.ChannelException;
import io.coterie.channel.keys.AccessKey;
import io.coterie.channel.link.Messaging;
import io.coterie.trust.Roster;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * This member's account at the messaging service. Its access key follows from the roster: it is
 * first set at the account and then told to the peers, so that none uses it too early.
 */
final class OwnAccount {
  private static final Logger LOG = LoggerFactory.getLogger(OwnAccount.class);

  private final ChannelAccount account;
  private final IdentityKeyPair identity;

  /** The key that the account should have. */
  private volatile AccessKey wanted;

  /** The key that peers are told. */
  private volatile AccessKey told;

  /** The key that the account is known to have. */
  private volatile @Nullable AccessKey accepted;

  /** Guards what follows. */
  private final Object turns = new Object();

  /** The newest request to set it, and the one before. One follows the other: the last one wins. */
  private CompletableFuture<Boolean> newest = CompletableFuture.completedFuture(false);

  private CompletableFuture<Boolean> before = newest;

  /**
   * @throws IllegalArgumentException when the identity key pair is not readable
   */
  OwnAccount(ChannelAccount account, Roster roster) {
    this.account = account;
    try {
      this.identity = new IdentityKeyPair(account.identityKeyPair());
    } catch (InvalidKeyException e) {
      throw new IllegalArgumentException("the identity key pair of the account is damaged", e);
    }
    this.wanted = AccessKey.of(identity, roster);
    this.told = wanted;
  }

  IdentityKeyPair identity() {
    return identity;
  }

  /** The access key, as peers are told. */
  AccessKey accessKey() {
    return told;
  }

  /** Wants the access key for that roster; {@link #publish} makes it so. */
  void follow(Roster roster) {
    wanted = AccessKey.of(identity, roster);
  }

  /** Whether the account does not have the access key that it should, and nothing is under way. */
  boolean unpublished() {
    synchronized (turns) {
      return newest.isDone() && !wanted.equals(accepted);
    }
  }

  /**
   * Sets the access key at the account, also if it was set before: the service may have been put
   * back.
   *
   * @return completes when the service has answered, with whether peers must be told another key
   */
  CompletableFuture<Boolean> publish(Messaging messaging) {
    CompletableFuture<Boolean> own = new CompletableFuture<>();
    CompletableFuture<Boolean> last;
    synchronized (turns) {
      if (!newest.isDone() && !before.isDone()) {
        // It has not begun, and sets what is wanted when it does: however often the service is
        // asked while it does not answer, two requests are all there is.
        return newest;
      }
      last = newest;
      before = last;
      newest = own;
    }
    // Without the lock, because the request may have to wait for the socket.
    last.thenCompose(done -> set(messaging, wanted))
        .whenComplete((news, failure) -> own.complete(failure == null && news));
    return own;
  }

  private CompletableFuture<Boolean> set(Messaging messaging, AccessKey key) {
    return messaging
        .setAccessKey(account.registrationId(), key)
        .handle(
            (done, failure) -> {
              if (failure != null) {
                accepted = null;
                String why = ChannelException.of(failure).getMessage();
                LOG.info("this member could not set its access key: {}", why);
                return false;
              }
              accepted = key;
              boolean news = !key.equals(told);
              told = key;
              return news;
            });
  }

  /** Value of the Authorization header. */
  byte[] authorization() {
    byte[] user =
        (account.aci() + "." + account.deviceId() + ":").getBytes(StandardCharsets.US_ASCII);
    byte[] credentials = Arrays.copyOf(user, user.length + account.password().length);
    System.arraycopy(account.password(), 0, credentials, user.length, account.password().length);
    byte[] encoded = Base64.getEncoder().encode(credentials);
    Arrays.fill(credentials, (byte) 0);
    byte[] scheme = "Basic ".getBytes(StandardCharsets.US_ASCII);
    byte[] value = Arrays.copyOf(scheme, scheme.length + encoded.length);
    System.arraycopy(encoded, 0, value, scheme.length, encoded.length);
    Arrays.fill(encoded, (byte) 0);
    return value;
  }
}
