package io.coterie.coordinator.custody.key;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Timestamp;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.platform.attestation.AttestationException;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.IntentVerifier;
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
   * The end of a list of kept keys.
   *
   * @param proven the outcome of each key that its parties have signed
   * @param refused a line for people about each other one, which is not written
   */
  public record Outcome(List<RestoredKey> proven, List<String> refused) {
    public Outcome {
      proven = List.copyOf(proven);
      refused = List.copyOf(refused);
    }
  }

  /**
   * Writes those that their parties have signed, if the store does not have them, or has an earlier
   * epoch of them. Keys that are not ACTIVE are left out.
   *
   * @throws IllegalArgumentException if the trust file has a requester's key that is none; nothing
   *     is written then
   */
  public Outcome restore(List<Key> kept, Trust trust) {
    List<KeyRecord> records = new ArrayList<>();
    List<String> refused = new ArrayList<>();
    int number = 0;
    for (Key key : kept) {
      number++;
      if (key.getState() == Key.State.ACTIVE) {
        try {
          records.add(record(AttestedKey.of(key.getName(), key, trust), key));
        } catch (AttestationException e) {
          refused.add("%s: not written: %s".formatted(name(key, number), e.getMessage()));
        }
      }
    }
    return new Outcome(store.restore(records), refused);
  }

  /** No text of a list that is not believed comes into a line but the name of a key. */
  private static String name(Key key, int number) {
    return IntentVerifier.isKeyName(key.getName()) ? key.getName() : "key " + number;
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
