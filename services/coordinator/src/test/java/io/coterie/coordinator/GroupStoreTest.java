package io.coterie.coordinator;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.coordinator.custody.group.GroupRecord;
import io.coterie.coordinator.custody.group.GroupStore;
import io.coterie.coordinator.custody.group.GroupStore.Creation;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.storage.JdbcGroupStore;
import io.coterie.coordinator.storage.JdbcReplicaStore;
import io.coterie.coordinator.storage.Worker;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.custody.v1.SignedIntent;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

/** Groups in PostgreSQL, as two replicas see them. */
class GroupStoreTest {
  private static final ByteString ATTESTED = ByteString.copyFromUtf8("attested");
  private static final Status WHY = Status.newBuilder().setCode(10).setMessage("why").build();
  private static GroupStore first;
  private static GroupStore second;

  @BeforeAll
  static void open() {
    PGSimpleDataSource postgres = StoreContractTest.postgres();
    first = replica(postgres, "first");
    second = replica(postgres, "second");
  }

  private static GroupStore replica(PGSimpleDataSource postgres, String name) {
    Worker worker = new Worker(name, Duration.ofMinutes(10));
    new JdbcReplicaStore(postgres, worker).seen();
    return new JdbcGroupStore(postgres, worker);
  }

  private static GroupRecord attempt(String group, int epoch) {
    return new GroupRecord(
        0,
        new RequestHeader(
            "wallet",
            RequestId.next(),
            ByteString.copyFrom(new byte[32]),
            SignedIntent.newBuilder().setPayload(ByteString.copyFromUtf8("intent")).build(),
            StoreContractTest.NOW.plusSeconds(60),
            StoreContractTest.NOW),
        "groups/" + group,
        epoch,
        2,
        List.of("alpha", "bravo", "charlie"),
        1,
        List.of("auditor"),
        Group.State.CREATING,
        ByteString.EMPTY,
        null);
  }

  private static GroupRecord stored(GroupRecord attempt) {
    return ((Creation.Stored) first.create(attempt)).record();
  }

  @Test
  void an_epoch_belongs_to_one_request_also_after_it_failed() {
    GroupRecord one = stored(attempt("once", 1));
    assertThat(second.create(one)).isEqualTo(new Creation.Known(one));
    assertThat(second.create(attempt("once", 1))).isInstanceOf(Creation.EpochTaken.class);
    assertThat(first.finish(one.id(), ByteString.EMPTY, WHY)).isTrue();
    assertThat(second.find("groups/once", 1)).contains(one.failed(WHY));
    assertThat(second.create(attempt("once", 1))).isInstanceOf(Creation.EpochTaken.class);
    assertThat(second.create(attempt("once", 2))).isInstanceOf(Creation.Stored.class);
  }

  @Test
  void it_ends_once() {
    GroupRecord made = stored(attempt("ends", 1));
    assertThat(first.finish(made.id(), ATTESTED, null)).isTrue();
    assertThat(second.finish(made.id(), ByteString.EMPTY, WHY)).isFalse();
    assertThat(second.findRequest("wallet", made.requestId())).contains(made.active(ATTESTED));
    assertThat(second.take(made.id())).as("ended").isEmpty();
  }

  @Test
  void it_is_the_work_of_one_replica() {
    GroupRecord mine = stored(attempt("mine", 1));
    assertThat(second.take(mine.id())).isEmpty();
    assertThat(second.takeAll(true)).doesNotContain(mine);
    assertThat(first.take(mine.id())).contains(mine);
    assertThat(first.takeAll(true)).contains(mine);
    assertThat(first.takeAll(false)).doesNotContain(mine);
  }

  @Test
  void lists_are_in_the_order_of_group_and_epoch() {
    List<GroupRecord> all =
        List.of(
            stored(attempt("list-a", 2)),
            stored(attempt("list-a", 10)),
            stored(attempt("list-b", 1)));
    Set<String> globs = Set.of("groups/list-*");
    assertThat(second.list("", 0, globs, 10)).isEqualTo(all);
    assertThat(second.list("groups/list-a", 2, globs, 1)).containsExactly(all.get(1));
    assertThat(second.list("groups/list-a", 10, globs, 10)).containsExactly(all.get(2));
    assertThat(second.list("", 0, Set.of("keys/*"), 10)).isEmpty();
  }
}
