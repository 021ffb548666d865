package io.coterie.acceptance;

import io.coterie.acceptance.cluster.InstallationCa;
import java.net.Socket;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedKeyManager;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.ssl.pem.PemSslStoreBundle;
import org.springframework.boot.ssl.pem.PemSslStoreDetails;

/** Shows its certificate to everybody, of whatever authority a server has asked for one. */
final class InsistentClient extends X509ExtendedKeyManager {
  private static final String ALIAS = "own";

  private final X509Certificate[] chain;
  private final PrivateKey key;
  private final KeyStore trusted;

  InsistentClient(InstallationCa ca, InstallationCa.Leaf shown) throws GeneralSecurityException {
    PemSslStoreBundle files =
        new PemSslStoreBundle(
            PemSslStoreDetails.forCertificate(shown.certificate().toUri().toString())
                .withPrivateKey(shown.key().toUri().toString()),
            PemSslStoreDetails.forCertificate(ca.certificateFile().toUri().toString()));
    KeyStore own = files.getKeyStore();
    String alias = own.aliases().nextElement();
    chain =
        Arrays.stream(own.getCertificateChain(alias))
            .map(X509Certificate.class::cast)
            .toArray(X509Certificate[]::new);
    key = (PrivateKey) own.getKey(alias, new char[0]);
    trusted = files.getTrustStore();
  }

  /** TLS to this installation's services. */
  SSLContext tls() throws GeneralSecurityException {
    TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
    trust.init(trusted);
    SSLContext tls = SSLContext.getInstance("TLSv1.3");
    tls.init(new X509ExtendedKeyManager[] {this}, trust.getTrustManagers(), null);
    return tls;
  }

  @Override
  public String chooseClientAlias(
      String[] types, Principal @Nullable [] issuers, @Nullable Socket socket) {
    return ALIAS;
  }

  @Override
  public String chooseEngineClientAlias(
      String[] types, Principal @Nullable [] issuers, @Nullable SSLEngine engine) {
    return ALIAS;
  }

  @Override
  public String[] getClientAliases(String type, Principal @Nullable [] issuers) {
    return new String[] {ALIAS};
  }

  @Override
  public X509Certificate[] getCertificateChain(String alias) {
    return chain.clone();
  }

  @Override
  public PrivateKey getPrivateKey(String alias) {
    return key;
  }

  @Override
  public String @Nullable [] getServerAliases(String type, Principal @Nullable [] issuers) {
    return null;
  }

  @Override
  public @Nullable String chooseServerAlias(
      String type, Principal @Nullable [] issuers, @Nullable Socket socket) {
    return null;
  }
}
