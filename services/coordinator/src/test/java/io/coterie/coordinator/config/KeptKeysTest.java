package io.coterie.coordinator.config;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.protobuf.util.JsonFormat;
import io.coterie.coordinator.MemoryStores;
import io.coterie.coordinator.TestEvidence;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyRestoration;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
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
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;

/** A list of keys that a client has kept, at the start of a coordinator without a database. */
class KeptKeysTest {
  private static final List<Integer> PARTIES = List.of(1, 2, 3);
  private static final KeyPair WALLET = pair();
  private static final KeyPair ROOT = pair();

  @TempDir Path folder;
  private final KeyStore store = new MemoryStores().replica("here").keys();
  private final Logger logger = (Logger) LoggerFactory.getLogger(KeptKeys.class);
  private final ListAppender<ILoggingEvent> log = new ListAppender<>();
  private Path list;
  private Path done;

  @BeforeEach
  void place() {
    list = folder.resolve(KeptKeys.FILE);
    done = folder.resolve(KeptKeys.FILE + KeptKeys.DONE);
    logger.setLevel(Level.INFO);
    log.start();
    logger.addAppender(log);
  }

  @AfterEach
  void closeLog() {
    logger.detachAppender(log);
  }

  private List<String> told(Level level) {
    return log.list.stream()
        .filter(event -> event.getLevel().equals(level))
        .map(ILoggingEvent::getFormattedMessage)
        .toList();
  }

  private static KeyPair pair() {
    try {
      return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The answer about a new key that all three parties use. */
  private static Key key(String name, int threshold) {
    KeyIntent asked =
        KeyIntent.newBuilder()
            .setRequestId(RequestId.next())
            .setKey(name)
            .setScheme(Scheme.SCHEME_ED25519)
            .setThreshold(threshold)
            .addAllParties(List.of("p1", "p2", "p3"))
            .setInstallation("test")
            .setNotAfter(
                Timestamp.newBuilder().setSeconds(Instant.now().getEpochSecond() + 60).build())
            .build();
    SignedIntent intent = new IntentSigner("wallet", WALLET.getPrivate()).sign(asked);
    KeyPublic.Builder made =
        KeyPublic.newBuilder()
            .setKeyId(name)
            .setEpoch(1)
            .setThreshold(threshold)
            .setPublicKey(ByteString.copyFrom(new byte[32]));
    for (int party : PARTIES) {
      made.addVerificationShares(
          VerificationShare.newBuilder()
              .setParty(party)
              .setPoint(ByteString.copyFrom(new byte[32])));
    }
    KeyPublic keyPublic = made.build();
    ByteString session = ByteString.copyFrom(new byte[32]);
    return Key.newBuilder()
        .setName(name)
        .setScheme(asked.getScheme())
        .setThreshold(threshold)
        .addAllParties(asked.getPartiesList())
        .setState(Key.State.ACTIVE)
        .setOrigin(Key.Origin.GENERATED)
        .setPublicKey(keyPublic.getPublicKey())
        .setEpoch(1)
        .setFingerprint(KeyFingerprint.of(keyPublic))
        .setRequestId(asked.getRequestId())
        .setAttestation(
            Attestation.newBuilder()
                .addCompletions(
                    TestEvidence.completion(
                        session, keyPublic, intent, PARTIES, Set.copyOf(PARTIES))))
        .build();
  }

  /** A trust file whose only requester has these floors. */
  private Path trust(int minThreshold, int minParties) throws IOException {
    List<Member> members =
        IntStream.rangeClosed(1, 3)
            .mapToObj(
                id ->
                    new Member(
                        "p" + id,
                        Member.Role.PARTY,
                        id,
                        "eu",
                        new UUID(1, id),
                        1,
                        new byte[33],
                        TestEvidence.publicKey(id)))
            .toList();
    Trust.Requester wallet =
        new Trust.Requester(
            "wallet",
            List.of(WALLET.getPublic().getEncoded()),
            List.of(new Glob("keys/*")),
            Set.of(KeyRight.values()),
            minThreshold,
            minParties);
    Roots roots = new Roots(1, List.of(new RootKey(ROOT.getPublic().getEncoded())));
    Path file = folder.resolve("trust.json");
    TrustFile.first(new Trust(new Roster("test", 1, members, List.of()), List.of(wallet)), roots)
        .signed(ROOT.getPrivate())
        .write(file);
    return file;
  }

  private void start(Path trust) {
    new KeptKeys(new KeyRestoration(store), folder, trust).restore();
  }

  private void keep(Key... keys) throws IOException {
    ListKeysResponse kept = ListKeysResponse.newBuilder().addAllKeys(List.of(keys)).build();
    Files.writeString(list, JsonFormat.printer().print(kept));
  }

  @Test
  void keys_that_are_not_believed_are_named_and_keep_no_other_out() throws Exception {
    Key first = key("keys/first", 2);
    Key low = key("keys/low", 1);
    Key changed = key("keys/changed", 2).toBuilder().setThreshold(1).build();
    Key last = key("keys/last", 3);
    keep(first, low, changed, changed.toBuilder().setName("x\nkeys/y: written").build(), last);
    start(trust(2, 3));

    KeyRecord written = store.find("keys/first").orElseThrow();
    assertThat(Objects.requireNonNull(written.made()).attestation())
        .isEqualTo(first.getAttestation());
    assertThat(store.find("keys/last")).isPresent();
    assertThat(store.find("keys/low")).isEmpty();
    assertThat(store.find("keys/changed")).isEmpty();
    assertThat(told(Level.INFO))
        .anyMatch(line -> line.contains("keys/first, epoch 1: written"))
        .anyMatch(line -> line.contains("3 are not believed"));
    assertThat(told(Level.ERROR))
        .allMatch(line -> line.lines().count() == 1)
        .anyMatch(line -> line.contains("keys/low: not written: its creation asks"))
        .anyMatch(line -> line.contains("keys/changed: not written: field thresh"))
        .anyMatch(line -> line.contains("key 4: not written: "))
        .anyMatch(
            line -> line.endsWith("stays, with keys that are not believed, until the next start"));

    // A file that is believed in parts waits for its end, and brings nothing twice.
    assertThat(list).exists();
    assertThat(done).doesNotExist();
    keep(first, low, last);
    start(trust(1, 3));
    assertThat(store.find("keys/first")).contains(written);
    assertThat(store.find("keys/low")).isPresent();
    assertThat(list).doesNotExist();
    assertThat(done).exists();
  }

  @Test
  void a_list_with_nothing_to_believe_stays_and_writes_nothing() throws Exception {
    keep(key("keys/low", 1));
    start(trust(2, 3));
    assertThat(store.find("keys/low")).isEmpty();
    assertThat(list).exists();
    Files.writeString(list, "{\"keys\": 1}");
    start(trust(2, 3));
    assertThat(list).exists();
  }
}
