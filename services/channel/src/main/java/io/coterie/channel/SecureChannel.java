package io.coterie.channel;

import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.Collection;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Authenticated, end-to-end encrypted messages between the members of a roster. Thread-safe.
 * Sending never blocks the caller on the network.
 */
public interface SecureChannel extends AutoCloseable {

  /** This member. */
  Member self();

  /** Everyone this channel talks to, this member included. */
  Roster roster();

  /**
   * Registers the receiver. Called once, before {@link #start}. The receiver runs on the channel's
   * own threads, messages of one sender in order; it must not block.
   */
  void onMessage(Consumer<InboundMessage> receiver);

  /**
   * Connects, uploads fresh prekeys, and opens sessions and sender keys with every member that can
   * be reached.
   */
  void start();

  /**
   * Completes when sender keys have been exchanged, in both directions, with all of {@code
   * members}; fails with CLOSED once the channel is closed, and with UNTRUSTED for a member that is
   * not, or no longer, in the roster.
   */
  CompletionStage<Void> established(Collection<Member> members);

  /**
   * Members with which sender keys have been exchanged in both directions, and of which something
   * was heard lately: a heartbeat comes every few seconds.
   */
  Set<Member> reachable();

  /**
   * Sends one body to several members, in the configured {@link SendMode}. Private content does not
   * belong here: every member of the roster holds the sender key.
   *
   * @return completes when messaging has accepted it for all recipients; fails with {@link
   *     ChannelException}
   */
  CompletionStage<Void> broadcast(Collection<Member> recipients, byte[] body, SendOptions options);

  /** Sends one body to one member, under the pairwise session alone. */
  CompletionStage<Void> send(Member recipient, byte[] body, SendOptions options);

  /**
   * How a message is to be handled.
   *
   * @param online drop it if the recipient does not fetch it within ten seconds; otherwise it is
   *     stored
   * @param traceparent W3C trace context to hand on
   */
  record SendOptions(boolean online, @Nullable String traceparent) {
    /** Not stored: right for everything that belongs to a live session. */
    public static SendOptions online(@Nullable String traceparent) {
      return new SendOptions(true, traceparent);
    }

    /** The same, but stored until fetched. */
    public SendOptions asStored() {
      return stored(traceparent);
    }

    /** Stored until fetched. */
    public static SendOptions stored(@Nullable String traceparent) {
      return new SendOptions(false, traceparent);
    }
  }

  @Override
  void close();
}
