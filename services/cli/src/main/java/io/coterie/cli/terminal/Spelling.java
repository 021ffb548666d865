package io.coterie.cli.terminal;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.Scheme;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Names and bytes as people write and read them on the command line. */
public final class Spelling {
  private static final Pattern HEX = Pattern.compile("(0x)?([0-9a-fA-F]{2})*");

  private Spelling() {}

  /** {@code treasury} and {@code keys/treasury} mean the same key. */
  public static String keyName(String key) {
    return key.startsWith("keys/") ? key : "keys/" + key;
  }

  /** {@code approvers} and {@code groups/approvers} mean the same group. */
  public static String groupName(String group) {
    return group.startsWith("groups/") ? group : "groups/" + group;
  }

  /** A scheme as {@code ecdsa-secp256k1}. */
  public static String scheme(Scheme scheme) {
    return scheme.name().replaceFirst("^SCHEME_", "").toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /**
   * {@code ecdsa-secp256k1}, in either spelling of the dash, or without its curve.
   *
   * @throws CliException naming all schemes if it is none of them
   */
  public static Scheme parseScheme(String scheme) {
    String name = scheme.toLowerCase(Locale.ROOT).replace('_', '-');
    return schemes()
        .filter(
            known -> {
              String whole = scheme(known);
              return name.equals(whole) || name.equals(whole.replaceFirst("-.*", ""));
            })
        .findFirst()
        .orElseThrow(
            () ->
                CliException.local(
                    "scheme '"
                        + scheme
                        + "' is not known; there are: "
                        + schemes().map(Spelling::scheme).collect(Collectors.joining(", "))));
  }

  private static Stream<Scheme> schemes() {
    return Arrays.stream(Scheme.values())
        .filter(s -> s != Scheme.UNRECOGNIZED && s != Scheme.SCHEME_UNSPECIFIED);
  }

  /** The schemes as they are written, for help and completion. */
  public static final class Schemes implements Iterable<String> {
    @Override
    public Iterator<String> iterator() {
      return schemes().map(Spelling::scheme).iterator();
    }
  }

  /**
   * Bytes as this command prints them: hexadecimal, or the base64 of {@code -o json}.
   *
   * @param what name of the value, for the error
   * @throws CliException if it is neither
   */
  public static byte[] parseBytes(String what, String text) {
    if (HEX.matcher(text.strip()).matches()) {
      return parseHex(what, text);
    }
    try {
      return Base64.getDecoder().decode(text.strip());
    } catch (IllegalArgumentException e) {
      throw CliException.local(what + " is neither hex nor base64");
    }
  }

  /**
   * The fingerprint of a key, as {@code --fingerprint} gives it.
   *
   * @throws CliException if it is none
   */
  public static ByteString parseFingerprint(String text) {
    byte[] bytes = parseBytes("--fingerprint", text.replace(" ", ""));
    if (bytes.length != IntentVerifier.FINGERPRINT_BYTES) {
      throw CliException.local("--fingerprint is not 16 bytes: take it from 'coterie keys get'");
    }
    return ByteString.copyFrom(bytes);
  }

  /**
   * Bytes from hexadecimal, with {@code 0x} before it or not.
   *
   * @param what name of the value, for the error
   * @throws CliException if it is none
   */
  public static byte[] parseHex(String what, String hex) {
    try {
      return HexFormat.of().parseHex(hex.strip().replaceFirst("^0x", ""));
    } catch (IllegalArgumentException e) {
      throw CliException.local(what + " is not hex");
    }
  }
}
