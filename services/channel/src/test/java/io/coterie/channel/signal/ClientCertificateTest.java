package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.channel.ClientCertificate;
import io.coterie.channel.link.PinnedTls;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.io.StringWriter;
import java.net.InetAddress;
import java.security.KeyPair;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.openssl.jcajce.JcaPKCS8Generator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The certificate that all parties of an installation show at its edge. */
class ClientCertificateTest {
  /** An authority with one certificate. */
  private record Issued(X509Certificate authority, X509Certificate certificate, KeyPair keys) {
    static Issued byAnAuthorityOfItsOwn(String name) throws Exception {
      KeyPair ca = TestServer.ecKeys();
      KeyPair own = TestServer.ecKeys();
      String issuer = "CN=CA of " + name;
      return new Issued(
          TestServer.certificate(issuer, ca, issuer, ca, true),
          TestServer.certificate("CN=" + name, own, issuer, ca, false),
          own);
    }

    ClientCertificate client() throws Exception {
      return new ClientCertificate(
          pem(certificate), pem(new JcaPKCS8Generator(keys.getPrivate(), null).generate()));
    }
  }

  private static String pem(Object object) throws IOException {
    StringWriter text = new StringWriter();
    try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
      writer.writeObject(object);
    }
    return text.toString();
  }

  private final Issued server = Issued.byAnAuthorityOfItsOwn("localhost");
  private final Issued parties = Issued.byAnAuthorityOfItsOwn("parties");

  ClientCertificateTest() throws Exception {}

  /** The verdict of a server that asks for a certificate of the parties. */
  private String connect(@Nullable ClientCertificate shown) throws Exception {
    KeyStore keys = KeyStore.getInstance("PKCS12");
    keys.load(null, null);
    keys.setKeyEntry(
        "own",
        server.keys().getPrivate(),
        new char[0],
        new X509Certificate[] {server.certificate()});
    KeyManagerFactory own = KeyManagerFactory.getInstance("PKIX");
    own.init(keys, new char[0]);
    KeyStore believed = KeyStore.getInstance("PKCS12");
    believed.load(null, null);
    believed.setCertificateEntry("parties", parties.authority());
    TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
    trust.init(believed);
    SSLContext tls = SSLContext.getInstance("TLSv1.3");
    tls.init(own.getKeyManagers(), trust.getTrustManagers(), null);
    try (SSLServerSocket listening =
        (SSLServerSocket)
            tls.getServerSocketFactory()
                .createServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      listening.setNeedClientAuth(true);
      CompletableFuture<String> said = CompletableFuture.supplyAsync(() -> accept(listening));
      SSLContext client = PinnedTls.context(pem(server.authority()), shown);
      try (SSLSocket socket =
          (SSLSocket)
              client
                  .getSocketFactory()
                  .createSocket(InetAddress.getLoopbackAddress(), listening.getLocalPort())) {
        socket.setSoTimeout(20_000);
        // With TLS 1.3 a client learns from its first read that its certificate is refused.
        socket.getInputStream().read();
      } catch (IOException e) {
        // The server says why.
      }
      return said.get(60, TimeUnit.SECONDS);
    }
  }

  private static String accept(SSLServerSocket listening) {
    try (SSLSocket socket = (SSLSocket) listening.accept()) {
      socket.setSoTimeout(20_000);
      socket.startHandshake();
      return socket.getSession().getPeerPrincipal().getName();
    } catch (IOException e) {
      return "refused";
    }
  }

  @Test
  void is_shown_to_who_asks_for_one() throws Exception {
    assertThat(connect(parties.client())).isEqualTo("CN=parties");
  }

  @Test
  void without_it_or_with_one_of_another_authority_the_handshake_ends() throws Exception {
    assertThat(connect(null)).isEqualTo("refused");
    assertThat(connect(Issued.byAnAuthorityOfItsOwn("others").client())).isEqualTo("refused");
  }

  @Test
  void the_end_of_the_first_certificate_that_ends_is_shown() throws Exception {
    Instant authority = server.authority().getNotAfter().toInstant();
    Instant own = parties.certificate().getNotAfter().toInstant();
    assertThat(PinnedTls.end(pem(server.authority()), null)).isEqualTo(authority);
    assertThat(PinnedTls.end(pem(server.authority()), parties.client()))
        .isEqualTo(own.isBefore(authority) ? own : authority);
    Instant soon = Instant.now().plus(Duration.ofHours(1));
    SimpleMeterRegistry meters = new SimpleMeterRegistry();
    new ChannelMetrics(meters, () -> 0).certificates(soon);
    assertThat(meters.get(ChannelMetrics.CERTIFICATE).gauge().value()).isBetween(3500.0, 3600.0);
  }

  @Test
  void a_text_that_holds_none_is_named() throws Exception {
    String ca = pem(server.authority());
    ClientCertificate client = parties.client();
    assertThatThrownBy(() -> PinnedTls.context("", null)).hasMessageContaining("the CA file");
    assertThatThrownBy(() -> PinnedTls.context(ca, new ClientCertificate("", client.keyPem())))
        .hasMessageContaining("client certificate");
    assertThatThrownBy(
            () -> PinnedTls.context(ca, new ClientCertificate(client.chainPem(), "no key")))
        .hasMessageContaining("no private key");
    assertThat(client.toString()).doesNotContain("PRIVATE");
  }
}
