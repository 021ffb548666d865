package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.OpenersKey;
import io.coterie.proto.core.v1.PartyBytes;
import java.util.List;

/** A step in the life of a group. */
sealed interface GroupStep {
  /** As in metrics and the audit trail. */
  String label();

  /** A step in the making of a group. */
  sealed interface Making extends GroupStep {}

  /** A step in the admission of a member. */
  sealed interface Admission extends GroupStep {}

  /** A step in the opening of an approval. */
  sealed interface Audit extends GroupStep {}

  /** [G1] make and sign the openers' key. */
  record Opening() implements Making {
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
  record Issuing(OpenersKey openers) implements Making {
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
  record Publish(OpenersKey openers) implements Making {
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
  record Keep(ByteString attested) implements Making {
    @Override
    public String label() {
      return "keep";
    }
  }

  /**
   * [U1], [U2] bind a ticket and answer its application.
   *
   * @param application as the coordinator shows it
   */
  record Reserve(ByteString application) implements Admission {
    @Override
    public String label() {
      return "reserve_ticket";
    }
  }

  /**
   * [U4] make the member's record.
   *
   * @param shares of issuers, as the coordinator shows them
   * @param acceptance the identity's signature of its point
   */
  record Register(List<PartyBytes> shares, ByteString acceptance) implements Admission {
    public Register {
      shares = List.copyOf(shares);
    }

    @Override
    public String label() {
      return "register_member";
    }
  }

  /**
   * [U5], [T] count a run and take part in it.
   *
   * @param runOrder that the identity has signed
   * @param session that the member has drawn for it
   * @param issuers ids of those that take part, ascending
   */
  record Join(ByteString runOrder, SessionId session, List<Integer> issuers) implements Admission {
    public Join {
      issuers = List.copyOf(issuers);
    }

    @Override
    public String label() {
      return "join";
    }
  }

  /** [O1] share the opening of an approval. */
  record Open() implements Audit {
    @Override
    public String label() {
      return "open_approval";
    }
  }

  /**
   * [R7] tell the registry.
   *
   * @param after ticket of the last entry that was told; empty at first
   */
  record Members(ByteString after) implements Audit {
    @Override
    public String label() {
      return "list_members";
    }
  }
}
