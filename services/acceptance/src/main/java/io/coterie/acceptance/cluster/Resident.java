package io.coterie.acceptance.cluster;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.Lifecycle;

/**
 * The process of a service that is stopped and started many times: it stays, so that what its
 * compiler has learnt is not lost with every restart. Takes lines {@code start}, with arguments
 * after tabs, {@code stop}, and {@code leave} and {@code join} for what the service does, without
 * the service around it; answers each with {@code done}, or with why not. Ends with its standard
 * input.
 */
public final class Resident {
  static final String START = "start";
  static final String STOP = "stop";
  static final String LEAVE = "leave";
  static final String JOIN = "join";
  static final String DONE = "done";

  private Resident() {}

  /**
   * @param args name of the application's class, which has {@code start(String...)}
   */
  public static void main(String[] args) throws IOException {
    PrintStream answers = System.out;
    System.setOut(System.err);
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    ConfigurableApplicationContext context = null;
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      try {
        context = act(args[0], context, line.split("\t"));
        answers.println(DONE);
      } catch (ReflectiveOperationException | RuntimeException e) {
        Throwable cause = e instanceof InvocationTargetException ? e.getCause() : e;
        answers.println(String.valueOf(cause).replace('\n', ' '));
      }
    }
    System.exit(0);
  }

  private static @Nullable ConfigurableApplicationContext act(
      String application, @Nullable ConfigurableApplicationContext context, String[] words)
      throws ReflectiveOperationException {
    if (words[0].equals(START) && context == null) {
      String[] arguments = Arrays.copyOfRange(words, 1, words.length);
      return (ConfigurableApplicationContext)
          Class.forName(application)
              .getMethod("start", String[].class)
              .invoke(null, (Object) arguments);
    }
    if (words[0].equals(STOP) && context != null) {
      context.close();
      return null;
    }
    if (words[0].equals(LEAVE) && context != null) {
      ownLifecycles(context).forEach(Lifecycle::stop);
      return context;
    }
    if (words[0].equals(JOIN) && context != null) {
      ownLifecycles(context).forEach(Lifecycle::start);
      return context;
    }
    throw new IllegalStateException("not now: " + words[0]);
  }

  private static List<Lifecycle> ownLifecycles(ConfigurableApplicationContext context) {
    return context.getBeansOfType(Lifecycle.class).values().stream()
        .filter(bean -> bean.getClass().getName().startsWith("io.coterie."))
        .toList();
  }
}
