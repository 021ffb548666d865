package io.coterie.simulation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.proto.party.v1.PartyMessage;

/** Messages of members. */
final class Messages {
  private Messages() {}

  static PartyMessage parse(byte[] body) {
    try {
      return PartyMessage.parseFrom(body);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("a member sent what does not decode", e);
    }
  }

  /** Describes a message in words, for the trace. */
  static String describe(PartyMessage message, Checker checker) {
    return switch (message.getBodyCase()) {
      case ENVELOPE -> "envelope of " + checker.name(message.getEnvelope().getSessionId());
      case REPORT -> {
        ByteString session = message.getReport().getSessionId();
        yield "report "
            + message.getReport().getOutcomeCase()
            + reason(message)
            + " of "
            + checker.name(session);
      }
      case CLAIM_COUNT ->
          "has claimed "
              + message.getClaimCount().getCount()
              + " in start "
              + message.getClaimCount().getStarts();
      default -> message.getBodyCase().name();
    };
  }

  private static String reason(PartyMessage message) {
    return switch (message.getReport().getOutcomeCase()) {
      case REFUSED -> " " + message.getReport().getRefused().getReason();
      case ABORTED ->
          " "
              + message.getReport().getAborted().getCause()
              + message.getReport().getAborted().getCulpritsList();
      default -> "";
    };
  }
}
