package io.coterie.signer.order;

import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Something that this party does not do until it is lifted, whatever a requester has signed.
 *
 * @param reason of whoever set it, one line
 * @param since null if that is not known
 */
public record Hold(Scope scope, Cause cause, String reason, @Nullable Instant since) {

  /** The reasons for which a hold is set, each with its way out. */
  public enum Cause {
    /** The operator of this party has asked for it. */
    OPERATOR("the operator of this party, with 'lift'"),
    /**
     * A frozen key: the core advised it, or a party could not be written down that the key must not
     * be used with.
     */
    FREEZE("the operator of this party, with 'unfreeze', once its reason is mended");

    private final String lifter;

    Cause(String lifter) {
      this.lifter = lifter;
    }

    /** The one who may lift it, and how. */
    public String lifter() {
      return lifter;
    }
  }

  /**
   * The orders that are held.
   *
   * @param text {@code installation}, {@code keys/KEY} or {@code requesters/REQUESTER}
   */
  public record Scope(String text) {
    private static final String INSTALLATION = "installation";
    private static final String REQUESTERS = "requesters/";

    /** Each {@link #kind}. */
    public static final List<String> KINDS = List.of(INSTALLATION, "key", "requester");

    private static final Pattern FORM =
        Pattern.compile(
            INSTALLATION
                + "|keys/[a-z][a-z0-9-]{0,62}|"
                + REQUESTERS
                + "[a-z0-9][a-z0-9._-]{0,62}");

    public Scope {
      if (!FORM.matcher(text).matches()) {
        throw new IllegalArgumentException(
            "'" + text + "' is not installation, keys/KEY or requesters/REQUESTER");
      }
    }

    /** As a metric's label; one of {@link #KINDS}. */
    public String kind() {
      return text.equals(INSTALLATION)
          ? INSTALLATION
          : text.startsWith(REQUESTERS) ? "requester" : "key";
    }

    /**
     * Whether an order is one of these.
     *
     * @param requester null if nobody asked for it
     */
    boolean covers(String key, @Nullable String requester) {
      return text.equals(INSTALLATION)
          || text.equals(key)
          || (requester != null && text.equals(REQUESTERS + requester));
    }
  }

  /** One line for people. */
  public String text() {
    return "%s is on hold%s: %s; lifted by %s"
        .formatted(scope.text(), since == null ? "" : " since " + since, reason, cause.lifter());
  }

  /** The hold of a list that a session meets, if there is one. */
  static Optional<Hold> on(Iterable<Hold> holds, Set<Cause> causes, SessionPlan plan) {
    SessionPlan.Request request = plan.request();
    return on(holds, causes, plan.key(), request == null ? null : request.requester());
  }

  /** The same for work on a key, or on a group, which only a wider hold covers. */
  static Optional<Hold> on(
      Iterable<Hold> holds, Set<Cause> causes, String resource, @Nullable String requester) {
    for (Hold hold : holds) {
      if (causes.contains(hold.cause) && hold.scope.covers(resource, requester)) {
        return Optional.of(hold);
      }
    }
    return Optional.empty();
  }
}
