package io.coterie.coordinator.custody.key;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Timestamp;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.platform.attestation.AttestationException;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Trust;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * Writes keys anew that a lost database had, from the answers that a client has kept. The parties'
 * signatures and the requesters' intents in them say all that was stored; a time is the exception.
 */
public final class KeyRestoration {
  private final KeyStore store;

  public KeyRestoration(KeyStore store) {
    this.store = store;
  }

  /**
   * Writes those that the store does not have, or has an earlier epoch of; keys that are not ACTIVE
   * are left out.
   *
   * @return the outcome of each
   * @throws AttestationException if one of them is not what its parties have signed; nothing is
   *     written then
   */
  public List<RestoredKey> restore(List<Key> kept, Trust trust) throws AttestationException {
    List<KeyRecord> records = new ArrayList<>();
    for (Key key : kept) {
      if (key.getState() == Key.State.ACTIVE) {
        records.add(record(AttestedKey.of(key.getName(), key, trust), key));
      }
    }
    return store.restore(records);
  }

  private static KeyRecord record(AttestedKey attested, Key key) {
    SignedIntent creation = key.getAttestation().getCompletions(0).getSignedIntent();
    List<KeyRecord.Holder> holders = new ArrayList<>();
    Iterator<String> names = attested.parties().iterator();
    for (VerificationShare share : attested.keyPublic().getVerificationSharesList()) {
      holders.add(new KeyRecord.Holder(share.getParty(), names.next()));
    }
    return new KeyRecord(
        0,
        header(creation, attested),
        attested.name(),
        attested.scheme(),
        attested.threshold(),
        holders,
        Key.State.ACTIVE,
        0,
        MadeKey.of(key.getAttestation()),
        null);
  }

  /** Header of the request that made the key; the id says when the request came. */
  private static RequestHeader header(SignedIntent creation, AttestedKey attested) {
    try {
      KeyIntent intent = KeyIntent.parseFrom(creation.getPayload());
      Timestamp end = intent.getNotAfter();
      return new RequestHeader(
          creation.getSignatures(0).getKeyid(),
          intent.getRequestId(),
          attested.creation(),
          creation,
          Instant.ofEpochSecond(end.getSeconds(), end.getNanos()),
          RequestId.time(intent.getRequestId()));
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("an attested intent cannot be read", e);
    }
  }
}
