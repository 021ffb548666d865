package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.util.Timestamps;
import io.coterie.acceptance.Deviation.Kind;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.Settings;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.SignerApplication;
import io.coterie.trust.Member;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A party's store goes back to before an ECDSA session in which a peer cheated, while that peer and
 * a coordinator are hostile: the peer's store goes back as well, and the very same order comes
 * again. One more party is honest.
 */
@Timeout(600)
class HostileRestoreTest {
  /** The process of the coordinator that presigning orders come from. */
  private static final ByteString INCARNATION = ByteString.copyFrom(new byte[16]);

  private static final String HOSTILE = "party-1";
  private static final String RESTORED = "party-2";
  private static final String HONEST_PARTY = "party-3";
  private static final List<Integer> BOTH = List.of(1, 2);
  private static final List<Integer> HONEST = List.of(2, 3);
  private static final ByteString DIGEST = ByteString.fromHex("5a".repeat(32));
  private static final long PATIENCE_SECONDS = 180;

  /** Before an order that was not answered is sent again: its receiver may have been away. */
  private static final long AGAIN_SECONDS = 3;

  /** Nothing of this length that is drawn at random comes twice. */
  private static final int WINDOW = 16;

  private static final Deviation NONE = new Deviation(Kind.NONE, 0);

  private static Cluster cluster;
  private static OutsideVerifier outside;
  private static SecureChannel mallory;
  private static final BlockingQueue<Answer> answers = new LinkedBlockingQueue<>();

  private record Answer(String party, SessionReport report) {}

  @BeforeAll
  static void start() {
    cluster =
        Cluster.of(3)
            .threshold(2)
            .folder(Path.of("target", "cluster-hostile-restore"))
            .secondCoordinator("mallory")
            .setting(HOSTILE, "--" + Deviation.PROPERTY + "=true")
            .setting(RESTORED, "--" + WireLog.PROPERTY + "=true")
            .setting(Settings.COORDINATOR, "--" + WireLog.PROPERTY + "=true")
            .progress(line -> System.out.println("progress: hostile restore: " + line))
            .start();
    outside = OutsideVerifier.start(ProjectRoot.PATH);
    mallory =
        cluster
            .members()
            .openChannel(cluster.members().secondCoordinator(), cluster.members().roster());
    mallory.onMessage(
        message -> {
          try {
            PartyMessage body = PartyMessage.parseFrom(message.body());
            if (body.hasReport()) {
              answers.add(new Answer(message.sender().name(), body.getReport()));
            } else if (body.hasClaimCount()) {
              conceal(message.sender(), body.getClaimCount());
            } else if (body.hasEnvelope()) {
              WireLog.saw(body.getEnvelope().getEnvelope());
            }
          } catch (InvalidProtocolBufferException e) {
            throw new AssertionError(e);
          }
        });
    mallory.start();
  }

  @AfterAll
  static void stop() {
    if (mallory != null) {
      mallory.close();
    }
    if (outside != null) {
      outside.close();
    }
    if (cluster != null) {
      cluster.close();
    }
  }

  @AfterEach
  void beHonest() {
    Deviation.current = NONE;
  }

  // ---- the hostile coordinator -----------------------------------------------------------------

  /** It remembers whatever a party states, and nothing that came before. */
  private static void conceal(Member party, ClaimCount stated) {
    mallory.send(
        party,
        PartyMessage.newBuilder()
            .setClaimMemory(ClaimMemory.newBuilder().addRemembered(stated))
            .build()
            .toByteArray(),
        SendOptions.online(null));
  }

  private static Order order(ProtocolId protocol, String key, List<Integer> parties) {
    byte[] nonce = new byte[32];
    new SecureRandom().nextBytes(nonce);
    Order.Builder order =
        Order.newBuilder()
            .setCoordinatorNonce(ByteString.copyFrom(nonce))
            .setProtocol(protocol)
            .setKey("keys/" + key)
            .setEpoch(1)
            .setThreshold(2)
            .addAllSigningSet(parties)
            .setDeadline(Timestamps.fromMillis(System.currentTimeMillis() + 110_000));
    return (protocol == ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN
            ? order.setPresignatureCount(1).setCoordinatorIncarnation(INCARNATION)
            : order.setSignedIntent(
                cluster
                    .wallet()
                    .intents()
                    .sign(WalletBackend.ecdsaIntent(key).setDigest(DIGEST).build())))
        .build();
  }

  private static Order order(String key, List<Integer> parties) {
    return order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, key, parties);
  }

  /** Gives an order to its parties until the restored party has answered as is wanted. */
  private static SessionReport give(Order order, String what, Predicate<SessionReport> wanted)
      throws Exception {
    answers.clear();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
    StringBuilder heard = new StringBuilder();
    while (System.nanoTime() < end) {
      send(order);
      for (Answer answer = answers.poll(AGAIN_SECONDS, TimeUnit.SECONDS);
          answer != null;
          answer = answers.poll(AGAIN_SECONDS, TimeUnit.SECONDS)) {
        heard.append('\n').append(answer);
        if (answer.party().equals(RESTORED) && wanted.test(answer.report())) {
          return answer.report();
        }
      }
    }
    throw new AssertionError("no answer: " + what + ", but" + heard);
  }

  private static void send(Order order) {
    List<Member> to =
        cluster.members().roster().members().stream()
            .filter(m -> m.role() == Member.Role.PARTY)
            .filter(m -> order.getSigningSetList().contains(m.partyId()))
            .toList();
    mallory.broadcast(
        to,
        PartyMessage.newBuilder().setOrder(order.toByteString()).build().toByteArray(),
        SendOptions.online(null));
  }

  private static Abort aborted(Order order) throws Exception {
    return give(order, "an abort", SessionReport::hasAborted).getAborted();
  }

  private static void refused(Order order, RefusalReason reason) throws Exception {
    give(order, reason.name(), report -> report.getRefused().getReason() == reason);
  }

  // ---- the disk --------------------------------------------------------------------------------

  private static Path data(String party) {
    return cluster.signer(party).folder().resolve("data");
  }

  private static Path copy(String party, String name) throws IOException {
    Path copy = Files.createDirectories(cluster.folder().resolve(name + "-" + party));
    cluster.kill(party);
    PartyFiles.copy(data(party), copy);
    cluster.restart(party);
    return copy;
  }

  /** Lets the restored party's file take no exclusion before it has taken two more claims. */
  private static void fillDisk() throws Exception {
    cluster.kill(RESTORED);
    try (Connection file = DriverManager.getConnection(url(""));
        var run = file.createStatement()) {
      run.execute(
          "CREATE TRIGGER full BEFORE INSERT ON exclusion WHEN (SELECT count(*) FROM"
              + " claimed_session) < "
              + (count(run, "claimed_session") + 2)
              + " BEGIN SELECT RAISE(ABORT, 'full'); END");
    }
    cluster.restart(RESTORED);
  }

  private static String url(String options) {
    return "jdbc:sqlite:file:" + data(RESTORED).resolve("party.db") + options;
  }

  private static int count(Statement run, String from) throws SQLException {
    try (ResultSet row = run.executeQuery("SELECT count(*) FROM " + from)) {
      return row.getInt(1);
    }
  }

  private static boolean freezeIsInTheFile() {
    try (Connection file = DriverManager.getConnection(url("?mode=ro"));
        var run = file.createStatement()) {
      return count(run, "hold WHERE cause = 'FREEZE'") == 1;
    } catch (SQLException e) {
      throw new AssertionError(e);
    }
  }

  /** Runs a command of the signer beside the one that runs, as its operator does. */
  private static Path command(Path input, String... words) throws Exception {
    Path output = Files.createTempFile(cluster.folder(), words[0], ".out");
    List<String> command =
        Stream.concat(
                Stream.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "--enable-native-access=ALL-UNNAMED",
                    "-XX:TieredStopAtLevel=1",
                    "-cp",
                    System.getProperty(
                        "surefire.test.class.path", System.getProperty("java.class.path")),
                    SignerApplication.class.getName()),
                Arrays.stream(words))
            .toList();
    Process process =
        new ProcessBuilder(command)
            .redirectInput(input.toFile())
            .redirectOutput(output.toFile())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    assertThat(process.waitFor()).as("%s", List.of(words)).isZero();
    return output;
  }

  /** The answer of the command {@code keys}. */
  private static List<String> keys() throws Exception {
    return Files.readAllLines(command(Path.of("/dev/null"), "keys", data(RESTORED).toString()));
  }

  /** The troubles of a key, as {@code keys} prints them. */
  private static List<String> troubles(String key) throws Exception {
    return keys().stream()
        .filter(line -> line.contains("keys/" + key) && !line.equals("keys/" + key))
        .toList();
  }

  private static void unfreeze(String key) throws Exception {
    command(Path.of("/dev/null"), "unfreeze", data(RESTORED).toString(), "keys/" + key);
  }

  private static double held() {
    return cluster
        .signer(RESTORED)
        .metrics()
        .sum("coterie_holds", s -> s.label("cause").equals("operator"));
  }

  private static double frozen() {
    return cluster
        .signer(RESTORED)
        .metrics()
        .sum("coterie_keys_troubles", s -> s.label("kind").equals("frozen"));
  }

  private static void until(String what, BooleanSupplier condition) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as(what).isLessThan(end);
      TimeUnit.MILLISECONDS.sleep(50);
    }
  }

  // ---- the drills ------------------------------------------------------------------------------

  private static void signs(Key key, String name) {
    for (int i = 0; i < 5; i++) {
      Signing signing = cluster.wallet().sign(WalletBackend.ecdsaIntent(name).setDigest(DIGEST));
      assertThat(outside.ecdsa(key.getPublicKey(), DIGEST, signing.getSignature()).valid())
          .isTrue();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"PROTOCOL_ID_ECDSA_SIGN", "PROTOCOL_ID_ECDSA_PRESIGN"})
  void theIdenticalOrderBringsNothingBack(ProtocolId protocol) throws Exception {
    WireLog.clear();
    String name = "again-" + protocol.getNumber();
    Key key = cluster.wallet().createEcdsaKey(name, 2, cluster.partyNames());
    Path hostile = copy(HOSTILE, name);
    Path restored = copy(RESTORED, name);
    Order order = order(protocol, name, BOTH);
    Deviation.current = new Deviation(Kind.GARBLE, 2);
    Abort abort = aborted(order);
    assertThat(abort.getCulpritsList()).as("%s", abort).containsExactly(1);
    assertThat(abort.getAdvice()).isEqualTo(Advice.ADVICE_EXCLUDE_PARTY);

    Stream.of(HONEST_PARTY, HOSTILE, RESTORED).forEach(cluster::kill);
    cluster.coordinator().kill();
    PartyFiles.copy(hostile, data(HOSTILE));
    PartyFiles.copy(restored, data(RESTORED));
    // Nobody is there who could tell it, so it begins anew.
    cluster.restart(RESTORED);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
    while (WireLog.runs(1).stream().noneMatch(runs -> runs.size() == 2)) {
      assertThat(System.nanoTime()).as("the order is run again").isLessThan(end);
      send(order);
      answers.poll(AGAIN_SECONDS, TimeUnit.SECONDS);
    }
    // The honest one is the first to speak; the hostile one would say that it remembers everything.
    cluster.restart(HONEST_PARTY);
    refused(order, RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    cluster.restart(HOSTILE);
    refused(order, RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    refused(order(protocol, name, HONEST), RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);

    assertThat(WireLog.runs(2).stream().filter(runs -> runs.size() > 1)).as("went on").isEmpty();
    for (Map<ByteString, ByteString> runs : WireLog.runs(1)) {
      assertThat(common(runs.values())).as("shown in two runs").isEmpty();
    }

    Deviation.current = NONE;
    cluster.coordinator().restart(Duration.ofSeconds(PATIENCE_SECONDS));
    assertThat(cluster.wallet().refreshKey(name, key.getEpoch()).getEpoch()).isEqualTo(2);
    refused(order, RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
    signs(key, name);
    assertThat(WireLog.points()).isGreaterThanOrEqualTo(5);
    assertThat(WireLog.shownTwice()).isEmpty();
  }

  /** The values that are in two of these. */
  private static Set<ByteString> common(Collection<ByteString> bodies) {
    Set<ByteString> seen = new HashSet<>();
    Set<ByteString> common = new HashSet<>();
    for (ByteString body : bodies) {
      Set<ByteString> windows =
          IntStream.rangeClosed(0, body.size() - WINDOW)
              .mapToObj(at -> body.substring(at, at + WINDOW))
              .collect(Collectors.toSet());
      windows.stream().filter(seen::contains).forEach(common::add);
      seen.addAll(windows);
    }
    return common;
  }

  @Test
  void aFreezeIsSeenLiftedAndComesBackWithTheBackupItIsIn() throws Exception {
    String name = "frozen";
    Key key = cluster.wallet().createEcdsaKey(name, 2, cluster.partyNames());
    assertThat(keys())
        .as("the party's own word, without a network")
        .containsSequence(
            key.getName(),
            "  scheme      ecdsa-secp256k1",
            "  shares      2 of parties [1, 2, 3]",
            "  epoch       1",
            "  public key  " + HexFormat.of().formatHex(key.getPublicKey().toByteArray()),
            "  xpub        " + key.getXpub(),
            "  fingerprint " + KeyFingerprint.text(key.getFingerprint()));
    fillDisk();
    Deviation.current = new Deviation(Kind.GARBLE, 2);
    Abort abort = aborted(order(name, BOTH));
    assertThat(abort.getAdvice()).isEqualTo(Advice.ADVICE_FREEZE_KEY);
    assertThat(abort.getCulpritsList()).containsExactly(1);
    Deviation.current = NONE;
    assertThat(frozen()).isEqualTo(1);
    refused(order(name, HONEST), RefusalReason.REFUSAL_REASON_KEY_FROZEN);
    assertThat(troubles(name)).as("before it is on disk").anyMatch(line -> line.contains("frozen"));

    cluster.createKey("room"); // a claim more
    until("the freeze is written", HostileRestoreTest::freezeIsInTheFile);
    Path backup = command(Path.of("/dev/null"), "backup", data(RESTORED).toString());
    unfreeze(name);
    until("it is lifted", () -> frozen() == 0);
    assertThat(troubles(name))
        .containsExactly("keys/" + name + ": party 1 is excluded until its shares are refreshed");

    cluster.kill(RESTORED);
    try (Stream<Path> files = Files.list(data(RESTORED))) {
      for (Path file :
          files
              .filter(f -> f.getFileName().toString().matches("party\\.db.*|data\\.key"))
              .toList()) {
        Files.delete(file);
      }
    }
    command(backup, "restore", data(RESTORED).toString());
    cluster.restart(RESTORED);
    refused(order(name, HONEST), RefusalReason.REFUSAL_REASON_ON_HOLD);
    command(
        Path.of("/dev/null"), "lift", data(RESTORED).toString(), "installation", "none is missing");
    until("the hold is lifted", () -> held() == 0);
    assertThat(frozen()).as("a freeze in the backup").isEqualTo(1);
    refused(order(name, HONEST), RefusalReason.REFUSAL_REASON_KEY_FROZEN);
    unfreeze(name);
    until("it is lifted", () -> frozen() == 0);
    refused(order(name, HONEST), RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
    assertThat(troubles(name)).anyMatch(line -> line.contains("went back"));

    assertThat(cluster.wallet().refreshKey(name, key.getEpoch()).getEpoch()).isEqualTo(2);
    assertThat(troubles(name)).isEmpty();
    signs(key, name);
  }
}
