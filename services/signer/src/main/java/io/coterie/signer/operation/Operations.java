package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.proto.party.v1.Order;
import io.coterie.signer.claim.RequestBindings;
import io.coterie.signer.order.ApprovalGate;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.order.SessionPlan.Work;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.trust.Member;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Makes the operation that an order asks for.
 *
 * @param policy says what a requester's signatures need
 * @param approvals counts approvals
 * @param discard tells the core that a presignature is not kept
 * @param importer takes the share of an imported key
 * @param self id of this party
 * @param nanos a clock that only goes forward
 */
public record Operations(
    KeyShareStore shares,
    PresignaturePool presignatures,
    RequestBindings bindings,
    PolicyGate policy,
    ApprovalGate approvals,
    Consumer<ByteString> discard,
    ShareImporter importer,
    int self,
    LongSupplier nanos) {

  /**
   * The operation of a session.
   *
   * @param order without its intent; null unless its signature will be random
   * @param coordinator that gave the order
   */
  public Operation of(SessionPlan plan, @Nullable Order order, Member coordinator) {
    return switch (plan.work()) {
      case Work.Sign _, Work.SignPresigned _ -> {
        String requester = plan.asked().requester();
        Signing signing =
            new Signing(
                plan,
                coordinator.name(),
                shares,
                policy.approvals(requester).orElse(null),
                approvals);
        if (plan.protocol().isOfPairs()) {
          yield new ExactSigning(signing, shares, presignatures, coordinator.name(), self);
        }
        yield order == null
            ? signing
            : new BoundSigning(
                signing,
                order,
                coordinator.name(),
                presignatures,
                bindings,
                policy.isStrict(requester));
      }
      case Work.Presign work ->
          new Presigning(
              plan, work, coordinator.name(), shares, presignatures, discard, self, nanos);
      case Work.Import work ->
          new KeyImport(plan, work, coordinator.name(), shares, importer, self);
      case Work.Keygen _ -> new KeyGeneration(plan, coordinator.name(), shares, self);
      case Work.Refresh _, Work.Reshare _ -> new NextEpoch(plan, coordinator.name(), shares, self);
    };
  }
}
