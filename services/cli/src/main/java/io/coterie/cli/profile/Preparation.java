package io.coterie.cli.profile;

import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import java.io.IOException;
import java.math.BigDecimal;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.security.spec.ECGenParameterSpec;
import java.util.List;

/**
 * The first connection of a process initialises many classes and the tables of a curve. A thread
 * begins with that while another one reads the command line and the files.
 */
public final class Preparation {
  private Preparation() {}

  /** Begins; nobody needs to wait for the end, because a class waits for its own initialisation. */
  public static void begin() {
    Thread.ofPlatform().daemon().name("preparation").start(Preparation::run);
  }

  private static void run() {
    try {
      KeyPairGenerator curve = KeyPairGenerator.getInstance("EC");
      curve.initialize(new ECGenParameterSpec("secp256r1"));
      // Makes the JDK's table of multiples, which TLS and certificates use.
      curve.generateKeyPair();
      // A channel connects when it is used, and this one is not.
      ChannelCredentials nobody = TlsFiles.trustingNobody();
      Grpc.newChannelBuilder("localhost:1", nobody).build().shutdownNow();
      // Of each certificate the JDK looks whether it is of a public authority, and reads all of
      // them.
      Class.forName("sun.security.util.AnchorCertificates");
      // An answer is searched for unknown fields by the descriptors of its messages.
      Object unused =
          List.of(
              // Its table of powers, which the reader of JSON needs.
              BigDecimal.ONE,
              Key.getDefaultInstance().getAllFields(),
              KeyPublic.getDefaultInstance().getAllFields());
    } catch (IOException | GeneralSecurityException | ClassNotFoundException | RuntimeException e) {
      // The connection itself says so, if it fails too.
    }
  }
}
