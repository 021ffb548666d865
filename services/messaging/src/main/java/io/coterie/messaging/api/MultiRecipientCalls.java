package io.coterie.messaging.api;

import static io.coterie.messaging.api.Route.Access.ANYONE;
import static io.coterie.messaging.api.Route.Body.MULTI_RECIPIENT;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.google.protobuf.CodedInputStream;
import io.coterie.messaging.account.Account;
import io.coterie.messaging.account.AccountStore.DeletedAccount;
import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.account.IdentityType;
import io.coterie.messaging.account.ServiceIdentifier;
import io.coterie.messaging.queue.Delivery;
import io.coterie.messaging.queue.SharedContent;
import io.coterie.proto.signal.Envelope;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.SequencedSet;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.signal.libsignal.protocol.InvalidMessageException;
import org.signal.libsignal.protocol.InvalidVersionException;
import org.signal.libsignal.protocol.SealedSenderMultiRecipientMessage;
import org.signal.libsignal.protocol.ServiceId;

/** Sending one message to the devices of many accounts. */
public final class MultiRecipientCalls {
  /** Most recipients of one request, as on Signal's server. */
  private static final int MAX_RECIPIENTS = 5_000;

  private static final int VERSION_BYTES = 1;

  private final Accounts accounts;
  private final AccessCheck access;
  private final Sending sending;

  public MultiRecipientCalls(Accounts accounts, AccessCheck access, Sending sending) {
    this.accounts = accounts;
    this.access = access;
    this.sending = sending;
  }

  List<Route> routes() {
    return List.of(
        Route.deferred("PUT", "/v1/messages/multi_recipient", ANYONE, MULTI_RECIPIENT, this::send));
  }

  /**
   * @param uuids404 recipients whose accounts have been deleted
   * @param uuids429 recipients whose queues are full; left out if there are none, as the public
   *     server does not know it
   */
  private record SentToMany(
      List<String> uuids404,
      @JsonInclude(JsonInclude.Include.NON_EMPTY) SequencedSet<String> uuids429) {}

  private record AccountMismatch(String uuid, DeviceLists.Mismatched devices) {}

  private record AccountStale(String uuid, DeviceLists.Stale devices) {}

  /** One recipient of a multi-recipient message, found. */
  private record Target(
      ServiceIdentifier id,
      Account account,
      SealedSenderMultiRecipientMessage.Recipient recipient,
      Map<Integer, Integer> registrationIds) {}

  private CompletableFuture<ApiResponse> send(Route.Call call) {
    ApiRequest request = call.request();
    // A sealed sender who names itself would undo the seal.
    if (request.connection().isPresent() || request.header("Authorization").isPresent()) {
      throw ApiException.badRequest();
    }
    boolean story = access.isStory(call);
    boolean online = request.queryFlag("online", false);
    boolean urgent = request.queryFlag("urgent", true);
    long timestamp = timestamp(request);
    AccessCheck.requireNoGroupToken(call);
    Optional<byte[]> accessKey = AccessCheck.accessKey(request);
    if (accessKey.isEmpty() && !story) {
      throw ApiException.unauthorized();
    }
    SealedSenderMultiRecipientMessage message = parse(request.body());
    List<Optional<byte[]>> accessKeys = new ArrayList<>();
    List<String> deleted = new ArrayList<>();
    List<Target> targets = targets(message, story, accessKeys, deleted);
    if (!story) {
      AccessCheck.requireCombined(accessKey.orElseThrow(), accessKeys);
    }
    requireDevices(targets);
    for (Target target : targets) {
      sending.requireContentSize(message.messageSizeForRecipient(target.recipient()));
    }
    for (Target target : targets) {
      sending.takeRate(Optional.empty(), target.account(), story);
    }
    List<Delivery.Recipient> recipients = new ArrayList<>();
    for (Target target : targets) {
      SharedContent content =
          new SharedContent(
              request.body(),
              message.serializedRecipientView(target.recipient()),
              message.messageSizeForRecipient(target.recipient()));
      Envelope.Builder envelope =
          sending
              .envelope(target.id(), timestamp, online, urgent, story)
              .setType(Envelope.Type.UNIDENTIFIED_SENDER);
      for (int device : target.registrationIds().keySet()) {
        recipients.add(
            new Delivery.Recipient(
                new DeviceAddress(target.account().aci(), device),
                Sending.withGuid(envelope).build(),
                content));
      }
    }
    return sending
        .enqueue(call, online, request.body(), recipients)
        .thenApply(full -> ApiResponse.json(new SentToMany(deleted, accounts(full))));
  }

  private static SequencedSet<String> accounts(Set<DeviceAddress> devices) {
    SequencedSet<String> accounts = new TreeSet<>();
    devices.forEach(device -> accounts.add(device.aci().toString()));
    return accounts;
  }

  private static long timestamp(ApiRequest request) {
    String text = request.query("ts").orElseThrow(ApiException::badRequest);
    if (!text.matches("[0-9]{1,16}") || Long.parseLong(text) > Sending.MAX_TIMESTAMP_MS) {
      throw ApiException.badRequest();
    }
    return Long.parseLong(text);
  }

  private static SealedSenderMultiRecipientMessage parse(byte[] body) {
    requireCount(body);
    try {
      SealedSenderMultiRecipientMessage message = SealedSenderMultiRecipientMessage.parse(body);
      // Recipients without devices are of use to group tokens only, which are refused too.
      if (message.getRecipients().isEmpty() || !message.getExcludedRecipients().isEmpty()) {
        throw ApiException.badRequest();
      }
      return message;
    } catch (InvalidMessageException | InvalidVersionException e) {
      throw ApiException.badRequest();
    }
  }

  /** The message says first how many there are, before each of them becomes an object. */
  private static void requireCount(byte[] body) {
    try {
      CodedInputStream in =
          CodedInputStream.newInstance(
              body, VERSION_BYTES, Math.max(0, body.length - VERSION_BYTES));
      if (Integer.compareUnsigned(in.readRawVarint32(), MAX_RECIPIENTS) > 0) {
        throw ApiException.badRequest();
      }
    } catch (IOException | IndexOutOfBoundsException e) {
      throw ApiException.badRequest();
    }
  }

  /**
   * The recipients whose accounts exist.
   *
   * @param accessKeys receives what each recipient contributes to the combined access key
   * @param deleted receives the recipients whose accounts have been deleted
   */
  private List<Target> targets(
      SealedSenderMultiRecipientMessage message,
      boolean story,
      List<Optional<byte[]>> accessKeys,
      List<String> deleted) {
    List<Target> targets = new ArrayList<>();
    for (Map.Entry<ServiceId, SealedSenderMultiRecipientMessage.Recipient> entry :
        message.getRecipients().entrySet()) {
      ServiceIdentifier id = ServiceIdentifier.of(entry.getKey());
      if (id.kind() == IdentityType.PNI) {
        // Both identities of an account have one access key, so the two would cancel each other.
        throw ApiException.unauthorized();
      }
      Map<Integer, Integer> registrationIds = registrationIds(entry.getValue());
      Optional<Account> account = accounts.find(id);
      if (account.isPresent()) {
        Account found = account.get();
        targets.add(new Target(id, found, entry.getValue(), registrationIds));
        accessKeys.add(
            AccessCheck.share(
                found.unidentifiedAccessKey(), found.unrestrictedUnidentifiedAccess()));
      } else if (!story) {
        DeletedAccount gone = accounts.findDeleted(id.uuid()).orElseThrow(ApiException::notFound);
        deleted.add(id.toString());
        accessKeys.add(AccessCheck.share(gone.unidentifiedAccessKey(), gone.unrestricted()));
      }
    }
    return targets;
  }

  private static Map<Integer, Integer> registrationIds(
      SealedSenderMultiRecipientMessage.Recipient recipient) {
    Map<Integer, Integer> registrationIds = new TreeMap<>();
    recipient
        .getDevicesAndRegistrationIds()
        .forEach(
            pair -> {
              if (registrationIds.put((int) pair.getFirst(), (int) pair.getSecond()) != null) {
                throw ApiException.badRequest();
              }
            });
    return registrationIds;
  }

  /** All recipients' devices are as the sender thinks, or nothing is queued for anyone. */
  private static void requireDevices(List<Target> targets) {
    List<AccountMismatch> mismatches = new ArrayList<>();
    List<AccountStale> stales = new ArrayList<>();
    for (Target target : targets) {
      Optional<DeviceLists.Mismatched> mismatch =
          DeviceLists.mismatch(
              target.account(), target.registrationIds().keySet(), OptionalInt.empty());
      if (mismatch.isPresent()) {
        mismatches.add(new AccountMismatch(target.id().toString(), mismatch.get()));
        continue;
      }
      Set<Integer> stale =
          DeviceLists.stale(target.account(), target.id().kind(), target.registrationIds());
      if (!stale.isEmpty()) {
        stales.add(new AccountStale(target.id().toString(), new DeviceLists.Stale(stale)));
      }
    }
    if (!mismatches.isEmpty()) {
      throw new ApiException(ApiResponse.json(409, mismatches));
    }
    if (!stales.isEmpty()) {
      throw new ApiException(ApiResponse.json(410, stales));
    }
  }
}
