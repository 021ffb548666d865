package io.coterie.coordinator.channel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.channel.ChannelAccount;
import io.coterie.platform.unseal.DataKeySource;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class AccountSealerTest {
  private final List<byte[]> handedOut = new ArrayList<>();
  private final AccountSealer sealer = new AccountSealer(source((byte) 7), new SecureRandom());
  private final ChannelAccount account =
      new ChannelAccount(new UUID(1, 2), 3, "password".getBytes(), 4, new byte[] {5, 6, 7});

  private DataKeySource source(byte fill) {
    return () -> {
      byte[] key = new byte[32];
      Arrays.fill(key, fill);
      handedOut.add(key);
      return key;
    };
  }

  @Test
  void what_was_sealed_comes_back_and_the_data_key_is_wiped() {
    ChannelAccount opened = sealer.unseal("a", sealer.seal("a", account));
    assertThat(opened.aci()).isEqualTo(account.aci());
    assertThat(opened.deviceId()).isEqualTo(3);
    assertThat(opened.registrationId()).isEqualTo(4);
    assertThat(opened.password()).isEqualTo(account.password());
    assertThat(opened.identityKeyPair()).isEqualTo(account.identityKeyPair());
    assertThat(handedOut).allSatisfy(key -> assertThat(key).containsOnly(0));
  }

  @Test
  void altered_truncated_anothers_or_under_another_key_is_refused() {
    byte[] sealed = sealer.seal("a", account);
    assertThat(new String(sealed, java.nio.charset.StandardCharsets.ISO_8859_1))
        .doesNotContain("password");
    for (int i = 0; i < sealed.length; i++) {
      byte[] altered = sealed.clone();
      altered[i] ^= 1;
      refused(() -> sealer.unseal("a", altered));
      byte[] cut = Arrays.copyOf(sealed, i);
      refused(() -> sealer.unseal("a", cut));
    }
    refused(() -> sealer.unseal("b", sealed));
    refused(() -> new AccountSealer(source((byte) 8), new SecureRandom()).unseal("a", sealed));
  }

  private static void refused(org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(IllegalStateException.class);
  }
}
