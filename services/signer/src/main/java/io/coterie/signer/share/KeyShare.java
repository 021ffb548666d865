package io.coterie.signer.share;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.payload.BitcoinAddress;
import io.coterie.platform.payload.Chain;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.trust.Roster;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * This party's share of one key, as it is stored; or, after a reshare to others, that it has none.
 *
 * @param key resource name, {@code keys/{key}}
 * @param epoch generation of the shares
 * @param reshareEpoch epoch that the last reshare of the key made, of these shares or of earlier
 *     ones; 0 if it was never reshared
 * @param parties ids of all parties of the key, ascending; this one is not among them if it has
 *     left
 * @param members ids of the parties of the session that made it, ascending: the key's, and those
 *     that leave it
 * @param keyPublic public data that all parties must agree on
 * @param sealed opaque to everything but the core; empty if this party has left
 * @param origin session and request that made it
 * @param certificate that every party of the session has stored its end of it; null unless active
 */
public record KeyShare(
    String key,
    int epoch,
    int reshareEpoch,
    Scheme scheme,
    State state,
    List<Integer> parties,
    List<Integer> members,
    KeyPublic keyPublic,
    ByteString sealed,
    Origin origin,
    @Nullable Certificate certificate) {

  /** A share of a key that was never reshared. */
  public KeyShare(
      String key,
      int epoch,
      Scheme scheme,
      State state,
      List<Integer> parties,
      List<Integer> members,
      KeyPublic keyPublic,
      ByteString sealed,
      Origin origin,
      @Nullable Certificate certificate) {
    this(key, epoch, 0, scheme, state, parties, members, keyPublic, sealed, origin, certificate);
  }

  /**
   * The session that made a share, and the request that it served.
   *
   * @param session that made it
   * @param coordinator roster name of the coordinator that ordered the session
   * @param requester whose request id it is
   * @param requestId the request for the share
   * @param intentDigest SHA-256 of that request's intent
   */
  public record Origin(
      SessionId session,
      String coordinator,
      String requester,
      String requestId,
      ByteString intentDigest) {}

  /** How far a share has come. Only an active one signs. */
  public enum State {
    /** Stored here; not yet known to be stored by every party. */
    PROVISIONAL,
    /** Every party of the key reported the same public data. */
    ACTIVE,
    /**
     * A party said that it has none of this session, or a later one was stored: this party may take
     * part in another. Kept, since what was said may be a lie, until a share is active that this
     * one can never replace.
     */
    ABANDONED
  }

  /**
   * Whether the key is shared by others from this epoch on. Provisional: this party's older share
   * is destroyed as soon as all of them have stored theirs.
   */
  public boolean left() {
    return sealed.isEmpty();
  }

  /** Whether it is a share of a key of that scheme, public key and chain code. */
  public boolean isOf(Scheme other, KeyPublic data) {
    return scheme == other && KeyFingerprint.of(keyPublic).equals(KeyFingerprint.of(data));
  }

  /** The session that made it. */
  public SessionId session() {
    return origin.session();
  }

  public int threshold() {
    return keyPublic.getThreshold();
  }

  /** The statement of a party that it has stored this share. */
  CompletedStatement statement(Roster roster) {
    return CompletedStatement.stored(
        roster.installation(), session().bytes(), keyPublic, origin.intentDigest());
  }

  /** Whether a certificate is one of this share: of its session, public data and parties. */
  boolean isCertifiedBy(Certificate shown, Roster roster) {
    return shown.certifies(statement(roster), members, roster);
  }

  /** The same share, active. */
  public KeyShare activated(@Nullable Certificate proof) {
    return in(State.ACTIVE, proof);
  }

  /** The same share, kept but not waited for. */
  public KeyShare abandoned() {
    return in(State.ABANDONED, null);
  }

  private KeyShare in(State next, @Nullable Certificate proof) {
    return new KeyShare(
        key, epoch, reshareEpoch, scheme, next, parties, members, keyPublic, sealed, origin, proof);
  }

  /**
   * The public facts for people, a line each: the key's name alone, then its scheme, shares, public
   * key, fingerprint, and the addresses of the key itself on the main networks.
   */
  public List<String> lines() {
    SchemeKeys keys = SchemeKeys.of(scheme);
    List<String> lines = new ArrayList<>();
    lines.add(key);
    lines.add(line("scheme", lowerCase(scheme.name().replaceFirst("^SCHEME_", ""))));
    lines.add(line("shares", "%d of parties %s".formatted(threshold(), parties)));
    lines.add(line("epoch", epoch + (left() ? ", of which this party has no share" : "")));
    lines.add(line("public key", hex(keys.verifyingKey(keyPublic, KeyTarget.SELF))));
    keys.xpub(keyPublic).ifPresent(xpub -> lines.add(line("xpub", xpub)));
    lines.add(line("fingerprint", KeyFingerprint.text(KeyFingerprint.of(keyPublic))));
    for (Chain chain : Chain.values()) {
      if (chain.has(scheme)) {
        String address =
            chain.address(scheme, keyPublic, List.of(), BitcoinAddress.Network.MAINNET);
        lines.add(line(lowerCase(chain.name()), address));
      }
    }
    return lines;
  }

  private static String line(String label, String value) {
    return "  %-11s %s".formatted(label, value);
  }

  private static String lowerCase(String name) {
    return name.toLowerCase(Locale.ROOT).replace('_', '-');
  }

  private static String hex(ByteString bytes) {
    return HexFormat.of().formatHex(bytes.toByteArray());
  }

  @Override
  public String toString() {
    return "KeyShare[" + key + " epoch " + epoch + " " + state + "]";
  }
}
