package io.coterie.messaging.account;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Optional;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The proof of a device: its name {@code {aci}.{deviceId}}, where no suffix means device 1, and its
 * password.
 */
public record Credentials(UUID aci, int deviceId, String password) {
  private static final int MAX_HEADER_LENGTH = 1024;
  private static final String SCHEME = "Basic ";
  private static final Pattern LOGIN =
      Pattern.compile("([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?:\\.(\\d{1,3}))?");

  /** User and password of a Basic authorization. */
  public record Basic(String user, String password) {
    @Override
    public String toString() {
      return "Basic[redacted]";
    }
  }

  /** The user and password in an Authorization header; empty if it is malformed. */
  public static Optional<Basic> basic(String header) {
    if (header.length() > MAX_HEADER_LENGTH
        || !header.regionMatches(true, 0, SCHEME, 0, SCHEME.length())) {
      return Optional.empty();
    }
    String decoded;
    try {
      decoded =
          new String(
              Base64.getDecoder().decode(header.substring(SCHEME.length()).strip()),
              StandardCharsets.UTF_8);
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
    int colon = decoded.indexOf(':');
    return colon < 1
        ? Optional.empty()
        : Optional.of(new Basic(decoded.substring(0, colon), decoded.substring(colon + 1)));
  }

  /** The credentials of a device; empty if the user is not of a device's form. */
  public static Optional<Credentials> of(Basic basic) {
    Matcher login = LOGIN.matcher(basic.user());
    if (!login.matches() || basic.password().length() > PasswordHash.MAX_PASSWORD_LENGTH) {
      return Optional.empty();
    }
    int device = login.group(2) == null ? Device.PRIMARY_ID : Integer.parseInt(login.group(2));
    return device < Device.PRIMARY_ID || device > Device.MAX_ID
        ? Optional.empty()
        : Optional.of(new Credentials(UUID.fromString(login.group(1)), device, basic.password()));
  }

  @Override
  public String toString() {
    return "Credentials[" + aci + "." + deviceId + "]";
  }
}
