package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import java.util.List;

/**
 * This party's share of one key, as it is stored.
 *
 * @param key resource name, {@code keys/{key}}
 * @param epoch generation of the shares
 * @param parties ids of all parties of the key, ascending
 * @param keyPublic what all parties must agree on
 * @param sealed opaque to everything but the core
 * @param session the key generation that made it
 * @param coordinator roster name of the coordinator that ordered it
 * @param requester whose request id it is
 * @param requestId the request that made it
 * @param intentDigest SHA-256 of that request's intent
 */
public record KeyShare(
    String key,
    int epoch,
    Scheme scheme,
    State state,
    List<Integer> parties,
    KeyPublic keyPublic,
    ByteString sealed,
    SessionId session,
    String coordinator,
    String requester,
    String requestId,
    ByteString intentDigest) {

  /** How far a share has come. Only an active one signs. */
  public enum State {
    /** Stored here; not yet known to be stored by every party. */
    PROVISIONAL,
    /** Every party of the key reported the same public data. */
    ACTIVE
  }

  public int threshold() {
    return keyPublic.getThreshold();
  }

  /** The same share, active. */
  public KeyShare activated() {
    return new KeyShare(
        key,
        epoch,
        scheme,
        State.ACTIVE,
        parties,
        keyPublic,
        sealed,
        session,
        coordinator,
        requester,
        requestId,
        intentDigest);
  }

  @Override
  public String toString() {
    return "KeyShare[" + key + " epoch " + epoch + " " + state + "]";
  }
}
