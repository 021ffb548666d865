package io.coterie.cli;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.google.protobuf.ByteString;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Member;
import io.coterie.trust.RootKey;
import io.coterie.trust.Roots;
import io.coterie.trust.Roster;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.Signature;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.UUID;

/** The files of a client, and the evidence keys that its trust file pins. */
final class TestFiles {
  static final String INSTALLATION = "test";

  /** Of some key, as 'keys get' shows it. */
  static final String FINGERPRINT = "ca10 eaf2 7c8b 0c93 f8d2 402d ba61 59f9";

  private static final String PASSWORD = "changeit";

  /** By party id: {@code pN} has the id N. */
  static final SortedMap<Integer, KeyPair> PARTIES = new TreeMap<>();

  static {
    for (int id = 1; id <= 5; id++) {
      PARTIES.put(id, ed25519());
    }
  }

  /** The only root key of {@link #trust}. */
  static final KeyPair ROOT = ed25519();

  private TestFiles() {}

  static KeyPair ed25519() {
    try {
      return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Writes {@code name.pem}, issued by itself for localhost, and {@code name-key.pem}. */
  static void certificate(Path folder, String name) throws Exception {
    certificate(folder, name, "-1d");
  }

  /** The same, valid for 30 days from so long before or after now, in the words of keytool. */
  static void certificate(Path folder, String name, String begins) throws Exception {
    Path store = folder.resolve(name + ".p12");
    Process keytool =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair",
                "-alias",
                name,
                "-keyalg",
                "EC",
                "-groupname",
                "secp256r1",
                "-dname",
                "CN=" + name,
                "-ext",
                "san=dns:localhost",
                "-startdate",
                begins,
                "-validity",
                "30",
                "-keystore",
                store.toString(),
                "-storepass",
                PASSWORD)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve(name + ".log").toFile())
            .start();
    if (keytool.waitFor() != 0) {
      throw new IOException(Files.readString(folder.resolve(name + ".log")));
    }
    KeyStore keys = KeyStore.getInstance(store.toFile(), PASSWORD.toCharArray());
    Key key = keys.getKey(name, PASSWORD.toCharArray());
    pem(folder.resolve(name + ".pem"), "CERTIFICATE", keys.getCertificate(name).getEncoded());
    pem(folder.resolve(name + "-key.pem"), "PRIVATE KEY", key.getEncoded());
  }

  static void pem(Path path, String label, byte[] der) throws IOException {
    Path file =
        Files.createFile(
            path,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    Files.writeString(
        file,
        "-----BEGIN %s-----\n%s\n-----END %s-----\n"
            .formatted(label, Base64.getMimeEncoder().encodeToString(der), label));
  }

  /** Writes {@code trust.json} and {@code wallet-intents.pem}, the key of its only requester. */
  static void trust(Path folder) throws IOException {
    KeyPair wallet = ed25519();
    pem(folder.resolve("wallet-intents.pem"), "PRIVATE KEY", wallet.getPrivate().getEncoded());
    trust(folder.resolve("trust.json"), wallet.getPublic().getEncoded());
  }

  /** Writes a trust file whose only requester has a key. */
  static void trust(Path file, byte[] walletKey) throws IOException {
    List<Member> members = new ArrayList<>();
    PARTIES.forEach(
        (id, evidence) ->
            members.add(
                new Member(
                    "p" + id,
                    Member.Role.PARTY,
                    id,
                    "eu",
                    new UUID(1, id),
                    1,
                    new byte[33],
                    raw(evidence))));
    signed(
            new Trust(
                new Roster(INSTALLATION, 1, members, List.of()),
                List.of(
                    new Trust.Requester(
                        "wallet",
                        List.of(walletKey),
                        List.of(new Glob("keys/*")),
                        Set.of(KeyRight.values()),
                        2,
                        3))))
        .write(file);
  }

  /** A first trust file that the root key {@link #ROOT} has signed. */
  private static TrustFile signed(Trust trust) {
    Roots roots = new Roots(1, List.of(new RootKey(ROOT.getPublic().getEncoded())));
    return TrustFile.first(trust, roots).signed(ROOT.getPrivate());
  }

  private static byte[] raw(KeyPair key) {
    byte[] spki = key.getPublic().getEncoded();
    return Arrays.copyOfRange(spki, spki.length - 32, spki.length);
  }

  /** A party's signature of a statement, as the core makes it. */
  static ByteString sign(int party, ByteString statement) {
    try {
      Signature signer = Signature.getInstance("Ed25519");
      signer.initSign(PARTIES.get(party).getPrivate());
      signer.update("coterie/statement-signature/1".getBytes(US_ASCII));
      signer.update(MessageDigest.getInstance("SHA-256").digest(statement.toByteArray()));
      return ByteString.copyFrom(signer.sign());
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }
}
