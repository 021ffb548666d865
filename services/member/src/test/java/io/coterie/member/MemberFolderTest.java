package io.coterie.member;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.KeyPairGenerator;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The folder of a member, with the real core, and tickets for it. */
class MemberFolderTest {
  private static final String PASSPHRASE = "a passphrase of a member";

  @TempDir Path temporary;
  private Path folder;
  private Path facts;
  private ByteString identity;

  @BeforeEach
  void create() {
    folder = temporary.resolve("member");
    facts = folder.resolve("member.properties");
    byte[] passphrase = bytes(PASSPHRASE);
    try (MemberFolder made = MemberFolder.open(folder, passphrase)) {
      identity = made.identity();
      assertThat(made.membership()).isEmpty();
    }
    assertThat(passphrase).containsOnly(0);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private MemberFolder open() {
    return MemberFolder.open(folder, bytes(PASSPHRASE));
  }

  private void refused(String passphrase, String why) {
    byte[] given = bytes(passphrase);
    assertThatThrownBy(() -> MemberFolder.open(folder, given))
        .isInstanceOf(MemberException.Folder.class)
        .hasMessageContaining(why)
        .hasMessageNotContaining(passphrase);
    assertThat(given).containsOnly(0);
  }

  @Test
  void a_folder_keeps_its_identity_under_its_passphrase_alone() throws Exception {
    assertThat(identity.size()).isEqualTo(IntentVerifier.IDENTITY_BYTES);
    try (MemberFolder again = open()) {
      assertThat(again.identity()).isEqualTo(identity);
      refused(PASSPHRASE, "is using the member folder");
    }
    Path file = Files.writeString(temporary.resolve("passphrase"), PASSPHRASE + "\n");
    try (MemberFolder again = MemberFolder.open(folder, file)) {
      assertThat(again.identity()).as("the passphrase of a file").isEqualTo(identity);
    }
    refused("a passphrase of another", "wrong passphrase");
    refused("too short", "12 to 1024 bytes");
    for (String name : List.of("member.properties", "data-key", "lock")) {
      assertThat(Files.getPosixFilePermissions(folder.resolve(name)))
          .as(name)
          .isEqualTo(PosixFilePermissions.fromString("rw-------"));
    }
    assertThat(Files.getPosixFilePermissions(folder))
        .isEqualTo(PosixFilePermissions.fromString("rwx------"));
  }

  @Test
  void a_damaged_folder_is_refused_and_never_made_anew() throws Exception {
    byte[] key = Files.readAllBytes(folder.resolve("data-key"));
    byte[] altered = key.clone();
    altered[altered.length - 1] ^= 1;
    Files.write(folder.resolve("data-key"), altered);
    refused(PASSPHRASE, "or the file was altered");
    Files.delete(folder.resolve("data-key"));
    refused(PASSPHRASE, "data-key");
    assertThat(folder.resolve("data-key")).doesNotExist();
    Files.write(folder.resolve("data-key"), key);

    String good = Files.readString(facts);
    Files.writeString(facts, "");
    refused(PASSPHRASE, "has no identity");
    Files.writeString(facts, "identity=\\u00");
    refused(PASSPHRASE, "cannot be used");
    Files.writeString(facts, "x".repeat((1 << 20) + 1));
    refused(PASSPHRASE, "too large");
    assertThat(Files.size(facts)).as("what was there").isGreaterThan(1 << 20);

    Files.writeString(facts, good.replaceFirst("(?m)^identity=.*$", "identity=xyz"));
    try (MemberFolder damaged = open()) {
      assertThatThrownBy(damaged::identity)
          .isInstanceOf(MemberException.Folder.class)
          .hasMessageContaining("is not hex");
    }
    Files.writeString(facts, good + "membership-sealed=00\n");
    try (MemberFolder damaged = open()) {
      assertThatThrownBy(damaged::membership)
          .isInstanceOf(MemberException.Folder.class)
          .hasMessageContaining("has no group");
    }
    Files.writeString(facts, good + "membership-sealed=00\ngroup=ff\n");
    try (MemberFolder damaged = open()) {
      assertThatThrownBy(damaged::membership)
          .isInstanceOf(MemberException.Folder.class)
          .hasMessageContaining("does not decode");
    }
    Files.writeString(facts, good);
    try (MemberFolder mended = open()) {
      assertThat(mended.identity()).isEqualTo(identity);
    }
  }

  @Test
  void a_ticket_is_for_one_identity() throws Exception {
    IntentSigner wallet =
        new IntentSigner(
            "wallet", KeyPairGenerator.getInstance("Ed25519").generateKeyPair().getPrivate());
    TicketIntent.Builder intent =
        TicketIntent.newBuilder().setGroup("groups/approvers").setEpoch(2).setIdentity(identity);
    try (MemberFolder member = open()) {
      Ticket own = Ticket.of(wallet.sign(intent.build()));
      assertThat(own.isFor(member)).isTrue();
      assertThat(own.group()).isEqualTo("groups/approvers");
      assertThat(own.epoch()).isEqualTo(2);
      intent.setIdentity(ByteString.copyFrom(new byte[IntentVerifier.IDENTITY_BYTES]));
      assertThat(Ticket.of(wallet.sign(intent.build())).isFor(member)).isFalse();
    }
    for (SignedIntent none :
        List.of(
            SignedIntent.getDefaultInstance(),
            wallet.sign(intent.setEpoch(0).build()),
            wallet.sign(intent.setEpoch(2).setGroup("approvers").build()),
            wallet.sign(OpeningIntent.newBuilder().setGroup("groups/approvers").build()))) {
      assertThatThrownBy(() -> Ticket.of(none)).isInstanceOf(MemberException.Unfit.class);
    }
  }
}
