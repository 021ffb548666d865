package io.coterie.signer.policy;

import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequesterDirectory;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.NeededApprovals;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** The policy of this party's own configuration: pinned requester keys and a rule for each. */
public final class ConfiguredPolicy implements PolicyGate {
  private final RequesterDirectory requesters;
  private final Map<String, RequesterRule> rules;
  private final Map<String, RequesterRule> floors;

  /**
   * @param rules one for each requester, by name
   */
  public ConfiguredPolicy(RequesterDirectory requesters, Map<String, RequesterRule> rules) {
    this(requesters, rules, rules);
  }

  /**
   * @param floors rules whose floors count, by name, also of requesters that may ask for nothing
   *     now
   */
  ConfiguredPolicy(
      RequesterDirectory requesters,
      Map<String, RequesterRule> rules,
      Map<String, RequesterRule> floors) {
    if (!requesters.names().equals(rules.keySet())) {
      throw new IllegalArgumentException("each requester needs a key and a rule");
    }
    this.requesters = requesters;
    this.rules = Map.copyOf(rules);
    this.floors = new TreeMap<>(floors);
  }

  @Override
  public VerifiedIntent admit(SignedIntent signed) throws RefusedException {
    VerifiedIntent intent;
    try {
      intent = IntentVerifier.verify(signed, requesters);
    } catch (IntentException e) {
      throw RefusedException.malformed(
          reason(e.problem()), "intent: " + e.problem().text(), e.isSigned());
    }
    RequesterRule rule = rules.get(intent.requester());
    String denial =
        rule == null
            ? "the requester has no rule here"
            : rule.denial(intent).or(() -> floorDenial(intent)).orElse(null);
    if (denial != null) {
      throw RefusedException.forbidden(intent, denial);
    }
    return intent;
  }

  /**
   * A key stands on the highest floor of its name: a requester that may reshare it must not take it
   * below the rule of the one that may create it.
   */
  private Optional<String> floorDenial(VerifiedIntent intent) {
    return floors.entrySet().stream()
        .flatMap(
            each ->
                each.getValue().floorDenial(intent).stream()
                    .map(denial -> "by the rule of requester " + each.getKey() + ", " + denial))
        .findFirst();
  }

  @Override
  public boolean isStrict(String requester) {
    RequesterRule rule = rules.get(requester);
    return rule != null && rule.lapse() == RequesterRule.Lapse.NEVER;
  }

  @Override
  public Optional<NeededApprovals> approvals(String requester) {
    return Optional.ofNullable(rules.get(requester)).map(RequesterRule::approvals);
  }

  private static RefusalReason reason(IntentProblem problem) {
    return switch (problem) {
      case REQUESTER_UNKNOWN -> RefusalReason.REFUSAL_REASON_UNKNOWN_REQUESTER;
      case SIGNATURE_INVALID -> RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE;
      case EXPIRED -> RefusalReason.REFUSAL_REASON_INTENT_EXPIRED;
      case ENVELOPE_UNKNOWN_FIELD,
          PAYLOAD_MISSING,
          PAYLOAD_TOO_LARGE,
          PAYLOAD_TYPE_UNKNOWN,
          SIGNATURE_COUNT,
          KEYID_MALFORMED,
          PAYLOAD_UNDECODABLE,
          PAYLOAD_UNKNOWN_FIELD,
          PAYLOAD_NOT_MINIMAL,
          REQUEST_ID_MALFORMED,
          REQUEST_ID_AHEAD,
          KEY_NAME_MALFORMED,
          GROUP_NAME_MALFORMED,
          GROUP_DIGEST_LENGTH,
          IDENTITY_LENGTH,
          REQUEST_DIGEST_LENGTH,
          APPROVAL_LENGTH,
          RECIPIENT_LENGTH,
          INSTALLATION_MALFORMED,
          KEY_FINGERPRINT_LENGTH,
          SCHEME_UNSUPPORTED,
          DERIVATION_PATH_NOT_ALLOWED,
          DERIVATION_PATH_TOO_LONG,
          DERIVATION_PATH_HARDENED,
          TAPROOT_NOT_ALLOWED,
          TAPROOT_ROOT_LENGTH,
          PAYLOAD_NOT_FOR_SCHEME,
          DIGEST_LENGTH,
          EPOCH_OUT_OF_RANGE,
          RESHARE_EPOCH_OUT_OF_RANGE,
          MESSAGE_MISSING,
          MESSAGE_TOO_LARGE,
          MESSAGE_TOO_LARGE_FOR_SCHEME,
          PURPOSE_TOO_LONG,
          PURPOSE_MALFORMED,
          NOT_AFTER_MISSING,
          NOT_AFTER_MALFORMED,
          NOT_AFTER_TOO_FAR,
          THRESHOLD_OUT_OF_RANGE,
          ISSUER_THRESHOLD_OUT_OF_RANGE,
          IMPORT_NOT_FOR_SCHEME,
          IMPORT_THRESHOLD_OUT_OF_RANGE,
          SHARE_DIGESTS_MALFORMED,
          SHARES_OTHER,
          PARTY_COUNT,
          PARTY_NAME_MALFORMED,
          PARTY_DUPLICATE,
          PUBLIC_KEY_LENGTH,
          PUBLIC_KEY_OTHER ->
          RefusalReason.REFUSAL_REASON_MALFORMED_ORDER;
      case INSTALLATION_OTHER, KEY_FINGERPRINT_OTHER -> RefusalReason.REFUSAL_REASON_ORDER_MISMATCH;
      case RESHARE_EPOCH_OTHER -> RefusalReason.REFUSAL_REASON_RESHARED;
      case PAYLOAD_TOO_LONG_TO_SHOW,
          PAYLOAD_NOT_READ,
          MESSAGE_IS_DIGEST,
          MESSAGE_NOT_TEXT,
          MESSAGE_OF_CHAIN,
          ETHEREUM_TRANSACTION_MALFORMED,
          ETHEREUM_TRANSACTION_TYPE,
          ETHEREUM_CHAIN_ID_MISSING,
          TYPED_DATA_MALFORMED,
          TYPED_DATA_TOO_COMPLEX,
          TYPED_DATA_VALUE,
          PSBT_MALFORMED,
          PSBT_INPUT_UNKNOWN,
          PSBT_INPUT_FINAL,
          PSBT_UTXO_MISSING,
          PSBT_PREVIOUS_TRANSACTION,
          PSBT_UTXO_NOT_OF_KEY,
          PSBT_AMOUNT,
          PSBT_SIGHASH,
          PSBT_TAPROOT,
          SOLANA_TRANSACTION_MALFORMED,
          SOLANA_TRANSACTION_VERSION,
          SOLANA_SIGNER_MISSING,
          MESSAGE_IS_TRANSACTION,
          MESSAGE_VERSIONED ->
          RefusalReason.REFUSAL_REASON_BAD_PAYLOAD;
    };
  }
}
