package io.coterie.messaging.limit;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Optional;
import java.util.UUID;

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

  /** Everybody without credentials at an address; empty if the text is not one. */
  static Optional<Source> ofLiteral(String address) {
    try {
      InetAddress literal = InetAddress.ofLiteral(address);
      return Optional.of(
          new OfNetwork(
              literal instanceof Inet6Address six
                  ? HexFormat.of().formatHex(Arrays.copyOf(six.getAddress(), IPV6_NETWORK_BYTES))
                  : literal.getHostAddress()));
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  /**
   * Everybody without credentials at the other end of a connection.
   *
   * @param address as the system names it; something else than an IP address names something that
   *     there is one of
   */
  static Source ofRemote(String address) {
    return ofLiteral(address).orElseGet(() -> new OfNetwork(address));
  }
}
