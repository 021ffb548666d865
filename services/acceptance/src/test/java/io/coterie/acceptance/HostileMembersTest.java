package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.protobuf.util.Timestamps;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Members;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.channel.ChannelAccount;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A coordinator that everybody pins and that lies, and an account that nobody pins. */
class HostileMembersTest {
  private static final String KEY = "coveted";
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private static Cluster cluster;

  @BeforeAll
  static void start() {
    cluster =
        Cluster.of(3)
            .threshold(2)
            .folder(Path.of("target", "cluster-hostile"))
            .secondCoordinator("mallory")
            .alsoEnrol("stranger")
            .progress(line -> System.out.println("progress: hostile members: " + line))
            .start();
    cluster.createKey(KEY);
  }

  @AfterAll
  static void stop() {
    if (cluster != null) {
      cluster.close();
    }
  }

  private static List<Member> parties(Roster roster) {
    return roster.members().stream().filter(m -> m.role() == Member.Role.PARTY).toList();
  }

  private record Alteration(String what, RefusalReason expected, UnaryOperator<Order> change) {}

  @Test
  void aCoordinatorThatAltersTheOrderIsRefusedByEverySignerItAsks() throws Exception {
    BlockingQueue<PartyMessage> answers = new LinkedBlockingQueue<>();
    try (SecureChannel mallory =
        cluster
            .members()
            .openChannel(cluster.members().secondCoordinator(), cluster.members().roster())) {
      mallory.onMessage(
          message -> {
            try {
              PartyMessage said = PartyMessage.parseFrom(message.body());
              // A party tells every coordinator how far its ledger has come; that is no answer.
              if (!said.hasClaimCount()) {
                answers.add(said);
              }
            } catch (com.google.protobuf.InvalidProtocolBufferException e) {
              throw new AssertionError(e);
            }
          });
      mallory.start();
      List<Member> all = parties(mallory.roster());
      mallory.established(all).toCompletableFuture().get(PATIENCE.toSeconds(), TimeUnit.SECONDS);

      for (Alteration alteration : alterations()) {
        byte[] order = alteration.change().apply(honestOrder()).toByteArray();
        mallory
            .broadcast(
                all,
                PartyMessage.newBuilder()
                    .setOrder(ByteString.copyFrom(order))
                    .build()
                    .toByteArray(),
                SendOptions.online(null))
            .toCompletableFuture()
            .get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        for (int i = 0; i < all.size(); i++) {
          PartyMessage answer = answers.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS);
          assertThat(answer).as("%s: an answer of each party", alteration.what()).isNotNull();
          assertThat(answer.hasReport() && answer.getReport().hasRefused())
              .as("%s: no party starts; one said %s", alteration.what(), answer)
              .isTrue();
          assertThat(answer.getReport().getRefused().getReason())
              .as("%s: %s", alteration.what(), answer.getReport().getRefused().getDetail())
              .isEqualTo(alteration.expected());
        }
      }
      assertThat(answers).as("no party has sent anything else").isEmpty();
    }
    assertThat(cluster.wallet().sign(KEY, "honest work goes on").getSignature().size())
        .isEqualTo(96);
  }

  private static Order honestOrder() {
    SigningIntent intent = WalletBackend.signingIntent(KEY, new byte[] {7}).build();
    return Order.newBuilder()
        .setCoordinatorNonce(ByteString.copyFrom(random(32)))
        .setProtocol(ProtocolId.PROTOCOL_ID_BLS_SIGN)
        .setKey("keys/" + KEY)
        .setEpoch(1)
        .setThreshold(2)
        .addAllSigningSet(List.of(1, 2, 3))
        .setSignedIntent(cluster.wallet().intents().sign(intent))
        .setDeadline(in(Duration.ofSeconds(10)))
        .build();
  }

  private static List<Alteration> alterations() {
    List<Alteration> all = new ArrayList<>();
    all.add(
        new Alteration(
            "another key",
            RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
            o -> o.toBuilder().setKey("keys/other").build()));
    all.add(
        new Alteration(
            "a smaller threshold",
            RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
            o -> o.toBuilder().setThreshold(1).build()));
    all.add(
        new Alteration(
            "a larger threshold than the set",
            RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
            o -> o.toBuilder().setThreshold(4).build()));
    all.add(
        new Alteration(
            "another epoch",
            RefusalReason.REFUSAL_REASON_WRONG_EPOCH,
            o -> o.toBuilder().setEpoch(2).build()));
    all.add(
        new Alteration(
            "a party that does not exist",
            RefusalReason.REFUSAL_REASON_UNKNOWN_PARTY,
            o -> o.toBuilder().addSigningSet(9).build()));
    all.add(
        new Alteration(
            "a party twice",
            RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
            o -> o.toBuilder().addSigningSet(3).build()));
    all.add(
        new Alteration(
            "an empty signing set",
            RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
            o -> o.toBuilder().clearSigningSet().build()));
    all.add(
        new Alteration(
            "another protocol",
            RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
            o -> o.toBuilder().setProtocol(ProtocolId.PROTOCOL_ID_BLS_KEYGEN).build()));
    all.add(
        new Alteration(
            "a protocol that does not exist",
            RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
            o -> o.toBuilder().setProtocolValue(999).build()));
    all.add(
        new Alteration(
            "no nonce",
            RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
            o -> o.toBuilder().clearCoordinatorNonce().build()));
    all.add(
        new Alteration(
            "a deadline after the intent's",
            RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
            o -> o.toBuilder().setDeadline(in(Duration.ofHours(1))).build()));
    all.add(
        new Alteration(
            "another message under the requester's signature",
            RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE,
            o -> o.toBuilder().setSignedIntent(otherMessage(o.getSignedIntent())).build()));
    all.add(
        new Alteration(
            "an intent of a requester that nobody knows",
            RefusalReason.REFUSAL_REASON_UNKNOWN_REQUESTER,
            o ->
                o.toBuilder()
                    .setSignedIntent(
                        o.getSignedIntent().toBuilder()
                            .setSignatures(
                                0,
                                o.getSignedIntent().getSignatures(0).toBuilder()
                                    .setKeyid("nobody")))
                    .build()));
    all.add(
        new Alteration(
            "an intent of a requester who may not use the key",
            RefusalReason.REFUSAL_REASON_FORBIDDEN,
            o ->
                o.toBuilder()
                    .setSignedIntent(
                        cluster
                            .backend(Cluster.AUDITOR)
                            .intents()
                            .sign(WalletBackend.signingIntent(KEY, new byte[] {7}).build()))
                    .build()));
    all.add(
        new Alteration(
            "an expired intent",
            RefusalReason.REFUSAL_REASON_INTENT_EXPIRED,
            o ->
                o.toBuilder()
                    .setDeadline(in(Duration.ofMinutes(-2)))
                    .setSignedIntent(
                        cluster
                            .wallet()
                            .intents()
                            .sign(
                                WalletBackend.signingIntent(KEY, new byte[] {7})
                                    .setNotAfter(in(Duration.ofMinutes(-1)))
                                    .build()))
                    .build()));
    return all;
  }

  private static SignedIntent otherMessage(SignedIntent signed) {
    try {
      return signed.toBuilder()
          .setPayload(
              SigningIntent.parseFrom(signed.getPayload()).toBuilder()
                  .setMessage(ByteString.copyFromUtf8("all of it, to me"))
                  .build()
                  .toByteString())
          .build();
    } catch (com.google.protobuf.InvalidProtocolBufferException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void anAccountThatNobodyPinsIsNotHeard() throws Exception {
    ChannelAccount account = cluster.members().enrol("stranger");
    Member self = Members.member("stranger", Member.Role.COORDINATOR, 0, account);
    List<Member> members = new ArrayList<>(parties(cluster.members().roster()));
    members.add(self);
    double before = rejected();
    BlockingQueue<PartyMessage> answers = new LinkedBlockingQueue<>();
    try (SecureChannel stranger =
        cluster.members().openChannel(account, new Roster("test", 1, members))) {
      stranger.onMessage(message -> answers.add(PartyMessage.getDefaultInstance()));
      stranger.start();
      long end = System.nanoTime() + PATIENCE.toNanos();
      while (rejected() < before + 3 && System.nanoTime() < end) {
        LockSupport.parkNanos(Duration.ofMillis(100).toNanos());
      }
      assertThat(rejected()).isGreaterThanOrEqualTo(before + 3);
      assertThat(stranger.reachable()).as("nobody opens a session with it").isEmpty();
      assertThat(answers).isEmpty();
    }
    assertThat(cluster.wallet().sign(KEY, "undisturbed").getSignature().size()).isEqualTo(96);
  }

  /** An HMAC of a constant over the identity key, which is public, is no access key. */
  @Test
  void aKeyThatEverybodyCanComputeOpensNoAccount() throws Exception {
    Mac mac = Mac.getInstance("HmacSHA256");
    byte[] label = "coterie/channel/access-key/1".getBytes(StandardCharsets.US_ASCII);
    mac.init(new SecretKeySpec(label, "HmacSHA256"));
    ChannelAccount named = cluster.members().secondCoordinator();
    String user = named.aci() + "." + named.deviceId() + ":";
    String credentials = user + new String(named.password(), StandardCharsets.US_ASCII);
    try (HttpClient http = HttpClient.newBuilder().sslContext(cluster.ca().tls()).build()) {
      for (Member member : parties(cluster.members().roster())) {
        byte[] computed = Arrays.copyOf(mac.doFinal(member.identityKey()), 16);
        assertThat(prekeys(http, member, "Unidentified-Access-Key", computed)).isEqualTo(401);
        assertThat(prekeys(http, member, "Unidentified-Access-Key", new byte[16])).isEqualTo(401);
        byte[] basic = credentials.getBytes(StandardCharsets.US_ASCII);
        assertThat(prekeys(http, member, "Authorization", basic)).as("by name").isEqualTo(200);
      }
    }
  }

  private static int prekeys(HttpClient http, Member member, String header, byte[] value)
      throws Exception {
    String scheme = header.equals("Authorization") ? "Basic " : "";
    URI keys =
        URI.create(
            "https://localhost:"
                + cluster.messagingPort()
                + "/v2/keys/"
                + member.aci()
                + "/"
                + member.deviceId());
    HttpRequest request =
        HttpRequest.newBuilder(keys)
            .header(header, scheme + Base64.getEncoder().encodeToString(value))
            .build();
    return http.send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
  }

  /** Messages that the signers refused because they do not pin the sender. */
  private static double rejected() {
    return cluster
        .metrics()
        .sum("coterie_channel_rejected_total", s -> s.label("cause").equals("stranger"));
  }

  private static byte[] random(int length) {
    byte[] bytes = new byte[length];
    new SecureRandom().nextBytes(bytes);
    return bytes;
  }

  private static Timestamp in(Duration fromNow) {
    return Timestamps.fromMillis(System.currentTimeMillis() + fromNow.toMillis());
  }
}
