package io.coterie.simulation;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/** A port of a signer of which some methods do something else. */
final class Port {
  private Port() {}

  /** The method as it is. */
  @FunctionalInterface
  interface Real {
    @Nullable Object call(@Nullable Object... arguments);

    /** The same, of a method that answers later. */
    @SuppressWarnings("unchecked")
    default <T> CompletionStage<T> later(@Nullable Object... arguments) {
      Object answer = call(arguments);
      if (answer == null) {
        throw new IllegalStateException("no answer");
      }
      return (CompletionStage<T>) answer;
    }
  }

  /** Takes the place of a method. */
  @FunctionalInterface
  interface Instead {
    @Nullable Object call(Real real, Object[] arguments);
  }

  /**
   * Puts others in the place of methods.
   *
   * @param instead by name of the method; each must be there
   */
  static <T> T with(Class<T> type, T port, Map<String, Instead> instead) {
    instead
        .keySet()
        .forEach(
            name -> {
              if (Arrays.stream(type.getMethods()).noneMatch(m -> m.getName().equals(name))) {
                throw new IllegalArgumentException(type + " has no method " + name);
              }
            });
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, given) -> {
              Object[] arguments = given == null ? new Object[0] : given;
              if (!instead.containsKey(method.getName()) && isDefault(method, port)) {
                // It calls others, which may have something else in their place.
                return InvocationHandler.invokeDefault(proxy, method, arguments);
              }
              Real real =
                  with -> {
                    try {
                      return method.invoke(port, with);
                    } catch (InvocationTargetException e) {
                      throw new Failed(e.getCause());
                    } catch (IllegalAccessException e) {
                      throw new IllegalStateException(e);
                    }
                  };
              Instead other = instead.get(method.getName());
              try {
                return other == null ? real.call(arguments) : other.call(real, arguments);
              } catch (Failed e) {
                throw e.getCause() == null ? e : e.getCause();
              }
            }));
  }

  /** Takes the place of a method of a port that has no other. */
  @FunctionalInterface
  interface Only {
    @Nullable Object call(Object[] arguments);
  }

  /**
   * A port that has a few methods alone.
   *
   * @param methods by name; any other one fails
   */
  static <T> T only(Class<T> type, Map<String, Only> methods) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (_, method, given) -> {
              Only only = methods.get(method.getName());
              if (only == null) {
                throw new UnsupportedOperationException(method.getName());
              }
              return only.call(given == null ? new Object[0] : given);
            }));
  }

  private static boolean isDefault(Method method, Object port) throws NoSuchMethodException {
    return port.getClass().getMethod(method.getName(), method.getParameterTypes()).isDefault();
  }

  /** Carries what a method threw. */
  private static final class Failed extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Failed(@Nullable Throwable cause) {
      super(cause);
    }
  }
}
