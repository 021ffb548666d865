package io.coterie.coordinator.custody.key;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.attestation.Holding;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.Key;
import java.util.ArrayList;
import java.util.List;

/**
 * A key that its parties hold shares of, with their word for it.
 *
 * @param keyPublic as the last session made it
 * @param attestation from its creation to that session
 */
public record MadeKey(KeyPublic keyPublic, Attestation attestation) {

  /** A new key. */
  public static MadeKey created(Completion completion) {
    return of(Attestation.newBuilder().addCompletions(completion).build());
  }

  /**
   * A stored key.
   *
   * @throws IllegalStateException if that was not made by this class
   */
  public static MadeKey of(Attestation attestation) {
    try {
      return new MadeKey(
          KeyPublic.parseFrom(
              attestation.getCompletions(attestation.getCompletionsCount() - 1).getKeyPublic()),
          attestation);
    } catch (InvalidProtocolBufferException | IndexOutOfBoundsException e) {
      throw new IllegalStateException("the stored attestation of a key is damaged", e);
    }
  }

  /**
   * The same key with the shares of a later session. A refresh that another session follows proves
   * nothing any more: it has changed neither the parties nor the threshold. Nor does a reshare,
   * since the later one names both: the oldest gives way when clients would take no more.
   */
  public MadeKey renewed(Completion completion) {
    List<Completion> chain = new ArrayList<>(attestation.getCompletionsList());
    if (isRefresh(chain.getLast())) {
      chain.removeLast();
    }
    if (chain.size() == AttestedKey.MAX_COMPLETIONS) {
      chain.remove(1);
    }
    chain.add(completion);
    return of(Attestation.newBuilder().addAllCompletions(chain).build());
  }

  /** Epoch that the last reshare made; 0 if the key was never reshared. */
  public int reshareEpoch() {
    return Holding.reshareEpoch(attestation);
  }

  /** Where it comes from. */
  public Key.Origin origin() {
    return attestation
            .getCompletions(0)
            .getSignedIntent()
            .getPayloadType()
            .equals(VerifiedIntent.KeyImport.PAYLOAD_TYPE)
        ? Key.Origin.IMPORTED
        : Key.Origin.GENERATED;
  }

  private static boolean isRefresh(Completion completion) {
    return completion
        .getSignedIntent()
        .getPayloadType()
        .equals(VerifiedIntent.KeyRefresh.PAYLOAD_TYPE);
  }
}
