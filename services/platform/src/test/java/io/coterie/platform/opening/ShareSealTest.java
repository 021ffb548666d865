package io.coterie.platform.opening;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import java.security.SecureRandom;
import org.junit.jupiter.api.Test;

/**
 * A share is read by the key, for the opener and the intent that it was sealed for, or not at all.
 */
class ShareSealTest {
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final ByteString DIGEST = ByteString.copyFrom(new byte[32]);
  private static final ByteString SHARE = ByteString.copyFromUtf8("a share of an opening");

  private final ShareSeal.Recipient recipient = new ShareSeal.Recipient(RANDOM);

  private ByteString sealed() {
    return ShareSeal.seal(recipient.publicKey(), 3, DIGEST, SHARE, RANDOM).orElseThrow();
  }

  @Test
  void the_recipient_reads_it() {
    ByteString sealed = sealed();
    assertThat(recipient.open(3, DIGEST, sealed)).contains(SHARE);
    assertThat(sealed()).as("never twice the same").isNotEqualTo(sealed);
    assertThat(sealed.size()).isEqualTo(ShareSeal.KEY_BYTES + SHARE.size() + 16);
  }

  @Test
  void nobody_else_does_and_it_stands_for_nothing_else() {
    ByteString sealed = sealed();
    assertThat(new ShareSeal.Recipient(RANDOM).open(3, DIGEST, sealed)).isEmpty();
    assertThat(recipient.open(2, DIGEST, sealed)).isEmpty();
    byte[] other = new byte[32];
    other[31] = 1;
    assertThat(recipient.open(3, ByteString.copyFrom(other), sealed)).isEmpty();
    for (int place = 0; place < sealed.size(); place++) {
      byte[] altered = sealed.toByteArray();
      altered[place] ^= 1;
      assertThat(recipient.open(3, DIGEST, ByteString.copyFrom(altered))).isEmpty();
    }
    for (int length = 0; length < sealed.size(); length++) {
      assertThat(recipient.open(3, DIGEST, sealed.substring(0, length))).isEmpty();
    }
  }

  @Test
  void keys_that_are_none_are_refused() {
    for (int length : new int[] {0, 31, 33}) {
      ByteString none = ByteString.copyFrom(new byte[length]);
      assertThat(ShareSeal.seal(none, 3, DIGEST, SHARE, RANDOM)).isEmpty();
    }
    // Of small order: everybody knows what is agreed with it.
    for (byte first : new byte[] {0, 1}) {
      byte[] key = new byte[32];
      key[0] = first;
      assertThat(ShareSeal.seal(ByteString.copyFrom(key), 3, DIGEST, SHARE, RANDOM)).isEmpty();
    }
  }
}
