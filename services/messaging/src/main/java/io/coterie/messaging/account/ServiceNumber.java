package io.coterie.messaging.account;

import java.util.regex.Pattern;

/** The form of the numbers that accounts register under. Nothing is ever sent to them. */
public final class ServiceNumber {
  private static final Pattern E164 = Pattern.compile("\\+[1-9][0-9]{6,14}");

  private ServiceNumber() {}

  public static boolean isValid(String number) {
    return E164.matcher(number).matches();
  }
}
