package io.coterie.platform.intent;

import io.coterie.platform.error.ErrorReason;

/** The exact fault of a signed intent. The name appears as metadata of the error. */
public enum IntentProblem {
  ENVELOPE_UNKNOWN_FIELD(ErrorReason.INTENT_MALFORMED, "the envelope has a field unknown here"),
  PAYLOAD_MISSING(ErrorReason.INTENT_MALFORMED, "payload is empty"),
  PAYLOAD_TOO_LARGE(ErrorReason.REQUEST_TOO_LARGE, "payload has more than 128 KiB"),
  PAYLOAD_TYPE_UNKNOWN(ErrorReason.INTENT_MALFORMED, "payload_type is not one of an intent"),
  SIGNATURE_COUNT(ErrorReason.INTENT_MALFORMED, "signatures must have exactly one element"),
  KEYID_MALFORMED(
      ErrorReason.INTENT_MALFORMED, "keyid is not 1 to 63 of [a-z0-9._-], starting with [a-z0-9]"),
  REQUESTER_UNKNOWN(ErrorReason.UNKNOWN_REQUESTER, "keyid names no requester configured here"),
  SIGNATURE_INVALID(
      ErrorReason.INTENT_SIGNATURE_INVALID, "sig does not verify with the requester's key"),
  PAYLOAD_UNDECODABLE(ErrorReason.INTENT_MALFORMED, "payload is not an encoded intent"),
  PAYLOAD_UNKNOWN_FIELD(ErrorReason.INTENT_MALFORMED, "the intent has a field unknown here"),
  PAYLOAD_NOT_MINIMAL(
      ErrorReason.INTENT_MALFORMED,
      "the intent's encoding is not the canonical one: fields in the order of their numbers, none"
          + " twice, no default spelled out"),
  REQUEST_ID_MALFORMED(
      ErrorReason.INTENT_MALFORMED, "request_id is not a lower-case UUID of version 7"),
  REQUEST_ID_AHEAD(
      ErrorReason.INTENT_MALFORMED, "the time in request_id is ahead of the clock here"),
  KEY_NAME_MALFORMED(
      ErrorReason.INTENT_MALFORMED,
      "key is not keys/{key} with 1 to 63 of [a-z0-9-], starting with a letter"),
  GROUP_NAME_MALFORMED(
      ErrorReason.INTENT_MALFORMED,
      "group is not groups/{group} with 1 to 63 of [a-z0-9-], starting with a letter"),
  GROUP_DIGEST_LENGTH(ErrorReason.INTENT_MALFORMED, "approvers.digest does not have 32 bytes"),
  IDENTITY_LENGTH(ErrorReason.INTENT_MALFORMED, "identity does not have 32 bytes"),
  REQUEST_DIGEST_LENGTH(ErrorReason.INTENT_MALFORMED, "request does not have 32 bytes"),
  APPROVAL_LENGTH(ErrorReason.INTENT_MALFORMED, "approval does not have 416 bytes"),
  RECIPIENT_LENGTH(ErrorReason.INTENT_MALFORMED, "recipient does not have 32 bytes"),
  SCHEME_UNSUPPORTED(ErrorReason.UNSUPPORTED_SCHEME, "scheme is unset or unknown here"),
  DERIVATION_PATH_NOT_ALLOWED(
      ErrorReason.INTENT_MALFORMED, "derivation_path must be empty for this scheme"),
  DERIVATION_PATH_TOO_LONG(
      ErrorReason.INTENT_MALFORMED, "derivation_path has more than 10 numbers"),
  DERIVATION_PATH_HARDENED(
      ErrorReason.INTENT_MALFORMED, "derivation_path has a number of 2^31 or more"),
  TAPROOT_NOT_ALLOWED(ErrorReason.INTENT_MALFORMED, "taproot must be absent for this scheme"),
  TAPROOT_ROOT_LENGTH(
      ErrorReason.INTENT_MALFORMED, "taproot.merkle_root is neither empty nor 32 bytes"),
  MESSAGE_MISSING(ErrorReason.INTENT_MALFORMED, "there is nothing to sign"),
  MESSAGE_TOO_LARGE(ErrorReason.REQUEST_TOO_LARGE, "the payload has more than 64 KiB"),
  MESSAGE_TOO_LARGE_FOR_SCHEME(
      ErrorReason.REQUEST_TOO_LARGE, "ED25519_EXACT signs messages of at most 1359 bytes"),
  PAYLOAD_NOT_FOR_SCHEME(
      ErrorReason.INTENT_MALFORMED, "keys of this scheme do not sign this kind of payload"),
  DIGEST_LENGTH(ErrorReason.INTENT_MALFORMED, "digest is not 32 bytes"),
  EPOCH_OUT_OF_RANGE(ErrorReason.INTENT_MALFORMED, "epoch is not 1 to 2^31 - 2"),
  ETHEREUM_TRANSACTION_MALFORMED(
      ErrorReason.PAYLOAD_INVALID,
      "ethereum_transaction is not an unsigned transaction in canonical RLP"),
  ETHEREUM_TRANSACTION_TYPE(
      ErrorReason.PAYLOAD_INVALID,
      "ethereum_transaction is of a type other than legacy, EIP-2930 and EIP-1559"),
  ETHEREUM_CHAIN_ID_MISSING(
      ErrorReason.PAYLOAD_INVALID,
      "ethereum_transaction names no chain, so it would be valid on all of them"),
  TYPED_DATA_MALFORMED(
      ErrorReason.PAYLOAD_INVALID, "ethereum_typed_data is not EIP-712 typed data"),
  TYPED_DATA_TOO_COMPLEX(
      ErrorReason.PAYLOAD_INVALID,
      "ethereum_typed_data is nested deeper or has more parts than allowed"),
  TYPED_DATA_VALUE(
      ErrorReason.PAYLOAD_INVALID, "a value of ethereum_typed_data is not one of its type"),
  PAYLOAD_TOO_LONG_TO_SHOW(
      ErrorReason.PAYLOAD_INVALID,
      "the payload says more than 512 lines can show, so nobody could check it: split it"),
  PAYLOAD_NOT_READ(
      ErrorReason.PAYLOAD_INVALID,
      "no signer can read all of the payload; a rule that allows digest has Ethereum's and"
          + " Bitcoin's signed by their hash"),
  MESSAGE_IS_DIGEST(
      ErrorReason.PAYLOAD_INVALID,
      "message has 32 bytes and may be a hash; an Ed25519 key signs it as digest, if a rule allows that"),
  MESSAGE_NOT_TEXT(
      ErrorReason.PAYLOAD_INVALID,
      "message is not text: UTF-8, without control characters other than tab and"
          + " line ends, and without characters that hide or reorder others"),
  PSBT_MALFORMED(
      ErrorReason.PAYLOAD_INVALID, "psbt is not a PSBT of version 0, or has an entry twice"),
  PSBT_INPUT_UNKNOWN(ErrorReason.PAYLOAD_INVALID, "psbt has no such input"),
  PSBT_INPUT_FINAL(ErrorReason.PAYLOAD_INVALID, "the input of psbt is final already"),
  PSBT_UTXO_MISSING(
      ErrorReason.PAYLOAD_INVALID, "the input of psbt does not say which output it spends"),
  PSBT_PREVIOUS_TRANSACTION(
      ErrorReason.PAYLOAD_INVALID,
      "an input of psbt does not have its previous transaction (non_witness_utxo), without which"
          + " its amount, and so the fee, is a claim; inputs that Taproot signs for need none"),
  PSBT_UTXO_NOT_OF_KEY(
      ErrorReason.PAYLOAD_INVALID,
      "the output that the input of psbt spends does not pay to this key by P2WPKH (ECDSA) or P2TR"
          + " (BIP-340)"),
  PSBT_TAPROOT(
      ErrorReason.PAYLOAD_INVALID,
      "the intent has no taproot, or the input of psbt has another internal key or merkle root"),
  PSBT_AMOUNT(
      ErrorReason.PAYLOAD_INVALID,
      "an amount of psbt is impossible, or it spends more than it has"),
  PSBT_SIGHASH(
      ErrorReason.PAYLOAD_INVALID,
      "psbt asks for a signature other than SIGHASH_ALL or, with Taproot, SIGHASH_DEFAULT"),
  SOLANA_TRANSACTION_MALFORMED(
      ErrorReason.PAYLOAD_INVALID,
      "solana_transaction is not the message of a transaction in its only encoding"),
  SOLANA_TRANSACTION_VERSION(
      ErrorReason.PAYLOAD_INVALID, "solana_transaction is of a version other than legacy, 0 and 1"),
  SOLANA_SIGNER_MISSING(
      ErrorReason.PAYLOAD_INVALID, "solana_transaction does not have this key among its signers"),
  MESSAGE_IS_TRANSACTION(
      ErrorReason.PAYLOAD_INVALID,
      "message is a Solana transaction: it can be signed as solana_transaction only"),
  MESSAGE_OF_CHAIN(
      ErrorReason.PAYLOAD_INVALID,
      "message of an Ed25519 key begins as what a chain takes for a transaction (Algorand, Internet"
          + " Computer, aeternity)"),
  MESSAGE_VERSIONED(
      ErrorReason.PAYLOAD_INVALID,
      "message begins as a versioned Solana transaction does (first byte 0x80 or above) and is not"
          + " a well-formed Solana off-chain message of this key"),
  INSTALLATION_MALFORMED(ErrorReason.INTENT_MALFORMED, "installation is not 1 to 63 of [a-z0-9-]"),
  INSTALLATION_OTHER(
      ErrorReason.INTENT_MALFORMED, "installation is another one than the trust file here names"),
  KEY_FINGERPRINT_LENGTH(ErrorReason.INTENT_MALFORMED, "key_fingerprint is not 16 bytes"),
  KEY_FINGERPRINT_OTHER(
      ErrorReason.INTENT_MALFORMED, "key_fingerprint is not that of the key here of that name"),
  RESHARE_EPOCH_OUT_OF_RANGE(
      ErrorReason.INTENT_MALFORMED, "reshare_epoch is neither 0 nor 2 to 2^31 - 1"),
  RESHARE_EPOCH_OTHER(
      ErrorReason.KEY_RESHARED, "reshare_epoch is not that of the key here of that name"),
  PURPOSE_TOO_LONG(ErrorReason.INTENT_MALFORMED, "purpose has more than 256 characters"),
  PURPOSE_MALFORMED(
      ErrorReason.INTENT_MALFORMED, "purpose has control, formatting or line-break characters"),
  NOT_AFTER_MISSING(ErrorReason.INTENT_MALFORMED, "not_after is not set"),
  NOT_AFTER_MALFORMED(ErrorReason.INTENT_MALFORMED, "not_after is not a valid timestamp"),
  NOT_AFTER_TOO_FAR(
      ErrorReason.INTENT_MALFORMED, "not_after is more than 24 hours after the time in request_id"),
  EXPIRED(ErrorReason.INTENT_EXPIRED, "not_after has passed"),
  THRESHOLD_OUT_OF_RANGE(
      ErrorReason.THRESHOLD_INVALID, "threshold is not 1 to the number of parties"),
  ISSUER_THRESHOLD_OUT_OF_RANGE(ErrorReason.THRESHOLD_INVALID, "issuer_threshold is not 2 to 19"),
  IMPORT_NOT_FOR_SCHEME(
      ErrorReason.UNSUPPORTED_SCHEME, "only keys of ED25519_EXACT can be imported"),
  IMPORT_THRESHOLD_OUT_OF_RANGE(
      ErrorReason.THRESHOLD_INVALID,
      "any two parties sign with an imported key: threshold is not 2"),
  SHARE_DIGESTS_MALFORMED(
      ErrorReason.INTENT_MALFORMED, "share_digests does not have 32 bytes for each party"),
  SHARES_OTHER(
      ErrorReason.INTENT_MALFORMED,
      "encrypted_shares are not those that share_digests names, in the order of the parties"),
  PARTY_COUNT(ErrorReason.THRESHOLD_INVALID, "parties must have 1 to 20 elements"),
  PARTY_NAME_MALFORMED(ErrorReason.INTENT_MALFORMED, "a party's name is not 1 to 63 of [a-z0-9-]"),
  PARTY_DUPLICATE(ErrorReason.INTENT_MALFORMED, "a party occurs twice"),
  PUBLIC_KEY_LENGTH(ErrorReason.INTENT_MALFORMED, "public_key is not 1 to 96 bytes"),
  PUBLIC_KEY_OTHER(ErrorReason.INTENT_MALFORMED, "public_key is not the key's");

  private final ErrorReason reason;
  private final String text;

  IntentProblem(ErrorReason reason, String text) {
    this.reason = reason;
    this.text = text;
  }

  /** The stable reason it is reported under. */
  public ErrorReason reason() {
    return reason;
  }

  /** One line for people. */
  public String text() {
    return text;
  }
}
