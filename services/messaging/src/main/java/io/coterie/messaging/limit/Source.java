package io.coterie.messaging.limit;

import io.coterie.messaging.account.Accounts.Authenticated;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** The source whose share of the service a request or a connection uses up. */
public sealed interface Source {
  /** An account that has proved itself. */
  record OfAccount(UUID aci) implements Source {}

  /**
   * Everybody without credentials at one address.
   *
   * @param network an IPv4 address, or the first 64 bits of an IPv6 address, which is what one
   *     customer gets
   */
  record OfNetwork(String network) implements Source {}

  /** Bytes of an IPv6 address that name a network. */
  int IPV6_NETWORK_BYTES = 8;

  /**
   * @param who null for a client without credentials
   * @param address of the client, as text
   */
  static Source of(@Nullable Authenticated who, String address) {
    return who == null ? new OfNetwork(network(address)) : new OfAccount(who.account().aci());
  }

  private static String network(String address) {
    try {
      return InetAddress.ofLiteral(address) instanceof Inet6Address six
          ? HexFormat.of().formatHex(Arrays.copyOf(six.getAddress(), IPV6_NETWORK_BYTES))
          : address;
    } catch (IllegalArgumentException e) {
      // Not the address of a network, but of something that there is one of.
      return address;
    }
  }
}
