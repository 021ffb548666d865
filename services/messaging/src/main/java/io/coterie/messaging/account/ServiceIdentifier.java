package io.coterie.messaging.account;

import java.nio.ByteBuffer;
import java.util.Locale;
import java.util.Optional;
import java.util.UUID;
import java.util.regex.Pattern;
import org.signal.libsignal.protocol.ServiceId;

/**
 * The address of an account: its account identity (ACI) or its phone-number identity (PNI).
 *
 * @param kind which of the two
 * @param uuid the identifier
 */
public record ServiceIdentifier(IdentityType kind, UUID uuid) {
  private static final Pattern UUID_TEXT =
      Pattern.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}");
  private static final String PNI_PREFIX = "PNI:";
  private static final byte PNI_TAG = 1;

  /** {@code uuid} or {@code PNI:uuid}; empty if it is neither. */
  public static Optional<ServiceIdentifier> parse(String text) {
    IdentityType kind = text.startsWith(PNI_PREFIX) ? IdentityType.PNI : IdentityType.ACI;
    String uuid = kind == IdentityType.PNI ? text.substring(PNI_PREFIX.length()) : text;
    return UUID_TEXT.matcher(uuid).matches()
        ? Optional.of(new ServiceIdentifier(kind, UUID.fromString(uuid)))
        : Optional.empty();
  }

  /** The same identifier as libsignal writes it. */
  public static ServiceIdentifier of(ServiceId id) {
    return new ServiceIdentifier(
        id.getKind() == ServiceId.Kind.PNI ? IdentityType.PNI : IdentityType.ACI, id.getRawUUID());
  }

  /** Text form on the wire. */
  @Override
  public String toString() {
    String text = uuid.toString().toLowerCase(Locale.ROOT);
    return kind == IdentityType.PNI ? PNI_PREFIX + text : text;
  }

  /** Binary form on the wire: 16 bytes, with one leading type byte for a PNI. */
  public byte[] toBytes() {
    ByteBuffer out = ByteBuffer.allocate(kind == IdentityType.PNI ? 17 : 16);
    if (kind == IdentityType.PNI) {
      out.put(PNI_TAG);
    }
    return out.putLong(uuid.getMostSignificantBits())
        .putLong(uuid.getLeastSignificantBits())
        .array();
  }
}
