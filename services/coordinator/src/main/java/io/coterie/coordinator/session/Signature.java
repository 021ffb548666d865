package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import java.util.OptionalInt;

/**
 * A signature.
 *
 * @param bytes in the scheme's standard encoding
 * @param recoveryId ECDSA: 0 to 3, which of the keys that it verifies under is the signer's
 */
public record Signature(ByteString bytes, OptionalInt recoveryId) {}
