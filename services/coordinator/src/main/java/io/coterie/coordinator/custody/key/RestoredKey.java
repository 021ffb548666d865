package io.coterie.coordinator.custody.key;

import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import java.util.Objects;

/**
 * A key that a client has kept, and what became of it in the store.
 *
 * @param epoch of the kept key
 */
public record RestoredKey(String name, int epoch, Fate fate) {

  /** The ends of a kept key, each with a text for people. */
  public enum Fate {
    WRITTEN("written", false),
    RENEWED("written in place of an earlier epoch", false),
    SAME("there already", false),
    LATER_HERE("left out: the database has a later epoch of it", false),
    OTHER_SHARES("left out: the database has other shares of this epoch", true),
    RENEWING("left out: a refresh or reshare of it runs; give the list again when it ended", true),
    NAME_TAKEN("left out: the database has another key of this name", true),
    REQUEST_TAKEN("left out: its request id belongs to another creation in the database", true);

    private final String text;
    private final boolean conflict;

    Fate(String text, boolean conflict) {
      this.text = text;
      this.conflict = conflict;
    }

    /** Whether somebody has to look at it. */
    public boolean isConflict() {
      return conflict;
    }
  }

  /** One line for people. */
  public String text() {
    return "%s, epoch %d: %s".formatted(name, epoch, fate.text);
  }

  /**
   * The fate of a kept key beside the running or successful attempt of its name.
   *
   * @param kept ACTIVE
   * @param renewing whether a refresh or reshare of that name runs
   */
  public static Fate beside(KeyRecord here, KeyRecord kept, boolean renewing) {
    if (here.state() != Key.State.ACTIVE || !isSameKey(here, kept)) {
      return Fate.NAME_TAKEN;
    }
    if (here.epoch() == kept.epoch()) {
      return keyPublic(here).equals(keyPublic(kept)) ? Fate.SAME : Fate.OTHER_SHARES;
    }
    if (here.epoch() > kept.epoch()) {
      return Fate.LATER_HERE;
    }
    return renewing ? Fate.RENEWING : Fate.RENEWED;
  }

  private static boolean isSameKey(KeyRecord one, KeyRecord other) {
    return one.header().requester().equals(other.header().requester())
        && one.header().requestId().equals(other.header().requestId())
        && one.header().intentDigest().equals(other.header().intentDigest())
        && KeyFingerprint.of(keyPublic(one)).equals(KeyFingerprint.of(keyPublic(other)));
  }

  private static KeyPublic keyPublic(KeyRecord key) {
    return Objects.requireNonNull(key.keyPublic());
  }
}
