package io.coterie.platform.intent;

import com.google.protobuf.ByteString;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.IntentSignature;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import java.security.GeneralSecurityException;
import java.security.PrivateKey;
import java.security.PublicKey;

/** Signs intents on the requester's side. Thread-safe. */
public final class IntentSigner {
  private final String requester;
  private final PrivateKey key;

  /**
   * A signer.
   *
   * @param requester name of the requester, as the services' configuration knows it
   * @param key Ed25519 or P-256, for example from {@link RequesterKeys#privateKey}
   */
  public IntentSigner(String requester, PrivateKey key) {
    if (!Requester.isName(requester)) {
      throw new IllegalArgumentException(
          "requester name is not 1 to 63 of [a-z0-9._-], starting with [a-z0-9]");
    }
    RequesterKeys.requireSupported(key);
    this.requester = requester;
    this.key = key;
  }

  /** Signs "sign this". */
  public SignedIntent sign(SigningIntent intent) {
    return sign(Dsse.SIGNING_TYPE, intent.toByteString());
  }

  /** Signs "create this key". */
  public SignedIntent sign(KeyIntent intent) {
    return sign(Dsse.KEY_TYPE, intent.toByteString());
  }

  /** Signs "give this key new shares". */
  public SignedIntent sign(RefreshIntent intent) {
    return sign(Dsse.REFRESH_TYPE, intent.toByteString());
  }

  /** Signs "take over this key". */
  public SignedIntent sign(ImportIntent intent) {
    return sign(Dsse.IMPORT_TYPE, intent.toByteString());
  }

  /** Signs "give shares of this key to these parties". */
  public SignedIntent sign(ReshareIntent intent) {
    return sign(Dsse.RESHARE_TYPE, intent.toByteString());
  }

  /** Signs "never sign anything under this request id". */
  public SignedIntent sign(CancelIntent intent) {
    return sign(Dsse.CANCEL_TYPE, intent.toByteString());
  }

  /** Signs "make this epoch of a group of approvers". */
  public SignedIntent sign(GroupIntent intent) {
    return sign(Dsse.GROUP_TYPE, intent.toByteString());
  }

  /** Signs "let the holder of this key be a member". */
  public SignedIntent sign(TicketIntent intent) {
    return sign(Dsse.TICKET_TYPE, intent.toByteString());
  }

  /** Signs "tell me who made this approval". */
  public SignedIntent sign(OpeningIntent intent) {
    return sign(Dsse.OPENING_TYPE, intent.toByteString());
  }

  /** Whether it signs with the private half of that key. */
  public boolean isOf(PublicKey publicKey) {
    // The probe is of no type of intent, so the signature is good for nothing else.
    byte[] probe = Dsse.pae("application/vnd.coterie.probe", ByteString.EMPTY);
    try {
      return Dsse.verifies(publicKey, probe, Dsse.sign(key, probe));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("the JDK cannot sign with a key it has read", e);
    }
  }

  private SignedIntent sign(String payloadType, ByteString payload) {
    try {
      byte[] sig = Dsse.sign(key, Dsse.pae(payloadType, payload));
      return SignedIntent.newBuilder()
          .setPayload(payload)
          .setPayloadType(payloadType)
          .addSignatures(
              IntentSignature.newBuilder().setKeyid(requester).setSig(ByteString.copyFrom(sig)))
          .build();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("the JDK cannot sign with a key it has read", e);
    }
  }
}
