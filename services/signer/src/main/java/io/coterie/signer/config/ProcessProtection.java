package io.coterie.signer.config;

import io.coterie.mpc.NativeMpcCore;
import org.slf4j.LoggerFactory;

/** Keeps this process's memory out of core dumps and swap, as far as the platform lets it. */
public final class ProcessProtection {
  private ProcessProtection() {}

  /** To be called before any secret is in memory. */
  public static void apply() {
    NativeMpcCore.load().protectProcess();
  }

  /** Says in the log which protections are in force. */
  public static void log() {
    LoggerFactory.getLogger(ProcessProtection.class)
        .info("memory protections in force: {}", NativeMpcCore.load().protections());
  }
}
