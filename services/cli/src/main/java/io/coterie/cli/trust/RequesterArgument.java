package io.coterie.cli.trust;

import io.coterie.cli.terminal.CliException;
import io.coterie.platform.intent.Requester;
import io.coterie.platform.intent.RequesterKeys;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Trust;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * A requester of the trust file as the command line gives it: {@code
 * NAME=FILE[,FILE]...,may=RIGHT[,may=RIGHT]...,min-threshold=N,min-parties=N[,keys=GLOB]...}.
 */
final class RequesterArgument {
  private static final Pattern NUMBER = Pattern.compile("[1-9][0-9]{0,3}");

  private final String name;
  private final List<byte[]> publicKeys = new ArrayList<>();
  private final List<Glob> keys = new ArrayList<>();
  private final Set<KeyRight> rights = EnumSet.noneOf(KeyRight.class);
  private int minThreshold;
  private int minParties;
  private boolean signs;

  private RequesterArgument(String name) {
    this.name = name;
  }

  /**
   * Reads an argument and the files that it names.
   *
   * @throws CliException saying what is wrong with it
   */
  static Trust.Requester parse(String argument) {
    int equals = argument.indexOf('=');
    if (argument.lines().count() != 1
        || equals < 0
        || equals == argument.length() - 1
        || !Requester.isName(argument.substring(0, equals))) {
      throw CliException.local(
          "--requester "
              + argument.replaceAll("\\R", " ")
              + " is not NAME=FILE[,FILE]...[,OPTION=VALUE]...");
    }
    RequesterArgument read = new RequesterArgument(argument.substring(0, equals));
    for (String option : argument.substring(equals + 1).split(",", -1)) {
      read.add(option);
    }
    return read.requester();
  }

  private void add(String option) {
    String value = option.substring(option.indexOf('=') + 1);
    switch (option.substring(0, option.length() - value.length())) {
      case "min-threshold=" -> minThreshold = number(option, value);
      case "min-parties=" -> minParties = number(option, value);
      case "may=" -> {
        signs |= value.equals("sign");
        if (!value.equals("sign")) {
          rights.add(right(option, value));
        }
      }
      case "keys=" -> {
        try {
          keys.add(Glob.ofKeys(value));
        } catch (IllegalArgumentException e) {
          throw wrong(option, "keys=keys/..., with * for any text");
        }
      }
      default -> publicKeys.add(publicKey(Path.of(option)));
    }
  }

  private int number(String option, String value) {
    if (!NUMBER.matcher(value).matches()) {
      throw wrong(option, "1 to 9999");
    }
    return Integer.parseInt(value);
  }

  private KeyRight right(String option, String value) {
    return EnumSet.allOf(KeyRight.class).stream()
        .filter(right -> right.name().toLowerCase(Locale.ROOT).equals(value))
        .findFirst()
        .orElseThrow(
            () ->
                wrong(
                    option,
                    "may=sign, may=create, may=import, may=refresh, may=reshare or" + " may=open"));
  }

  private CliException wrong(String option, String expected) {
    return CliException.local(option + " of requester " + name + " is not " + expected);
  }

  /** The X.509 form of the one public key of a PEM file. */
  static byte[] publicKey(Path file) {
    try {
      String pem = new String(Files.readAllBytes(file), StandardCharsets.US_ASCII);
      return RequesterKeys.publicKey(pem).getEncoded();
    } catch (IOException e) {
      throw CliException.local("there is no file " + file + " with a public key");
    } catch (IllegalArgumentException e) {
      throw CliException.local(file + ": " + e.getMessage());
    }
  }

  private Trust.Requester requester() {
    if (publicKeys.isEmpty()) {
      throw CliException.local("requester " + name + " has no file with a public key");
    }
    if (rights.isEmpty() && !signs) {
      throw CliException.local(
          "requester "
              + name
              + ": say with may=create, may=import, may=refresh, may=reshare and may=open what it may ask for,"
              + " or with may=sign that it asks for signatures alone");
    }
    if (Set.of(KeyRight.OPEN).containsAll(rights) && minThreshold == 0 && minParties == 0) {
      // The bounds are of keys that it creates or reshares.
      minThreshold = 1;
      minParties = 1;
    }
    if (minThreshold == 0 || minParties == 0) {
      throw CliException.local(
          "requester "
              + name
              + ": give min-threshold=N, above the number of parties that may be corrupt at once,"
              + " and min-parties=N");
    }
    if (minThreshold > minParties) {
      throw CliException.local(
          "requester %s: min-threshold %d is above min-parties %d"
              .formatted(name, minThreshold, minParties));
    }
    List<Glob> patterns = keys.isEmpty() ? List.of(new Glob("keys/*")) : keys;
    return new Trust.Requester(name, publicKeys, patterns, rights, minThreshold, minParties);
  }
}
