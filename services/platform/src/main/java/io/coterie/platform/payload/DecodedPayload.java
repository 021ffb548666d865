package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.proto.custody.v1.DecodedField;
import java.util.List;

/**
 * A payload that was understood.
 *
 * @param kind which member of the intent's payload it was
 * @param toSign input of the scheme: the message (BLS, Ed25519), or a digest of 32 bytes (ECDSA,
 *     BIP-340)
 * @param fields its contents, for people and for audit records, in the order of the payload
 */
public record DecodedPayload(PayloadKind kind, ByteString toSign, List<Field> fields) {
  /** Lines: enough for a payment to 400 recipients, or 60 KiB of a message in hexadecimal. */
  public static final int MAX_FIELDS = 512;

  /** Characters (code points) of a line's value. */
  public static final int MAX_VALUE = 256;

  public DecodedPayload {
    fields = List.copyOf(fields);
    if (fields.size() > MAX_FIELDS) {
      throw new IllegalArgumentException("more than " + MAX_FIELDS + " fields");
    }
  }

  /**
   * One line.
   *
   * @param name such as {@code to}
   * @param value one line of printable characters, at most {@link #MAX_VALUE}
   */
  public record Field(String name, String value) {}

  /** The form that the API and audit records have. */
  public io.coterie.proto.custody.v1.DecodedPayload toProto() {
    io.coterie.proto.custody.v1.DecodedPayload.Builder proto =
        io.coterie.proto.custody.v1.DecodedPayload.newBuilder().setKind(kind.label());
    for (Field field : fields) {
      proto.addFields(DecodedField.newBuilder().setName(field.name()).setValue(field.value()));
    }
    return proto.build();
  }

  /** Leaves the fields out, which belong to the requester and not into logs. */
  @Override
  public String toString() {
    return "DecodedPayload[" + kind.label() + "]";
  }
}
