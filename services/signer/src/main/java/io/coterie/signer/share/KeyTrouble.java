package io.coterie.signer.share;

/**
 * Something that keeps a key from being used here as it might be.
 *
 * @param party id of the peer; {@link KeyShareStore#EVERY_PARTY} if the key is frozen
 * @param ends of this process in a multiplication with the peer; 0 if that is not why
 */
public record KeyTrouble(String key, int party, Kind kind, int ends) {
  /** From this many ends on somebody should look why the process dies. */
  public static final int WARN_AT = 2;

  /** From this many ends on the key's shares should be refreshed. */
  public static final int REFRESH_AT = 4;

  /** From this many ends on nothing is multiplied with the peer until they are. */
  public static final int EXCLUDE_AT = 8;

  /** How grave it is. */
  public enum Kind {
    /** No session of the key runs until the operator lifts it. */
    FROZEN,
    /** No session of the key runs with the peer until its shares are refreshed or reshared. */
    EXCLUDED,
    /** This party's own store went back: it multiplies nothing of the key until then. */
    WENT_BACK,
    /** The peer will soon be excluded: refresh the shares before that. */
    REFRESH_ADVISED,
    /** The process has died in the middle of multiplications: find out why before it goes on. */
    ENDED_UNCLEANLY
  }

  /** One line for people. */
  public String text() {
    return switch (kind) {
      case FROZEN ->
          key + " is frozen: an exclusion could not be stored; mend the disk, then lift the freeze";
      case EXCLUDED ->
          key
              + ": party "
              + party
              + " is excluded until its shares are refreshed"
              + (ends == 0 ? "" : ", after " + ends + " unclean ends of this process");
      case WENT_BACK ->
          key + ": this party's store went back to an earlier state; refresh or reshare the key";
      case REFRESH_ADVISED ->
          key
              + ": refresh its shares, this process has ended "
              + ends
              + " times in the middle of a multiplication with party "
              + party;
      case ENDED_UNCLEANLY ->
          key
              + ": this process has ended "
              + ends
              + " times in the middle of a multiplication with party "
              + party
              + "; a refresh is advised at "
              + REFRESH_AT;
    };
  }
}
