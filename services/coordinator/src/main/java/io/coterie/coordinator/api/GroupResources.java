package io.coterie.coordinator.api;

import com.google.protobuf.Timestamp;
import io.coterie.coordinator.custody.group.GroupRecord;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.custody.v1.Group;
import java.time.Instant;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Groups as resources of the API, and their names. */
final class GroupResources {
  /** Ten digits could be more than an epoch can be. */
  private static final Pattern NAME =
      Pattern.compile("(groups/[a-z][a-z0-9-]{0,62})/epochs/([1-9][0-9]{0,8})");

  private GroupResources() {}

  /** The parts of the name of a group's epoch. */
  record Name(String group, int epoch) {
    static Name parse(String name) {
      Matcher matcher = NAME.matcher(name);
      if (!matcher.matches()) {
        throw new CustodyException(ErrorReason.RESOURCE_NAME_INVALID);
      }
      return new Name(matcher.group(1), Integer.parseInt(matcher.group(2)));
    }
  }

  static boolean isName(String name) {
    return NAME.matcher(name).matches();
  }

  static Group group(GroupRecord record) {
    Instant created = record.createdAt();
    Group.Builder group =
        Group.newBuilder()
            .setName(record.name())
            .setGroup(record.group())
            .setEpoch(record.epoch())
            .setIssuerThreshold(record.issuerThreshold())
            .addAllIssuers(record.issuers())
            .setOpenerThreshold(record.openerThreshold())
            .addAllOpeners(record.openers())
            .setState(record.state())
            .setAttested(record.attested())
            .setSignedIntent(record.intent())
            .setCreateTime(
                Timestamp.newBuilder()
                    .setSeconds(created.getEpochSecond())
                    .setNanos(created.getNano()))
            .setRequestId(record.requestId());
    if (record.error() != null) {
      group.setError(record.error());
    }
    return group.build();
  }
}
