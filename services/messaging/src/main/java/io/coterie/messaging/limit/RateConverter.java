package io.coterie.messaging.limit;

import io.coterie.messaging.limit.RateLimit.Rate;
import org.springframework.boot.context.properties.ConfigurationPropertiesBinding;
import org.springframework.core.convert.converter.Converter;

/** Reads {@code burst/perSecond} from configuration. */
@ConfigurationPropertiesBinding
public final class RateConverter implements Converter<String, Rate> {
  @Override
  public Rate convert(String source) {
    String[] parts = source.split("/", -1);
    if (parts.length != 2) {
      throw new IllegalArgumentException("a rate is written burst/perSecond, not '" + source + "'");
    }
    return new Rate(Integer.parseInt(parts[0].strip()), Double.parseDouble(parts[1].strip()));
  }
}
