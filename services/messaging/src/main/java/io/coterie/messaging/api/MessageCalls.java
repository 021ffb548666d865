package io.coterie.messaging.api;

import static io.coterie.messaging.api.Route.Access.OPTIONAL;
import static io.coterie.messaging.api.Route.Body.JSON;

import com.google.protobuf.UnsafeByteOperations;
import io.coterie.messaging.account.Account;
import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.account.Device;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.account.IdentityType;
import io.coterie.messaging.account.ServiceIdentifier;
import io.coterie.messaging.queue.Delivery;
import io.coterie.proto.signal.Envelope;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** Sending to one account. */
public final class MessageCalls {
  /** Types that a client may send; the others are the service's own. */
  private static final Map<Integer, Envelope.Type> TYPES =
      Map.of(
          Envelope.Type.CIPHERTEXT.getNumber(), Envelope.Type.CIPHERTEXT,
          Envelope.Type.PREKEY_BUNDLE.getNumber(), Envelope.Type.PREKEY_BUNDLE,
          Envelope.Type.UNIDENTIFIED_SENDER.getNumber(), Envelope.Type.UNIDENTIFIED_SENDER,
          Envelope.Type.PLAINTEXT_CONTENT.getNumber(), Envelope.Type.PLAINTEXT_CONTENT);

  private final Accounts accounts;
  private final AccessCheck access;
  private final Sending sending;

  public MessageCalls(Accounts accounts, AccessCheck access, Sending sending) {
    this.accounts = accounts;
    this.access = access;
    this.sending = sending;
  }

  List<Route> routes() {
    return List.of(Route.deferred("PUT", "/v1/messages/*", OPTIONAL, JSON, this::send));
  }

  private record MessageList(
      @Nullable List<@Nullable Message> messages,
      @Nullable Boolean online,
      @Nullable Boolean urgent,
      @Nullable Long timestamp) {
    /** Zero if it is missing, as on the public server. */
    long timestampOrZero() {
      return timestamp == null ? 0 : timestamp;
    }
  }

  private record Message(
      @Nullable Integer type,
      @Nullable Integer destinationDeviceId,
      @Nullable Integer destinationRegistrationId,
      byte @Nullable [] content) {
    /** Zero, which no device has, if it is missing. */
    int registrationIdOrZero() {
      return destinationRegistrationId == null ? 0 : destinationRegistrationId;
    }
  }

  /** A message whose fields are all there and in range. */
  private record Checked(Envelope.Type type, int device, int registrationId, byte[] content) {}

  private record Sent(boolean needsSync) {}

  private CompletableFuture<ApiResponse> send(Route.Call call) {
    ServiceIdentifier target =
        ServiceIdentifier.parse(call.segments().getFirst())
            .orElseThrow(ApiException::unprocessable);
    boolean story = access.isStory(call);
    Optional<Authenticated> sender = call.caller();
    boolean toSelf = sender.filter(s -> s.account().isIdentifiedBy(target)).isPresent();
    if (toSelf && target.kind() == IdentityType.PNI) {
      throw ApiException.forbidden();
    }
    Optional<Account> found =
        story ? storyTarget(call, target) : Optional.of(access.require(call, target));
    MessageList request = call.json(MessageList.class);
    List<Checked> messages = check(request);
    boolean needsSync = !toSelf && sender.filter(s -> s.account().devices().size() > 1).isPresent();
    if (found.isEmpty()) {
      return CompletableFuture.completedFuture(ApiResponse.json(new Sent(needsSync)));
    }
    Account account = found.get();
    if (!toSelf) {
      sending.takeRate(sender, account, story);
    }
    OptionalInt excluded =
        toSelf ? OptionalInt.of(sender.orElseThrow().device().id()) : OptionalInt.empty();
    Map<Integer, Integer> registrationIds = new TreeMap<>();
    messages.forEach(m -> registrationIds.put(m.device(), m.registrationId()));
    Set<Integer> stale = DeviceLists.stale(account, target.kind(), registrationIds);
    if (!stale.isEmpty()) {
      throw new ApiException(ApiResponse.json(410, new DeviceLists.Stale(stale)));
    }
    DeviceLists.mismatch(account, registrationIds.keySet(), excluded)
        .ifPresent(
            mismatch -> {
              throw new ApiException(ApiResponse.json(409, mismatch));
            });

    boolean online = Boolean.TRUE.equals(request.online());
    Envelope.Builder envelope =
        sending.envelope(
            target,
            request.timestampOrZero(),
            online,
            !Boolean.FALSE.equals(request.urgent()),
            story);
    sender.ifPresent(
        s -> {
          ServiceIdentifier source = new ServiceIdentifier(IdentityType.ACI, s.account().aci());
          envelope
              .setSource(source.toString())
              .setSourceServiceId(UnsafeByteOperations.unsafeWrap(source.toBytes()))
              .setSourceDevice(s.device().id());
        });
    List<Delivery.Recipient> recipients = new ArrayList<>(messages.size());
    for (Checked message : messages) {
      recipients.add(
          new Delivery.Recipient(
              new DeviceAddress(account.aci(), message.device()),
              Sending.withGuid(envelope)
                  .setType(message.type())
                  .setContent(UnsafeByteOperations.unsafeWrap(message.content()))
                  .build(),
              null));
    }
    return sending
        .enqueue(call, online, null, recipients)
        .thenApply(full -> ApiResponse.json(new Sent(needsSync)));
  }

  /** Stories are let through unchecked, so that nobody learns from them who has an account. */
  private Optional<Account> storyTarget(Route.Call call, ServiceIdentifier target) {
    if (call.request().header(AccessCheck.GROUP_TOKEN_HEADER).isPresent()) {
      throw ApiException.badRequest();
    }
    return accounts.find(target);
  }

  private List<Checked> check(MessageList request) {
    if (request.messages() == null
        || request.messages().isEmpty()
        || request.messages().size() > Device.MAX_ID
        || request.timestampOrZero() < 0
        || request.timestampOrZero() > Sending.MAX_TIMESTAMP_MS) {
      throw ApiException.unprocessable();
    }
    List<Checked> messages = new ArrayList<>(request.messages().size());
    Set<Integer> devices = new HashSet<>();
    for (Message message : request.messages()) {
      if (message == null
          || message.type() == null
          || message.destinationDeviceId() == null
          || message.content() == null
          || message.content().length == 0
          || message.destinationDeviceId() < Device.PRIMARY_ID
          || message.destinationDeviceId() > Device.MAX_ID
          || !devices.add(message.destinationDeviceId())) {
        throw ApiException.unprocessable();
      }
      sending.requireContentSize(message.content().length);
      Envelope.Type type = TYPES.get(message.type());
      if (type == null) {
        throw ApiException.badRequest();
      }
      messages.add(
          new Checked(
              type,
              message.destinationDeviceId(),
              message.registrationIdOrZero(),
              message.content()));
    }
    return messages;
  }
}
