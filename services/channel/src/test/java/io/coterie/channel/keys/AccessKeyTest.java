package io.coterie.channel.keys;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Test;
import org.signal.libsignal.protocol.IdentityKeyPair;

class AccessKeyTest {
  private final IdentityKeyPair identity = IdentityKeyPair.generate();
  private final Member self = member(1, identity);
  private final Member second = member(2, IdentityKeyPair.generate());
  private final Member third = member(3, IdentityKeyPair.generate());

  private static Member member(int id, IdentityKeyPair identity) {
    byte[] key = identity.getPublicKey().serialize();
    return new Member(
        "p" + id, Member.Role.PARTY, id, "test", UUID.randomUUID(), 1, key, new byte[32]);
  }

  private static Roster roster(int version, Member... members) {
    return new Roster("test", version, List.of(members));
  }

  @Test
  void every_process_of_a_member_has_the_same() {
    assertThat(AccessKey.of(identity, roster(1, self, second, third)))
        .isEqualTo(AccessKey.of(identity, roster(1, third, self, second)))
        .hasSameHashCodeAs(AccessKey.of(identity, roster(1, third, self, second)));
  }

  @Test
  void a_member_that_has_left_or_joins_later_knows_none_that_is_in_use() {
    AccessKey before = AccessKey.of(identity, roster(1, self, second, third));
    assertThat(AccessKey.of(identity, roster(1, self, second))).isNotEqualTo(before);
    assertThat(AccessKey.of(identity, roster(1, self, third))).isNotEqualTo(before);
    Member other = member(3, IdentityKeyPair.generate());
    assertThat(AccessKey.of(identity, roster(1, self, second, other)))
        .as("the third member with another identity")
        .isNotEqualTo(before);
    assertThat(AccessKey.of(identity, roster(3, self, second, third)))
        .as("the members of before, after one had left for a while")
        .isNotEqualTo(before);
  }

  @Test
  void public_keys_do_not_give_it() throws Exception {
    Mac mac = Mac.getInstance("HmacSHA256");
    byte[] info = "coterie/channel/access-key/1".getBytes(StandardCharsets.US_ASCII);
    mac.init(new SecretKeySpec(info, "HmacSHA256"));
    byte[] derivable = Arrays.copyOf(mac.doFinal(self.identityKey()), AccessKey.BYTES);
    Roster members = roster(1, self, second);
    assertThat(AccessKey.of(identity, members).bytes()).isNotEqualTo(derivable);
    assertThat(AccessKey.of(IdentityKeyPair.generate(), members))
        .isNotEqualTo(AccessKey.of(identity, members));
  }

  @Test
  void no_two_are_drawn_alike() {
    assertThat(AccessKey.random()).isNotEqualTo(AccessKey.random());
  }

  @Test
  void it_is_not_printed_and_cannot_be_changed() {
    AccessKey key = AccessKey.random();
    byte[] bytes = key.bytes();
    assertThat(key.toString())
        .doesNotContain(HexFormat.of().formatHex(bytes))
        .doesNotContain(Base64.getEncoder().encodeToString(bytes));
    bytes[0] ^= 1;
    assertThat(key.bytes()).isNotEqualTo(bytes);
    assertThat(key).isEqualTo(new AccessKey(key.bytes())).isNotEqualTo(new AccessKey(bytes));
    assertThatThrownBy(() -> new AccessKey(new byte[15]))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
