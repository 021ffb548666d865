package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.HexFormat;
import java.util.List;

/** Decodes the payload of a signing intent. */
public final class Payloads {
  private Payloads() {}

  /**
   * Decodes a payload.
   *
   * @param intent of a {@link io.coterie.platform.intent.VerifiedIntent.Signing}: its sizes have
   *     been checked and its payload fits its scheme
   * @param publicKey the key that will sign: the key's own, or its child at the intent's derivation
   *     path (ECDSA: 33 bytes, compressed)
   * @throws IntentException if the payload is not what it claims to be, or is not for this key
   */
  public static DecodedPayload decode(SigningIntent intent, ByteString publicKey)
      throws IntentException {
    PayloadKind kind =
        PayloadKind.of(intent)
            .orElseThrow(() -> new IntentException(IntentProblem.MESSAGE_MISSING));
    return switch (kind) {
      case MESSAGE ->
          new DecodedPayload(
              kind,
              intent.getMessage(),
              List.of(
                  new DecodedPayload.Field(
                      "length", Integer.toString(intent.getMessage().size()))));
      case DIGEST ->
          new DecodedPayload(
              kind,
              intent.getDigest(),
              List.of(
                  new DecodedPayload.Field(
                      "digest", HexFormat.of().formatHex(intent.getDigest().toByteArray()))));
      case ETHEREUM_TRANSACTION ->
          throw new IntentException(IntentProblem.ETHEREUM_TRANSACTION_MALFORMED);
      case ETHEREUM_MESSAGE, ETHEREUM_TYPED_DATA ->
          throw new IntentException(IntentProblem.TYPED_DATA_MALFORMED);
      case BITCOIN_INPUT -> throw new IntentException(IntentProblem.PSBT_MALFORMED);
    };
  }
}
