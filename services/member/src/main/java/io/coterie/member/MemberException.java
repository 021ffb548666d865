package io.coterie.member;

import java.util.OptionalInt;

/**
 * A failure at a member's, a counter's or an auditor's. The message is one line for a person; it
 * names files, groups and numbers, and never a secret.
 */
public abstract sealed class MemberException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private MemberException(String message) {
    super(message);
  }

  @Override
  public String getMessage() {
    String message = super.getMessage();
    return message == null ? "" : message;
  }

  /**
   * The folder cannot be used: its passphrase is wrong, it is damaged, in use, or has not joined.
   */
  public static final class Folder extends MemberException {
    private static final long serialVersionUID = 1L;

    Folder(String message) {
      super(message);
    }
  }

  /** A ticket or an intent is none, or for another group, folder or identity. */
  public static final class Unfit extends MemberException {
    private static final long serialVersionUID = 1L;

    Unfit(String message) {
      super(message);
    }
  }

  /** An answer is not signed by those of the trust file; there is no use in asking again. */
  public static final class NotBelieved extends MemberException {
    private static final long serialVersionUID = 1L;

    NotBelieved(String message) {
      super(message);
    }
  }

  /** A run of the join has ended without a key. The next one may have other issuers. */
  public static final class RunAborted extends MemberException {
    private static final long serialVersionUID = 1L;

    RunAborted(String message) {
      super(message);
    }
  }

  /** A run of the join had no end in time. The next one may. */
  public static final class RunUnanswered extends MemberException {
    private static final long serialVersionUID = 1L;

    RunUnanswered(String message) {
      super(message);
    }
  }

  /** All runs that a ticket pays for went wrong. */
  public static final class TicketSpent extends MemberException {
    private static final long serialVersionUID = 1L;

    TicketSpent(String message) {
      super(message);
    }
  }

  /** An approval does not hold, or there are fewer than needed. */
  public static final class NotApproved extends MemberException {
    private static final long serialVersionUID = 1L;

    /** Negative if none is to blame. */
    private final int place;

    NotApproved(OptionalInt place, String message) {
      super(message);
      this.place = place.orElse(-1);
    }

    /** Place in the list of the approval that does not hold, from 0; empty if they are too few. */
    public OptionalInt place() {
      return place < 0 ? OptionalInt.empty() : OptionalInt.of(place);
    }
  }

  /** The registries name nobody for an approval that was opened, or several. */
  public static final class Unnamed extends MemberException {
    private static final long serialVersionUID = 1L;

    Unnamed(String message) {
      super(message);
    }
  }
}
