package io.coterie.platform.attestation;

import java.util.Locale;

/** The exact reason why a client does not believe an answer about a key. */
public enum AttestationProblem {
  NAME_MALFORMED("the answer gives no key a name of the form keys/{key}", Advice.REPORT),
  NAME_OTHER("the answer is about another key", Advice.REPORT),
  NOT_ACTIVE("its state is %s, not ACTIVE", Advice.WAIT),
  UNKNOWN_FIELD("the answer has a field that this version does not know", Advice.UPDATE),
  NO_COMPLETION("the answer carries no attestation", Advice.REPORT),
  TOO_LONG("%s more than %d %s", Advice.REPORT),

  INTENT_INVALID("the intent of %s is refused: %s", Advice.REPORT),
  REQUESTER_UNKNOWN("the trust file does not name the requester of %s", Advice.COMPARE),
  INTENT_SIGNATURE("no key of requester %s has signed the intent of %s", Advice.COMPARE),
  REQUESTER_NOT_ALLOWED("requester %s may not ask for this key, but asked for %s", Advice.COMPARE),
  REQUESTER_WITHOUT_RIGHT("requester %s may not %s keys, but asked for %s", Advice.COMPARE),
  INTENT_KIND("the intent of %s asks for something else", Advice.REPORT),
  INTENT_KEY_OTHER("the intent of %s is about another key", Advice.REPORT),
  INTENT_INSTALLATION_OTHER("the intent of %s is for another installation", Advice.COMPARE),
  SCHEME_CHANGED("the intent of %s names another scheme than the creation", Advice.REPORT),
  EPOCH_ORDER("%s replaces an epoch that was replaced before", Advice.REPORT),
  INTENT_PUBLIC_KEY_OTHER("the intent of %s names another public key", Advice.REPORT),
  THRESHOLD_FLOOR("%s asks for a threshold below the %d of requester %s", Advice.COMPARE),
  PARTIES_FLOOR("%s asks for fewer parties than the %d of requester %s", Advice.COMPARE),

  SESSION_ID("the session id of %s is not 32 bytes", Advice.REPORT),
  SIGNATURE_ORDER("the signatures of %s are not in ascending order of the parties", Advice.REPORT),
  SIGNATURE_STRANGER("party %d has signed %s and is none of its parties", Advice.COMPARE),
  SIGNATURE_INVALID("the signature of party %d under %s does not verify", Advice.COMPARE),
  SIGNATURE_MISSING("%s has not signed %s", Advice.REPORT),

  USE_MISSING("fewer than %d parties have signed that they use their shares of %s", Advice.LATER),

  KEY_PUBLIC_MALFORMED("the public data of %s are not those of such a key", Advice.REPORT),
  KEY_ID_OTHER("the public data of %s are those of another key", Advice.REPORT),
  EPOCH_OTHER("the public data of %s are of another epoch", Advice.REPORT),
  THRESHOLD_OTHER("the public data of %s have another threshold than was asked for", Advice.REPORT),
  PUBLIC_KEY_CHANGED("%s changes the public key", Advice.REPORT),
  PARTIES_OTHER("the shares of %s are not those of the parties asked for", Advice.COMPARE),
  PARTIES_AMBIGUOUS("the trust file gives parties of %s their ids in several ways", Advice.COMPARE),

  GROUP_NAME_MALFORMED(
      "the answer gives no group a name of the form groups/{group}", Advice.REPORT),
  GROUP_OTHER("the answer is about another group", Advice.REPORT),
  GROUP_EPOCH_OTHER("%s is about another epoch of the group", Advice.REPORT),
  GROUP_PARTY_UNKNOWN("the trust file does not name party %s of the group", Advice.COMPARE),

  FIELD_OTHER("field %s of the answer is not as the parties have signed it", Advice.REPORT),

  RECEIPT_MALFORMED("a receipt is malformed, or of a kind that is not known here", Advice.UPDATE),
  RECEIPT_ORDER("the receipts are not in ascending order of the parties", Advice.REPORT),
  RECEIPT_STRANGER("party %d has given a receipt and held no share then", Advice.REPORT),
  RECEIPT_OTHER("the receipt of %s is no NEVER of this request", Advice.REPORT),
  RECEIPT_SIGNATURE("the receipt of %s does not verify", Advice.COMPARE),
  RESHARE_UNKNOWN("the attestation shows no reshare that made epoch %d", Advice.COMPARE),
  RESHARE_FLOOR(
      "the parties of reshare epoch %d, or those that sign, are fewer than the trust file asks for"
          + " now",
      Advice.PAST),

  CURRENT_ORDER("the parties' answers to the challenge are not in ascending order", Advice.REPORT),
  CURRENT_STRANGER("party %d has answered the challenge and holds no share", Advice.REPORT),
  CURRENT_SIGNATURE("the answer of %s to the challenge does not verify", Advice.COMPARE),
  CURRENT_LATER("%s uses epoch %s, the coordinator shows epoch %d", Advice.EPOCH);

  /** The remedies. */
  private static final class Advice {
    static final String REPORT =
        "Do not use the key; show the answer to the operators of the coordinator and the parties.";
    static final String COMPARE =
        "Do not use the key; compare the trust file with the one of the parties' operators, and"
            + " replace it if it is old.";
    static final String LATER =
        "Do not use the key yet: ask again, and show the answer to the operators of the coordinator"
            + " and the parties if it stays so.";
    static final String EPOCH =
        "Ask again: a refresh or reshare may be ending. If it stays so, compare with the audit"
            + " records of the parties.";
    static final String PAST =
        "Its parties prove nothing: look for the payload where it would have gone, and ask for it"
            + " under no other id before.";
    static final String WAIT = "Ask again when it is.";
    static final String UPDATE = "Do not use the key; repeat this with the installation's version.";
  }

  private final String text;
  private final String advice;

  AttestationProblem(String text, String advice) {
    this.text = text;
    this.advice = advice;
  }

  /** Says what is wrong and what to do, on one line. */
  String line(Object... facts) {
    return String.format(Locale.ROOT, text, facts) + ". " + advice;
  }
}
