package io.coterie.signer.config;

import io.coterie.channel.ChannelAccount;
import io.coterie.channel.Member;
import io.coterie.channel.Roster;
import io.coterie.channel.SecureChannel;
import java.io.IOException;
import java.util.Optional;

/** How a party gets onto the secure channel, and what it is told out of band. */
public interface ChannelAccess {
  /** Registers a new account with the one-time token. */
  ChannelAccount enrol() throws IOException;

  /** The public identity key of an account, 33 bytes. */
  byte[] identityKey(ChannelAccount account);

  /** Publishes the party's own entry, for the operator to collect. */
  void writeEntry(Member self) throws IOException;

  /** The pinned members, if they are known yet. */
  Optional<Roster> roster() throws IOException;

  /** A channel that is not started. */
  SecureChannel open(ChannelAccount account, Roster roster);
}
