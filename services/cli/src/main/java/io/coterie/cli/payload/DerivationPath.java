package io.coterie.cli.payload;

import io.coterie.platform.bip32.ExtendedPublicKey;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** A BIP-32 path without hardened steps, such as {@code m/0/1}. */
public final class DerivationPath implements ITypeConverter<DerivationPath> {
  private final List<Integer> numbers;

  /** The key itself. */
  DerivationPath() {
    this(List.of());
  }

  private DerivationPath(List<Integer> numbers) {
    this.numbers = List.copyOf(numbers);
  }

  /** The number of each step. */
  public List<Integer> numbers() {
    return numbers;
  }

  @Override
  public DerivationPath convert(String text) {
    List<Integer> parsed = new ArrayList<>();
    String[] steps = text.split("/", -1);
    for (int i = steps[0].equals("m") ? 1 : 0; i < steps.length; i++) {
      if (steps[i].endsWith("'") || steps[i].endsWith("h") || steps[i].endsWith("H")) {
        throw new TypeConversionException(
            "'" + text + "' has a hardened step, which a key without a private half cannot take");
      }
      try {
        parsed.add(Integer.parseUnsignedInt(steps[i], 10));
      } catch (NumberFormatException e) {
        throw new TypeConversionException("'" + text + "' is not a path such as m/0/1");
      }
      if (parsed.getLast() < 0 || steps[i].startsWith("+")) {
        throw new TypeConversionException("'" + text + "' is not a path such as m/0/1");
      }
    }
    if (parsed.size() > ExtendedPublicKey.MAX_DEPTH) {
      throw new TypeConversionException(
          "'" + text + "' has more than " + ExtendedPublicKey.MAX_DEPTH + " steps");
    }
    return new DerivationPath(parsed);
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("m");
    numbers.forEach(n -> text.append('/').append(n));
    return text.toString();
  }
}
