package io.coterie.acceptance;

import io.coterie.mpc.MpcCore;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * Puts something around the native core of the services that have a property set. Subclasses are
 * named in META-INF/spring.factories of the tests.
 */
abstract class WrappedCore
    implements ApplicationContextInitializer<ConfigurableApplicationContext> {
  private final String property;
  private final UnaryOperator<MpcCore> wrap;

  WrappedCore(String property, UnaryOperator<MpcCore> wrap) {
    this.property = property;
    this.wrap = wrap;
  }

  @Override
  public void initialize(ConfigurableApplicationContext context) {
    if (context.getEnvironment().getProperty(property, Boolean.class, false)) {
      context
          .getBeanFactory()
          .addBeanPostProcessor(
              new BeanPostProcessor() {
                @Override
                public Object postProcessAfterInitialization(Object bean, String name) {
                  if (bean instanceof Supplier<?> core && name.equals("nativeCore")) {
                    return (Supplier<MpcCore>) () -> wrap.apply((MpcCore) core.get());
                  }
                  return bean instanceof MpcCore core ? wrap.apply(core) : bean;
                }
              });
    }
  }
}
