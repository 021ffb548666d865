package io.coterie.platform.intent;

import com.google.protobuf.Timestamp;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * The fields that every kind of intent has. Checked only if they come from a {@link
 * VerifiedIntent}.
 *
 * @param requestId UUID, lower case
 * @param key resource name, {@code keys/{key}}; of a group {@code groups/{group}}
 * @param scheme of the key; unspecified for a group
 * @param installation whose parties may start it
 * @param purpose free text; may be empty
 * @param end nobody may start on the intent after it; null if the message lacks it
 */
public record IntentTerms(
    String requestId,
    String key,
    Scheme scheme,
    String installation,
    String purpose,
    @Nullable Timestamp end) {

  static IntentTerms of(SigningIntent intent) {
    return new IntentTerms(
        intent.getRequestId(),
        intent.getKey(),
        intent.getScheme(),
        intent.getInstallation(),
        intent.getPurpose(),
        intent.hasNotAfter() ? intent.getNotAfter() : null);
  }

  static IntentTerms of(KeyIntent intent) {
    return new IntentTerms(
        intent.getRequestId(),
        intent.getKey(),
        intent.getScheme(),
        intent.getInstallation(),
        intent.getPurpose(),
        intent.hasNotAfter() ? intent.getNotAfter() : null);
  }

  static IntentTerms of(ImportIntent intent) {
    return new IntentTerms(
        intent.getRequestId(),
        intent.getKey(),
        intent.getScheme(),
        intent.getInstallation(),
        intent.getPurpose(),
        intent.hasNotAfter() ? intent.getNotAfter() : null);
  }

  static IntentTerms of(RefreshIntent intent) {
    return new IntentTerms(
        intent.getRequestId(),
        intent.getKey(),
        intent.getScheme(),
        intent.getInstallation(),
        intent.getPurpose(),
        intent.hasNotAfter() ? intent.getNotAfter() : null);
  }

  static IntentTerms of(ReshareIntent intent) {
    return new IntentTerms(
        intent.getRequestId(),
        intent.getKey(),
        intent.getScheme(),
        intent.getInstallation(),
        intent.getPurpose(),
        intent.hasNotAfter() ? intent.getNotAfter() : null);
  }

  static IntentTerms of(CancelIntent intent) {
    return new IntentTerms(
        intent.getRequestId(),
        intent.getKey(),
        intent.getScheme(),
        intent.getInstallation(),
        intent.getPurpose(),
        intent.hasNotAfter() ? intent.getNotAfter() : null);
  }

  static IntentTerms of(GroupIntent intent) {
    return new IntentTerms(
        intent.getRequestId(),
        intent.getGroup(),
        Scheme.SCHEME_UNSPECIFIED,
        intent.getInstallation(),
        intent.getPurpose(),
        intent.hasNotAfter() ? intent.getNotAfter() : null);
  }

  static IntentTerms of(TicketIntent intent) {
    return new IntentTerms(
        intent.getRequestId(),
        intent.getGroup(),
        Scheme.SCHEME_UNSPECIFIED,
        intent.getInstallation(),
        intent.getPurpose(),
        intent.hasNotAfter() ? intent.getNotAfter() : null);
  }

  static IntentTerms of(OpeningIntent intent) {
    return new IntentTerms(
        intent.getRequestId(),
        intent.getGroup(),
        Scheme.SCHEME_UNSPECIFIED,
        intent.getInstallation(),
        intent.getPurpose(),
        intent.hasNotAfter() ? intent.getNotAfter() : null);
  }

  /** The end as a time; the beginning of 1970 if the message lacks it. */
  Instant notAfter() {
    return end == null ? Instant.EPOCH : Instant.ofEpochSecond(end.getSeconds(), end.getNanos());
  }
}
