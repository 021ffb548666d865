package io.coterie.platform.intent;

import com.google.protobuf.ByteString;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import java.time.Duration;
import java.time.Instant;
import java.util.List;

/**
 * An intent whose signature belongs to a configured requester and whose every field is well-formed.
 * Only {@link IntentVerifier} makes one. It may have expired: see {@link #requireNotExpired}.
 */
public sealed interface VerifiedIntent {

  /** Name of the requester that signed it (DSSE {@code keyid}). */
  String requester();

  /** SHA-256 of the payload bytes, 32 bytes: two intents are the same when their digests are. */
  ByteString digest();

  /** As received; the coordinator forwards it to the signers. */
  SignedIntent envelope();

  /** The fields that every kind of intent has. */
  IntentTerms terms();

  /** See {@link RequestId}: the idempotency key within the requester. */
  default String requestId() {
    return terms().requestId();
  }

  /** Resource name, {@code keys/{key}}; of a group {@code groups/{group}}. */
  default String key() {
    return terms().key();
  }

  /** Of the key; unspecified for a group. */
  default Scheme scheme() {
    return terms().scheme();
  }

  /** Name of the installation whose parties may start it. */
  default String installation() {
    return terms().installation();
  }

  /** Free text for people and for policy; may be empty. */
  default String purpose() {
    return terms().purpose();
  }

  /** The time after which nobody may start on this intent. */
  default Instant notAfter() {
    return terms().notAfter();
  }

  /**
   * How long after the time of its request id an intent may be started: it is no standing
   * permission, and what is kept so that an id is not used twice can be forgotten after this.
   */
  Duration MAX_LIFE = Duration.ofHours(24);

  /**
   * How much later than here it may be at the requester. Small, because a party that forgets what
   * it did until some time takes no request id of before it.
   */
  Duration CLOCK_TOLERANCE = Duration.ofSeconds(1);

  /**
   * Refuses an intent that is too old to be started now, or from the future. Separate from
   * verification, because the answer to an old request may be repeated for ever.
   *
   * @throws IntentException with EXPIRED or REQUEST_ID_AHEAD
   */
  default void requireNotExpired(Instant now) throws IntentException {
    if (now.isAfter(notAfter())) {
      throw new IntentException(IntentProblem.EXPIRED);
    }
    if (isAhead(now, CLOCK_TOLERANCE)) {
      throw new IntentException(IntentProblem.REQUEST_ID_AHEAD);
    }
  }

  /** Whether its request id is of a time to come: it could be started for too long. */
  default boolean isAhead(Instant now, Duration tolerance) {
    return RequestId.time(requestId()).isAfter(now.plus(tolerance));
  }

  /** "Sign this." */
  record Signing(String requester, ByteString digest, SignedIntent envelope, SigningIntent intent)
      implements VerifiedIntent {

    @Override
    public IntentTerms terms() {
      return IntentTerms.of(intent);
    }

    /** Which member of the payload is set; it fits the scheme. */
    public PayloadKind payloadKind() {
      return PayloadKind.of(intent).orElseThrow();
    }

    /**
     * The bytes that {@code io.coterie.platform.payload} decodes, 1 byte to 64 KiB: of typed data
     * its UTF-8, of a Bitcoin input the PSBT.
     */
    public ByteString payload() {
      return payloadKind().content(intent);
    }

    /** The key's descendant that signs, at most 10 non-hardened numbers; empty: the key itself. */
    public List<Integer> derivationPath() {
      return intent.getDerivationPathList();
    }

    /** Which key signs: the descendant at {@link #derivationPath}, or its Taproot output key. */
    public KeyTarget target() {
      return KeyTarget.of(intent);
    }

    /** See {@link io.coterie.platform.scheme.KeyFingerprint}; 16 bytes. */
    public ByteString keyFingerprint() {
      return intent.getKeyFingerprint();
    }

    /** Epoch that the last reshare of the key made; 0 if it was never reshared. */
    public int reshareEpoch() {
      return intent.getReshareEpoch();
    }

    /** Leaves the message out, which belongs to the requester and not into logs. */
    @Override
    public String toString() {
      return "Signing[" + requester + ", " + requestId() + ", " + key() + "]";
    }
  }

  /** The first shares of a key. */
  sealed interface NewKey extends VerifiedIntent {

    /** Parties needed to sign, 1 to the number of parties. */
    int threshold();

    /** Names of the parties, 1 to 20, distinct, in the requester's order. */
    List<String> parties();
  }

  /** "Create this key." */
  record KeyCreation(String requester, ByteString digest, SignedIntent envelope, KeyIntent intent)
      implements NewKey {

    @Override
    public IntentTerms terms() {
      return IntentTerms.of(intent);
    }

    @Override
    public int threshold() {
      return intent.getThreshold();
    }

    @Override
    public List<String> parties() {
      return intent.getPartiesList();
    }

    @Override
    public String toString() {
      return "KeyCreation[" + requester + ", " + requestId() + ", " + key() + "]";
    }
  }

  /**
   * "Take over this key, which I have split."
   *
   * @param shares the encrypted shares that came beside it, in the order of the parties; empty if
   *     none did
   */
  record KeyImport(
      String requester,
      ByteString digest,
      SignedIntent envelope,
      ImportIntent intent,
      List<ByteString> shares)
      implements NewKey {
    /** DSSE payload type of the signed intent. */
    public static final String PAYLOAD_TYPE = Dsse.IMPORT_TYPE;

    public KeyImport {
      shares = List.copyOf(shares);
    }

    @Override
    public IntentTerms terms() {
      return IntentTerms.of(intent);
    }

    @Override
    public int threshold() {
      return intent.getThreshold();
    }

    @Override
    public List<String> parties() {
      return intent.getPartiesList();
    }

    /** The key's public key, 32 bytes; not checked to be one. */
    public ByteString publicKey() {
      return intent.getPublicKey();
    }

    /**
     * The same with its shares.
     *
     * @throws IntentException if they are not those whose digests are signed
     */
    public KeyImport with(List<ByteString> encrypted) throws IntentException {
      if (!encrypted.stream().map(Dsse::sha256).toList().equals(intent.getShareDigestsList())) {
        throw new IntentException(IntentProblem.SHARES_OTHER);
      }
      return new KeyImport(requester, digest, envelope, intent, encrypted);
    }

    /**
     * Whether this is the encrypted share of a party.
     *
     * @param party its name
     */
    public boolean isShareOf(String party, ByteString share) {
      int place = parties().indexOf(party);
      return place >= 0 && Dsse.sha256(share).equals(intent.getShareDigests(place));
    }

    @Override
    public String toString() {
      return "KeyImport[" + requester + ", " + requestId() + ", " + key() + "]";
    }
  }

  /** New shares of a key that stays as it is. */
  sealed interface NextEpoch extends VerifiedIntent {

    /** The epoch to be replaced, at least 1; the new one is one more. */
    int epoch();
  }

  /** "Give this key new shares." */
  record KeyRefresh(
      String requester, ByteString digest, SignedIntent envelope, RefreshIntent intent)
      implements NextEpoch {
    /** DSSE payload type of the signed intent. */
    public static final String PAYLOAD_TYPE = Dsse.REFRESH_TYPE;

    @Override
    public IntentTerms terms() {
      return IntentTerms.of(intent);
    }

    @Override
    public int epoch() {
      return intent.getEpoch();
    }

    /** See {@link io.coterie.platform.scheme.KeyFingerprint}; 16 bytes. */
    public ByteString keyFingerprint() {
      return intent.getKeyFingerprint();
    }

    @Override
    public String toString() {
      return "KeyRefresh[" + requester + ", " + requestId() + ", " + key() + "]";
    }
  }

  /** "Never sign anything under this request id." */
  record Cancellation(
      String requester, ByteString digest, SignedIntent envelope, CancelIntent intent)
      implements VerifiedIntent {

    @Override
    public IntentTerms terms() {
      return IntentTerms.of(intent);
    }

    /** See {@link io.coterie.platform.scheme.KeyFingerprint}; 16 bytes. */
    public ByteString keyFingerprint() {
      return intent.getKeyFingerprint();
    }

    /** Epoch that the last reshare before the cancelled request made; 0 if there was none. */
    public int reshareEpoch() {
      return intent.getReshareEpoch();
    }

    @Override
    public String toString() {
      return "Cancellation[" + requester + ", " + requestId() + ", " + key() + "]";
    }
  }

  /** "Give shares of this key to these parties, of whom so many sign." */
  record KeyReshare(
      String requester, ByteString digest, SignedIntent envelope, ReshareIntent intent)
      implements NextEpoch {
    /** DSSE payload type of the signed intent. */
    public static final String PAYLOAD_TYPE = Dsse.RESHARE_TYPE;

    @Override
    public IntentTerms terms() {
      return IntentTerms.of(intent);
    }

    @Override
    public int epoch() {
      return intent.getEpoch();
    }

    /** Parties needed to sign from then on, 1 to the number of parties. */
    public int threshold() {
      return intent.getThreshold();
    }

    /** Names of the parties that will hold a share, 1 to 20, distinct, in the requester's order. */
    public List<String> parties() {
      return intent.getPartiesList();
    }

    /** The key's public key, in the scheme's standard encoding. */
    public ByteString publicKey() {
      return intent.getPublicKey();
    }

    @Override
    public String toString() {
      return "KeyReshare[" + requester + ", " + requestId() + ", " + key() + "]";
    }
  }

  /** An epoch of a group of approvers. */
  sealed interface OfGroup extends VerifiedIntent {

    /** At least 1. */
    int epoch();
  }

  /** "Make this epoch of a group of approvers." */
  record GroupCreation(
      String requester, ByteString digest, SignedIntent envelope, GroupIntent intent)
      implements OfGroup {

    @Override
    public IntentTerms terms() {
      return IntentTerms.of(intent);
    }

    @Override
    public int epoch() {
      return intent.getEpoch();
    }

    /** Parties needed to admit a member, 2 to the number of issuers, at most 19. */
    public int issuerThreshold() {
      return intent.getIssuerThreshold();
    }

    /** Names of the issuers, 2 to 20, distinct, in the requester's order. */
    public List<String> issuers() {
      return intent.getIssuersList();
    }

    /** Parties needed to open an approval, 1 to the number of openers. */
    public int openerThreshold() {
      return intent.getOpenerThreshold();
    }

    /** Names of the openers, 1 to 20, distinct, in the requester's order. */
    public List<String> openers() {
      return intent.getOpenersList();
    }

    @Override
    public String toString() {
      return "GroupCreation[%s, %s, %s, %d]".formatted(requester, requestId(), key(), epoch());
    }
  }

  /** "Let the holder of this key be a member of that epoch." Its digest is the ticket's name. */
  record Ticket(String requester, ByteString digest, SignedIntent envelope, TicketIntent intent)
      implements OfGroup {

    @Override
    public IntentTerms terms() {
      return IntentTerms.of(intent);
    }

    @Override
    public int epoch() {
      return intent.getEpoch();
    }

    /** The Ed25519 key that the member signs with, 32 bytes; not checked to be one. */
    public ByteString identity() {
      return intent.getIdentity();
    }

    @Override
    public String toString() {
      return "Ticket[%s, %s, %s, %d]".formatted(requester, requestId(), key(), epoch());
    }
  }

  /** "Tell me who made this approval." */
  record Opening(String requester, ByteString digest, SignedIntent envelope, OpeningIntent intent)
      implements OfGroup {

    @Override
    public IntentTerms terms() {
      return IntentTerms.of(intent);
    }

    @Override
    public int epoch() {
      return intent.getEpoch();
    }

    /** The digest of the request that the approval is for, 32 bytes. */
    public ByteString request() {
      return intent.getRequest();
    }

    /** Whether the approval says that the request must not be done. */
    public boolean rejection() {
      return intent.getRejection();
    }

    /** 416 bytes; not checked to be one. */
    public ByteString approval() {
      return intent.getApproval();
    }

    /** The X25519 key that shares are sealed to, 32 bytes; not checked to be one. */
    public ByteString recipient() {
      return intent.getRecipient();
    }

    @Override
    public String toString() {
      return "Opening[%s, %s, %s, %d]".formatted(requester, requestId(), key(), epoch());
    }
  }
}
