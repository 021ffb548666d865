package io.coterie.signer.policy;

import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.signer.order.NeededApprovals;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Trust;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/** Admits what the signed trust file and this party's own rules both allow a requester. */
public final class TrustedPolicy implements PolicyGate {
  private final ConfiguredPolicy local;
  private final Map<String, Trust.Requester> believed;
  private final List<Trust.Requester> all;
  private final List<String> leftOut;

  /**
   * @param believed requesters of the trust file that have a rule here, by name
   * @param all requesters of the trust file
   */
  TrustedPolicy(
      ConfiguredPolicy local,
      Map<String, Trust.Requester> believed,
      List<Trust.Requester> all,
      List<String> leftOut) {
    this.local = local;
    this.believed = Map.copyOf(believed);
    this.all = List.copyOf(all);
    this.leftOut = List.copyOf(leftOut);
  }

  /** Requesters of the configuration that the trust file does not bear out, in words. */
  public List<String> leftOut() {
    return leftOut;
  }

  @Override
  public VerifiedIntent admit(SignedIntent signed) throws RefusedException {
    VerifiedIntent intent = local.admit(signed);
    String denial = denial(intent).orElse(null);
    if (denial != null) {
      throw RefusedException.forbidden(intent, denial);
    }
    return intent;
  }

  @Override
  public boolean isStrict(String requester) {
    return local.isStrict(requester);
  }

  @Override
  public Optional<NeededApprovals> approvals(String requester) {
    return local.approvals(requester);
  }

  private Optional<String> denial(VerifiedIntent intent) {
    Trust.Requester entry = Objects.requireNonNull(believed.get(intent.requester()));
    if (!entry.mayAskFor(intent.key())) {
      return Optional.of("the trust file does not let the requester use this key");
    }
    return switch (intent) {
      case VerifiedIntent.Signing _, VerifiedIntent.Cancellation _ -> Optional.empty();
      case VerifiedIntent.KeyCreation creation ->
          denial(entry, KeyRight.CREATE)
              .or(() -> floorDenial(creation, creation.threshold(), creation.parties().size()));
      case VerifiedIntent.KeyImport taken ->
          denial(entry, KeyRight.IMPORT)
              .or(() -> floorDenial(taken, taken.threshold(), taken.parties().size()));
      case VerifiedIntent.KeyReshare reshare ->
          denial(entry, KeyRight.RESHARE)
              .or(() -> floorDenial(reshare, reshare.threshold(), reshare.parties().size()));
      case VerifiedIntent.KeyRefresh _ -> denial(entry, KeyRight.REFRESH);
      case VerifiedIntent.GroupCreation group ->
          denial(entry, KeyRight.CREATE)
              .or(() -> floorDenial(group, group.issuerThreshold(), group.issuers().size()));
      // It takes the right to make the group: members can approve.
      case VerifiedIntent.Ticket _ -> denial(entry, KeyRight.CREATE);
      case VerifiedIntent.Opening _ -> denial(entry, KeyRight.OPEN);
    };
  }

  /** A key stands on the highest floor of its name, as in {@link ConfiguredPolicy}. */
  private Optional<String> floorDenial(VerifiedIntent intent, int threshold, int parties) {
    return all.stream()
        .filter(entry -> entry.bounds(intent.key()))
        .filter(entry -> threshold < entry.minThreshold() || parties < entry.minParties())
        .findFirst()
        .map(
            entry ->
                "by the trust file's entry of requester %s, no key of this name is for fewer than"
                        .formatted(entry.name())
                    + " %d parties to use or fewer than %d to hold"
                        .formatted(entry.minThreshold(), entry.minParties()));
  }

  private static Optional<String> denial(Trust.Requester entry, KeyRight right) {
    return entry.rights().contains(right)
        ? Optional.empty()
        : Optional.of(
            switch (right) {
              case CREATE -> "the trust file does not let the requester create keys";
              case IMPORT -> "the trust file does not let the requester import keys";
              case REFRESH -> "the trust file does not let the requester refresh keys";
              case RESHARE -> "the trust file does not let the requester reshare keys";
              case OPEN -> "the trust file does not let the requester open approvals";
            });
  }
}
