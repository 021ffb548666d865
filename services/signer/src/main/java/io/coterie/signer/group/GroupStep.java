package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.OpenersKey;

/** A step in the making of a group. */
sealed interface GroupStep {
  /** As in metrics and the audit trail. */
  String label();

  /** [G1] make and sign the openers' key. */
  record Opening() implements GroupStep {
    @Override
    public String label() {
      return "make_openers_key";
    }
  }

  /**
   * [D1] make the issuing key.
   *
   * @param openers key that all openers have signed, as the coordinator shows it
   */
  record Issuing(OpenersKey openers) implements GroupStep {
    @Override
    public String label() {
      return "make_issuing_key";
    }
  }

  /**
   * [D3] publish the group.
   *
   * @param openers as above
   */
  record Publish(OpenersKey openers) implements GroupStep {
    @Override
    public String label() {
      return "publish";
    }
  }

  /**
   * [D4.3] keep the group.
   *
   * @param attested that all issuers have signed, as the coordinator shows it
   */
  record Keep(ByteString attested) implements GroupStep {
    @Override
    public String label() {
      return "keep";
    }
  }
}
