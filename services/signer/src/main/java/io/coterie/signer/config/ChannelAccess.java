package io.coterie.signer.config;

import io.coterie.channel.ChannelAccount;
import io.coterie.channel.SecureChannel;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import java.io.IOException;
import java.util.Optional;
import java.util.function.BooleanSupplier;

/** How a party gets onto the secure channel, and what it is told out of band. */
interface ChannelAccess {
  /** Registers a new account with the one-time token. */
  ChannelAccount enrol() throws IOException;

  /** The keys that others must pin for this party. */
  Member member(ChannelAccount account, byte[] evidenceKey);

  /** Publishes the party's own entry, for the operator to collect. */
  void writeEntry(Member self) throws IOException;

  /** The trust file that the operator gave, if there is one yet; its signatures are checked. */
  Optional<SignedTrust> trust() throws IOException;

  /** A channel that is not started. */
  Opened open(ChannelAccount account, Roster roster) throws IOException;

  /**
   * @param connected whether messages can be sent and received now
   */
  record Opened(SecureChannel channel, BooleanSupplier connected) {}
}
