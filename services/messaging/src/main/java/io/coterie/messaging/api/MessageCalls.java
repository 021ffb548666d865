package io.coterie.messaging.api;

import static io.coterie.messaging.api.Route.Access.ANYONE;
import static io.coterie.messaging.api.Route.Access.OPTIONAL;
import static io.coterie.messaging.api.Route.Body.JSON;
import static io.coterie.messaging.api.Route.Body.MULTI_RECIPIENT;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import io.coterie.messaging.account.Account;
import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.account.Device;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.account.IdentityType;
import io.coterie.messaging.account.ServiceIdentifier;
import io.coterie.messaging.limit.RateLimits;
import io.coterie.messaging.queue.Delivery;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.signal.Envelope;
import java.nio.ByteBuffer;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.InvalidMessageException;
import org.signal.libsignal.protocol.InvalidVersionException;
import org.signal.libsignal.protocol.SealedSenderMultiRecipientMessage;
import org.signal.libsignal.protocol.ServiceId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sending to one account and to many. */
public final class MessageCalls {
  private static final Logger LOG = LoggerFactory.getLogger(MessageCalls.class);

  /** Most recipients of one request, as on Signal's server. */
  private static final int MAX_RECIPIENTS = 5_000;

  /** The last moment that every client can represent. */
  private static final long MAX_TIMESTAMP_MS = 8_640_000_000_000_000L;

  /** Types that a client may send; the others are the service's own. */
  private static final Map<Integer, Envelope.Type> TYPES =
      Map.of(
          Envelope.Type.CIPHERTEXT.getNumber(), Envelope.Type.CIPHERTEXT,
          Envelope.Type.PREKEY_BUNDLE.getNumber(), Envelope.Type.PREKEY_BUNDLE,
          Envelope.Type.UNIDENTIFIED_SENDER.getNumber(), Envelope.Type.UNIDENTIFIED_SENDER,
          Envelope.Type.PLAINTEXT_CONTENT.getNumber(), Envelope.Type.PLAINTEXT_CONTENT);

  private final Accounts accounts;
  private final AccessCheck access;
  private final MessageQueue queue;
  private final RateLimits rates;
  private final MessagingMetrics metrics;
  private final long maxContentBytes;
  private final Clock clock;

  public MessageCalls(
      Accounts accounts,
      AccessCheck access,
      MessageQueue queue,
      RateLimits rates,
      MessagingMetrics metrics,
      long maxContentBytes,
      Clock clock) {
    this.accounts = accounts;
    this.access = access;
    this.queue = queue;
    this.rates = rates;
    this.metrics = metrics;
    this.maxContentBytes = maxContentBytes;
    this.clock = clock;
  }

  List<Route> routes() {
    return List.of(
        new Route(
            "PUT",
            "/v1/messages/multi_recipient",
            ANYONE,
            MULTI_RECIPIENT,
            false,
            this::sendToMany),
        new Route("PUT", "/v1/messages/*", OPTIONAL, JSON, false, this::sendToOne));
  }

  // ---- to one ----

  private record MessageList(
      @Nullable List<@Nullable Message> messages,
      @Nullable Boolean online,
      @Nullable Boolean urgent,
      @Nullable Long timestamp) {}

  private record Message(
      @Nullable Integer type,
      @Nullable Integer destinationDeviceId,
      @Nullable Integer destinationRegistrationId,
      byte @Nullable [] content) {}

  /** A message whose fields are all there and in range. */
  private record Checked(Envelope.Type type, int device, int registrationId, byte[] content) {}

  private record Sent(boolean needsSync) {}

  private record Mismatched(Set<Integer> missingDevices, Set<Integer> extraDevices) {}

  private record Stale(Set<Integer> staleDevices) {}

  private ApiResponse sendToOne(Route.Call call) {
    ServiceIdentifier target =
        ServiceIdentifier.parse(call.segments().getFirst())
            .orElseThrow(ApiException::unprocessable);
    boolean story = call.request().queryFlag("story", false);
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
      return ApiResponse.json(new Sent(needsSync));
    }
    Account account = found.get();
    if (!toSelf) {
      takeRate(sender, account, story);
    }
    OptionalInt excluded =
        toSelf ? OptionalInt.of(sender.orElseThrow().device().id()) : OptionalInt.empty();
    Map<Integer, Integer> registrationIds = new TreeMap<>();
    messages.forEach(m -> registrationIds.put(m.device(), m.registrationId()));
    Set<Integer> stale = stale(account, target.kind(), registrationIds);
    if (!stale.isEmpty()) {
      throw new ApiException(ApiResponse.json(410, new Stale(stale)));
    }
    mismatch(account, registrationIds.keySet(), excluded)
        .ifPresent(
            mismatch -> {
              throw new ApiException(ApiResponse.json(409, mismatch));
            });

    boolean online = Boolean.TRUE.equals(request.online());
    Envelope.Builder envelope =
        envelope(
            target, request.timestamp(), online, !Boolean.FALSE.equals(request.urgent()), story);
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
              withGuid(envelope).setType(message.type()).build(),
              UnsafeByteOperations.unsafeWrap(message.content()),
              null));
    }
    enqueue(call, online, null, recipients);
    return ApiResponse.json(new Sent(needsSync));
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
        || request.messages().size() > Device.MAX_ID
        || request.timestamp() == null
        || request.timestamp() < 0
        || request.timestamp() > MAX_TIMESTAMP_MS) {
      throw ApiException.unprocessable();
    }
    List<Checked> messages = new ArrayList<>(request.messages().size());
    Set<Integer> devices = new HashSet<>();
    for (Message message : request.messages()) {
      if (message == null
          || message.type() == null
          || message.destinationDeviceId() == null
          || message.destinationRegistrationId() == null
          || message.content() == null
          || message.content().length == 0
          || message.destinationDeviceId() < Device.PRIMARY_ID
          || message.destinationDeviceId() > Device.MAX_ID
          || !devices.add(message.destinationDeviceId())) {
        throw ApiException.unprocessable();
      }
      if (message.content().length > maxContentBytes) {
        throw ApiException.tooLarge();
      }
      Envelope.Type type = TYPES.get(message.type());
      if (type == null) {
        throw ApiException.badRequest();
      }
      messages.add(
          new Checked(
              type,
              message.destinationDeviceId(),
              message.destinationRegistrationId(),
              message.content()));
    }
    return messages;
  }

  private void takeRate(Optional<Authenticated> sender, Account recipient, boolean story) {
    if (story) {
      rates.stories.take(recipient.aci());
    } else if (sender.isPresent()) {
      rates.messages.take(new RateLimits.Pair(sender.get().account().aci(), recipient.aci()));
    } else {
      rates.sealedMessages.take(recipient.aci());
    }
  }

  // ---- to many ----

  private record SentToMany(List<String> uuids404) {}

  private record AccountMismatch(String uuid, Mismatched devices) {}

  private record AccountStale(String uuid, Stale devices) {}

  /** One recipient of a multi-recipient message, found. */
  private record Target(
      ServiceIdentifier id,
      Account account,
      SealedSenderMultiRecipientMessage.Recipient recipient,
      Map<Integer, Integer> registrationIds) {}

  private ApiResponse sendToMany(Route.Call call) {
    ApiRequest request = call.request();
    // A sealed sender who names itself would undo the seal.
    if (request.connection().isPresent() || request.header("Authorization").isPresent()) {
      throw ApiException.badRequest();
    }
    boolean story = request.queryFlag("story", false);
    boolean online = request.queryFlag("online", false);
    boolean urgent = request.queryFlag("urgent", true);
    long timestamp = timestamp(request);
    AccessCheck.requireNoGroupToken(call);
    Optional<byte[]> accessKey = AccessCheck.accessKey(request);
    if (accessKey.isEmpty() && !story) {
      throw ApiException.unauthorized();
    }
    SealedSenderMultiRecipientMessage message = parse(request.body());
    List<Target> targets = targets(message, story);
    if (!story) {
      AccessCheck.requireCombined(
          accessKey.orElseThrow(), targets.stream().map(Target::account).toList());
    }
    requireDevices(targets);
    for (Target target : targets) {
      if (message.messageSizeForRecipient(target.recipient()) > maxContentBytes) {
        throw ApiException.tooLarge();
      }
    }
    for (Target target : targets) {
      takeRate(Optional.empty(), target.account(), story);
    }
    List<Delivery.Recipient> recipients = new ArrayList<>();
    for (Target target : targets) {
      ByteString content =
          UnsafeByteOperations.unsafeWrap(message.messageForRecipient(target.recipient()));
      byte[] view = message.serializedRecipientView(target.recipient());
      Envelope.Builder envelope =
          envelope(target.id(), timestamp, online, urgent, story)
              .setType(Envelope.Type.UNIDENTIFIED_SENDER);
      for (int device : target.registrationIds().keySet()) {
        recipients.add(
            new Delivery.Recipient(
                new DeviceAddress(target.account().aci(), device),
                withGuid(envelope).build(),
                content,
                view));
      }
    }
    enqueue(call, online, request.body(), recipients);
    return ApiResponse.json(new SentToMany(List.of()));
  }

  private static long timestamp(ApiRequest request) {
    String text = request.query("ts").orElseThrow(ApiException::badRequest);
    if (!text.matches("[0-9]{1,16}") || Long.parseLong(text) > MAX_TIMESTAMP_MS) {
      throw ApiException.badRequest();
    }
    return Long.parseLong(text);
  }

  private static SealedSenderMultiRecipientMessage parse(byte[] body) {
    try {
      SealedSenderMultiRecipientMessage message = SealedSenderMultiRecipientMessage.parse(body);
      int recipients = message.getRecipients().size();
      if (recipients == 0 || recipients > MAX_RECIPIENTS) {
        throw ApiException.badRequest();
      }
      return message;
    } catch (InvalidMessageException | InvalidVersionException e) {
      throw ApiException.badRequest();
    }
  }

  private List<Target> targets(SealedSenderMultiRecipientMessage message, boolean story) {
    List<Target> targets = new ArrayList<>();
    for (Map.Entry<ServiceId, SealedSenderMultiRecipientMessage.Recipient> entry :
        message.getRecipients().entrySet()) {
      ServiceIdentifier id = ServiceIdentifier.of(entry.getKey());
      if (id.kind() == IdentityType.PNI) {
        // Both identities of an account have one access key, so the two would cancel each other.
        throw ApiException.unauthorized();
      }
      Map<Integer, Integer> registrationIds = new TreeMap<>();
      entry
          .getValue()
          .getDevicesAndRegistrationIds()
          .forEach(
              pair -> {
                if (registrationIds.put((int) pair.getFirst(), (int) pair.getSecond()) != null) {
                  throw ApiException.badRequest();
                }
              });
      Optional<Account> account = accounts.find(id);
      if (account.isPresent()) {
        targets.add(new Target(id, account.get(), entry.getValue(), registrationIds));
      } else if (!story) {
        throw ApiException.notFound();
      }
    }
    return targets;
  }

  /** All recipients' devices are as the sender thinks, or nothing is queued for anyone. */
  private static void requireDevices(List<Target> targets) {
    List<AccountMismatch> mismatches = new ArrayList<>();
    List<AccountStale> stales = new ArrayList<>();
    for (Target target : targets) {
      Optional<Mismatched> mismatch =
          mismatch(target.account(), target.registrationIds().keySet(), OptionalInt.empty());
      if (mismatch.isPresent()) {
        mismatches.add(new AccountMismatch(target.id().toString(), mismatch.get()));
        continue;
      }
      Set<Integer> stale = stale(target.account(), target.id().kind(), target.registrationIds());
      if (!stale.isEmpty()) {
        stales.add(new AccountStale(target.id().toString(), new Stale(stale)));
      }
    }
    if (!mismatches.isEmpty()) {
      throw new ApiException(ApiResponse.json(409, mismatches));
    }
    if (!stales.isEmpty()) {
      throw new ApiException(ApiResponse.json(410, stales));
    }
  }

  // ---- both ----

  /** The named devices that the account has under another registration id. */
  private static Set<Integer> stale(
      Account account, IdentityType identity, Map<Integer, Integer> registrationIds) {
    Set<Integer> stale = new TreeSet<>();
    registrationIds.forEach(
        (id, registrationId) ->
            account
                .device(id)
                .filter(device -> device.registrationId(identity) != registrationId)
                .ifPresent(device -> stale.add(id)));
    return stale;
  }

  private static Optional<Mismatched> mismatch(
      Account account, Set<Integer> named, OptionalInt excluded) {
    Set<Integer> missing = new TreeSet<>();
    for (Device device : account.devices()) {
      if (excluded.isEmpty() || excluded.getAsInt() != device.id()) {
        missing.add(device.id());
      }
    }
    Set<Integer> extra = new TreeSet<>(named);
    extra.removeAll(missing);
    missing.removeAll(named);
    return missing.isEmpty() && extra.isEmpty()
        ? Optional.empty()
        : Optional.of(new Mismatched(missing, extra));
  }

  private Envelope.Builder envelope(
      ServiceIdentifier destination,
      @Nullable Long timestamp,
      boolean online,
      boolean urgent,
      boolean story) {
    return Envelope.newBuilder()
        .setClientTimestamp(timestamp == null ? 0 : timestamp)
        .setServerTimestamp(clock.millis())
        .setDestination(destination.toString())
        .setDestinationServiceId(UnsafeByteOperations.unsafeWrap(destination.toBytes()))
        .setEphemeral(online)
        .setUrgent(urgent)
        .setStory(story);
  }

  private static Envelope.Builder withGuid(Envelope.Builder envelope) {
    UUID guid = UUID.randomUUID();
    return envelope
        .setGuid(guid.toString())
        .setServerGuid(
            ByteString.copyFrom(
                ByteBuffer.allocate(16)
                    .putLong(guid.getMostSignificantBits())
                    .putLong(guid.getLeastSignificantBits())
                    .flip()));
  }

  private void enqueue(
      Route.Call call,
      boolean online,
      byte @Nullable [] sharedBody,
      List<Delivery.Recipient> recipients) {
    queue.enqueue(
        new Delivery(
            online,
            sharedBody,
            recipients,
            call.trace().map(TraceContext::traceparent).orElse(null)));
    metrics.fanout(recipients.size());
    LOG.atDebug()
        .addKeyValue("devices", recipients.size())
        .addKeyValue("online", online)
        .log("message accepted");
  }
}
