package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.order.PresignatureLimits;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.ThreadWorkPool;
import io.coterie.signer.party.WorkPool;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A session takes each place once, and gives it back once. */
class LeasesTest {
  private static final Member COORDINATOR =
      new Member(
          "coordinator",
          Member.Role.COORDINATOR,
          0,
          "eu",
          UUID.nameUUIDFromBytes(new byte[] {1}),
          1,
          new byte[33],
          new byte[0]);

  private final WorkPool pool = new ThreadWorkPool("leases", 1, Duration.ZERO);
  private int made;

  @AfterEach
  void close() {
    pool.close();
  }

  /** Two places for sessions, one for a requester's, two for those that only wait. */
  private final Leases leases =
      new Leases(
          new SessionLimits(
              2,
              1,
              Duration.ofSeconds(60),
              Duration.ZERO,
              Duration.ZERO,
              new PresignatureLimits(1, 1, 1, 4, Duration.ofSeconds(60))));

  private Session session() {
    byte[] id = new byte[32];
    id[0] = (byte) ++made;
    return new Session(
        new SessionId(ByteString.copyFrom(id)),
        COORDINATOR,
        null,
        pool.lane(),
        pool.nanos(),
        (from, event, to) -> {},
        failed -> {});
  }

  private Session after(Session older) {
    Session newer = session();
    while (newer.orderedNanos - older.orderedNanos <= 0) {
      newer = session();
    }
    return newer;
  }

  @Test
  void place_that_is_given_back_twice_is_free_once() {
    Session first = session();
    assertThat(leases.admit(first)).isTrue();
    assertThat(leases.admit(session())).isTrue();
    assertThat(leases.admit(session())).isFalse();
    first.untilLastSent.close();
    first.untilLastSent.close();
    assertThat(leases.admit(session())).isTrue();
    assertThat(leases.admit(session())).isFalse();
  }

  @Test
  void session_that_got_no_place_gives_none_back() {
    leases.admit(session());
    leases.admit(session());
    Session refused = session();
    assertThat(leases.admit(refused)).isFalse();
    refused.untilLastSent.close();
    assertThat(leases.admit(session())).isFalse();
  }

  @Test
  void requesters_take_no_place_of_each_other() {
    Session first = session();
    assertThat(leases.admit(first, "wallet")).isTrue();
    assertThat(leases.admit(session(), "wallet")).isFalse();
    assertThat(leases.admit(session(), "exchange")).isTrue();
    first.untilLastSent.close();
    assertThat(leases.admit(session(), "wallet")).isTrue();
  }

  @Test
  void a_requester_alone_leaves_places_to_others() {
    Leases many =
        new Leases(
            new SessionLimits(
                256,
                256,
                Duration.ofSeconds(60),
                Duration.ZERO,
                Duration.ZERO,
                new PresignatureLimits(1, 1, 1, 4, Duration.ofSeconds(60))));
    int got = 0;
    while (many.admit(session(), "wallet")) {
      got++;
    }
    assertThat(got).isEqualTo(224);
    assertThat(many.admit(session(), "exchange")).isTrue();
  }

  @Test
  void as_many_wait_for_their_signature_as_run() {
    assertThat(leases.admit(session())).isTrue();
    Session first = session();
    assertThat(leases.combine(first)).isTrue();
    assertThat(leases.combine(session())).isTrue();
    assertThat(leases.combine(session())).isFalse();
    first.untilEnd.close();
    assertThat(leases.combine(session())).isTrue();
  }

  @Test
  void newer_order_takes_the_place_of_a_key_and_keeps_it_when_the_older_one_ends()
      throws Exception {
    Session older = session();
    Session newer = after(older);
    Session newest = after(newer);
    assertThat(leases.makeShare(older, "treasury")).isEmpty();
    assertThat(leases.makeShare(newer, "treasury")).containsSame(older);
    older.untilEnd.close();
    assertThat(leases.makeShare(newest, "treasury")).containsSame(newer);
    newest.untilEnd.close();
    assertThat(leases.makeShare(session(), "treasury")).isEmpty();
  }

  @Test
  void older_order_does_not_get_the_place_of_a_key() throws Exception {
    Session older = session();
    Session newer = after(older);
    assertThat(leases.makeShare(newer, "treasury")).isEmpty();
    assertThatThrownBy(() -> leases.makeShare(older, "treasury"))
        .isInstanceOf(RefusedException.class);
    older.untilEnd.close();
    assertThat(leases.makeShare(after(newer), "treasury")).containsSame(newer);
    assertThat(leases.makeShare(older, "payroll")).isEmpty();
  }
}
