package io.coterie.acceptance.cluster;

import io.coterie.channel.SendMode;
import io.coterie.messaging.certificate.SenderCertificates;
import io.coterie.messaging.certificate.SenderCertificates.CertificateFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * The settings that an operator would write for each service: a configuration file, and the secrets
 * as files beside it.
 */
public final class Settings {
  public static final String COORDINATOR = "coordinator";

  /** Not one of the ids that libsignal has built in or has revoked. */
  private static final int SERVER_CERTIFICATE_ID = 7;

  private static final int TOKEN_BYTES = 24;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Path folder;
  private final InstallationCa ca;
  private final MetricsUser metricsUser;
  private final URI messagingUri;
  private final URI partiesUri;
  private final SendMode sendMode;
  private final Path sharedLog;
  private final boolean ownLogs;
  private final Function<String, Site> sites;
  private final CertificateFiles certificates;

  /** Account number of each member, and the one-time token it enrols with. */
  private final Map<String, Enrolment> enrolments = new LinkedHashMap<>();

  private record Enrolment(String number, Path token) {}

  /**
   * A requester, which calls with a client certificate of its own name.
   *
   * @param keys pattern of the keys that it may create, read and use everywhere
   * @param digests whether signers sign digests for it, which they cannot look behind
   * @param fewest parties that may hold shares of a key that it makes, and that may be able to sign
   * @param approved whether two members of {@link Cluster#APPROVERS} have to approve what it has
   *     signed; then it has no other right
   */
  record Requester(
      String name, Path publicKey, String keys, boolean digests, int fewest, boolean approved) {}

  /**
   * Makes all secrets.
   *
   * @param messagingUri where the coordinator reaches messaging
   * @param partiesUri where signers do
   */
  Settings(
      Path folder,
      InstallationCa ca,
      MetricsUser metricsUser,
      URI messagingUri,
      URI partiesUri,
      SendMode sendMode,
      boolean ownLogs,
      Function<String, Site> sites,
      List<String> members) {
    this.folder = folder;
    this.ca = ca;
    this.metricsUser = metricsUser;
    this.messagingUri = messagingUri;
    this.partiesUri = partiesUri;
    this.sendMode = sendMode;
    this.ownLogs = ownLogs;
    this.sites = sites;
    this.sharedLog = folder.resolve("log.json");
    try {
      this.certificates =
          SenderCertificates.generate(folder.resolve("messaging"), SERVER_CERTIFICATE_ID);
      for (String member : members) {
        Path token = write(member, "enrolment-token", randomText());
        String number = "+1555%07d".formatted(enrolments.size() + 1);
        enrolments.put(member, new Enrolment(number, token));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Those of messaging.
   *
   * @param behindEdge whether it believes the edge when that says where its clients are
   */
  List<String> messaging(int port, int managementPort, Database database, boolean behindEdge) {
    InstallationCa.Leaf tls = certificate("messaging");
    StringBuilder text =
        new StringBuilder(
            """
            coterie:
              messaging:
                tls:
                  certificate: %s
                  private-key: %s
                certificates:
                  trust-root: %s
                  server-certificate: %s
                  server-private-key: %s
                enrolments:
            """
                .formatted(
                    tls.certificate(),
                    tls.key(),
                    certificates.trustRoot(),
                    certificates.serverCertificate(),
                    certificates.serverPrivateKey()));
    enrolments.forEach(
        (member, enrolment) ->
            text.append("      - number: \"%s\"\n".formatted(enrolment.number()))
                .append(
                    "        token-sha256: \"%s\"\n"
                        .formatted(sha256(Base64.getDecoder().decode(read(enrolment.token()))))));
    if (behindEdge) {
      text.append(
          """
              trusted-edge:
                authority: %s
                names: ["dns:%s"]
          """
              .formatted(ca.clientsFile(), Edge.NAME));
    }
    text.append(
        """
        spring:
          datasource:
            url: %s
            username: %s
        server:
          port: %d
        management:
          server:
            port: %d
        """
            .formatted(database.url("messaging"), database.user(), port, managementPort));
    return arguments("messaging", "messaging", text.toString());
  }

  List<String> coordinator(
      String replica, int port, int managementPort, Database database, List<Requester> requesters) {
    InstallationCa.Leaf tls = certificate(replica);
    StringBuilder text =
        new StringBuilder(
            """
            coterie:
              coordinator:
                replica: %s
                data-folder: %s
                tls:
                  certificate: %s
                  private-key: %s
                  client-ca: %s
                channel:
                  messaging: %s
                  ca: %s
                  trust-root: %s
                  number: "%s"
                  token-file: %s
                  measured: true
                  send-mode: %s
                unseal:
                  passphrase-file: %s
                requesters:
            """
                .formatted(
                    replica,
                    folder.resolve(replica),
                    tls.certificate(),
                    tls.key(),
                    ca.clientsFile(),
                    messagingUri,
                    ca.certificateFile(),
                    certificates.trustRoot(),
                    enrolment(replica).number(),
                    enrolment(replica).token(),
                    sendMode,
                    write(replica, "passphrase", randomText())));
    for (Requester requester : requesters) {
      text.append("      - name: %s\n".formatted(requester.name()));
      text.append("        public-key: %s\n".formatted(requester.publicKey()));
    }
    text.append("    clients:\n");
    for (Requester requester : requesters) {
      text.append("      - name: %s\n".formatted(requester.name()));
      text.append("        certificates: [\"dns:%s\"]\n".formatted(requester.name()));
      text.append("        submit-for: [\"%s\"]\n".formatted(requester.name()));
      text.append("        read-keys: [\"%s\"]\n".formatted(requester.keys()));
    }
    text.append(
        """
        spring:
          datasource:
            url: %s
            username: %s
          grpc:
            server:
              port: %d
              reflection:
                enabled: true
        management:
          server:
            port: %d
        """
            .formatted(database.url("coordinator"), database.user(), port, managementPort));
    return arguments(replica, "coordinator", text.toString());
  }

  List<String> signer(
      String name, int partyId, String region, int managementPort, List<Requester> requesters) {
    Site site = sites.apply(name);
    InstallationCa.Leaf tls = ca.management(name, site.address(), site.direct());
    StringBuilder text =
        new StringBuilder(
            """
            coterie:
              signer:
                name: %s
                party-id: %d
                region: %s
                data: %s
                unseal:
                  passphrase-file: %s
                channel:
                  messaging: %s
                  ca-file: %s
                  certificate-file: %s
                  private-key-file: %s
                  trust-root: %s
                  number: "%s"
                  token-file: %s
                  measured: true
                  send-mode: %s
                requesters:
            """
                .formatted(
                    name,
                    partyId,
                    region,
                    folder.resolve(name).resolve("data"),
                    write(name, "passphrase", randomText()),
                    partiesUri,
                    ca.certificateFile(),
                    ca.party().certificate(),
                    ca.party().key(),
                    trustRoot(),
                    enrolment(name).number(),
                    enrolment(name).token(),
                    sendMode));
    for (Requester requester : requesters) {
      text.append("      - name: %s\n".formatted(requester.name()));
      text.append("        public-key-file: %s\n".formatted(requester.publicKey()));
      text.append("        keys: [\"%s\"]\n".formatted(requester.keys()));
      if (requester.approved()) {
        text.append("        approvals: {group: %s, needed: 2}\n".formatted(Cluster.APPROVERS));
      } else {
        for (String right : List.of("create", "import", "refresh", "reshare")) {
          text.append("        may-%s-keys: true\n".formatted(right));
        }
        text.append("        may-create-groups: true\n");
        text.append("        may-open-approvals: true\n");
      }
      text.append("        min-threshold: %d\n".formatted(requester.fewest()));
      text.append("        min-parties: %d\n".formatted(requester.fewest()));
      text.append(
          "        schemes: [bls12381, ecdsa-secp256k1, ed25519, ed25519-exact, bip340-secp256k1]\n");
      text.append("        payloads: [message, ");
      text.append(requester.digests() ? "digest, " : "");
      text.append(
          "ethereum-transaction, ethereum-message, ethereum-typed-data, bitcoin-input,"
              + " solana-transaction]\n");
    }
    text.append(
        """
        spring:
          ssl:
            bundle:
              pem:
                management:
                  keystore:
                    certificate: %s
                    private-key: %s
        management:
          server:
            port: %d
        """
            .formatted(tls.certificate(), tls.key(), managementPort));
    return arguments(name, "signer", text.toString());
  }

  private InstallationCa.Leaf certificate(String service) {
    Site site = sites.apply(service);
    return ca.server(service, site.address(), site.direct());
  }

  /** The account number of a member. */
  String number(String member) {
    return enrolment(member).number();
  }

  /** The one-time token with which a member enrols. */
  String token(String member) {
    return read(enrolment(member).token());
  }

  /** The public key, base64, under which messaging certifies senders. */
  String trustRoot() {
    return read(certificates.trustRoot());
  }

  private Enrolment enrolment(String member) {
    Enrolment enrolment = enrolments.get(member);
    if (enrolment == null) {
      throw new IllegalArgumentException("no enrolment for " + member);
    }
    return enrolment;
  }

  /** Writes the configuration file and says how to start with it. */
  private List<String> arguments(String service, String kind, String yaml) {
    Path file = write(service, "config.yaml", yaml);
    List<String> arguments = new ArrayList<>();
    arguments.add("--spring.config.additional-location=file:" + file);
    arguments.add("--spring.main.banner-mode=off");
    arguments.add(
        "--coterie.%s.metrics.password-file=%s".formatted(kind, metricsUser.passwordFile()));
    if (!ownLogs) {
      // One JVM has one logging system: everything goes to one file, nothing to the console.
      arguments.add("--logging.file.name=" + sharedLog);
      arguments.add("--logging.structured.format.file=ecs");
      arguments.add("--logging.threshold.console=OFF");
    }
    return arguments;
  }

  private Path write(String service, String name, String content) {
    try {
      Path file = Files.createDirectories(folder.resolve(service)).resolve(name);
      return Files.writeString(file, content, StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String read(Path file) {
    try {
      return Files.readString(file).strip();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String randomText() {
    byte[] bytes = new byte[TOKEN_BYTES];
    RANDOM.nextBytes(bytes);
    return Base64.getEncoder().encodeToString(bytes);
  }

  private static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }
}
