package io.coterie.messaging.api;

import static io.coterie.messaging.api.Route.Access.DEVICE;
import static io.coterie.messaging.api.Route.Access.OPTIONAL;
import static io.coterie.messaging.api.Route.Body.JSON;
import static io.coterie.messaging.api.Route.Body.NONE;

import io.coterie.messaging.account.Account;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.account.Device;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.account.IdentityType;
import io.coterie.messaging.account.PreKey;
import io.coterie.messaging.account.ServiceIdentifier;
import io.coterie.messaging.api.KeyEntities.KeyEntity;
import io.coterie.messaging.api.KeyEntities.SignedKeyReply;
import io.coterie.messaging.api.KeyEntities.UnsignedKeyReply;
import io.coterie.messaging.keys.PreKeyStore;
import io.coterie.messaging.limit.RateLimits;
import io.coterie.messaging.limit.RateLimits.PreKeyFetch;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.ecc.ECPublicKey;

/** Upload, count, check and fetch of prekeys. */
public final class KeyCalls {
  private final PreKeyStore keys;
  private final AccessCheck access;
  private final RateLimits rates;

  public KeyCalls(PreKeyStore keys, AccessCheck access, RateLimits rates) {
    this.keys = keys;
    this.access = access;
    this.rates = rates;
  }

  List<Route> routes() {
    return List.of(
        new Route("PUT", "/v2/keys", DEVICE, JSON, true, this::upload),
        new Route("GET", "/v2/keys", DEVICE, NONE, true, this::count),
        new Route("POST", "/v2/keys/check", DEVICE, JSON, true, this::check),
        new Route("GET", "/v2/keys/*/*", OPTIONAL, NONE, true, this::fetch));
  }

  private record UploadRequest(
      @Nullable List<@Nullable KeyEntity> preKeys,
      @Nullable KeyEntity signedPreKey,
      @Nullable List<@Nullable KeyEntity> pqPreKeys,
      @Nullable KeyEntity pqLastResortPreKey) {}

  private ApiResponse upload(Route.Call call) {
    Authenticated who = call.device();
    IdentityType identity = identity(call);
    UploadRequest request = call.json(UploadRequest.class);
    rates.changes.take(who.address());
    ECPublicKey identityKey = KeyEntities.identityKey(who.account().identityKey(identity));
    keys.store(
        who.address(),
        identity,
        new PreKeyStore.Upload(
            oneTime(request.preKeys(), KeyEntities::unsigned),
            Optional.ofNullable(request.signedPreKey())
                .map(key -> KeyEntities.signed(PreKey.Kind.EC, key, identityKey)),
            oneTime(
                request.pqPreKeys(), key -> KeyEntities.signed(PreKey.Kind.KEM, key, identityKey)),
            Optional.ofNullable(request.pqLastResortPreKey())
                .map(key -> KeyEntities.signed(PreKey.Kind.KEM, key, identityKey))));
    return ApiResponse.ok();
  }

  private static List<PreKey> oneTime(
      @Nullable List<@Nullable KeyEntity> entities, Function<@Nullable KeyEntity, PreKey> check) {
    if (entities == null) {
      return List.of();
    }
    if (entities.size() > KeyEntities.MAX_ONE_TIME_KEYS) {
      throw ApiException.unprocessable();
    }
    List<PreKey> checked = new ArrayList<>();
    for (KeyEntity entity : entities) {
      checked.add(check.apply(entity));
    }
    return KeyEntities.distinct(checked);
  }

  private record Counts(int count, int pqCount) {}

  private ApiResponse count(Route.Call call) {
    DeviceAddress device = call.device().address();
    IdentityType identity = identity(call);
    return ApiResponse.json(
        new Counts(
            keys.countOneTime(device, identity, PreKey.Kind.EC),
            keys.countOneTime(device, identity, PreKey.Kind.KEM)));
  }

  private record CheckRequest(@Nullable String identityType, byte @Nullable [] digest) {}

  /** Whether client and service agree on the keys that are handed out repeatedly. */
  private ApiResponse check(Route.Call call) {
    Authenticated who = call.device();
    CheckRequest request = call.json(CheckRequest.class);
    if (request.identityType() == null || request.digest() == null) {
      throw ApiException.unprocessable();
    }
    IdentityType identity = identity(request.identityType());
    boolean same =
        keys.repeated(who.address(), identity, PreKey.Kind.EC)
            .flatMap(
                signed ->
                    keys.repeated(who.address(), identity, PreKey.Kind.KEM)
                        .map(last -> digest(who.account().identityKey(identity), signed, last)))
            .filter(digest -> MessageDigest.isEqual(digest, request.digest()))
            .isPresent();
    return ApiResponse.empty(same ? 200 : 409);
  }

  private static byte[] digest(byte[] identityKey, PreKey signed, PreKey lastResort) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update(identityKey);
      for (PreKey key : List.of(signed, lastResort)) {
        digest.update(ByteBuffer.allocate(Long.BYTES).putLong(key.keyId()).array());
        digest.update(key.publicKey());
      }
      return digest.digest();
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  private record Bundle(byte[] identityKey, List<DeviceKeys> devices) {}

  private record DeviceKeys(
      int deviceId,
      int registrationId,
      @Nullable SignedKeyReply signedPreKey,
      @Nullable UnsignedKeyReply preKey,
      @Nullable SignedKeyReply pqPreKey) {}

  private ApiResponse fetch(Route.Call call) {
    ServiceIdentifier target =
        ServiceIdentifier.parse(call.segments().get(0)).orElseThrow(ApiException::unprocessable);
    String wanted = call.segments().get(1);
    Optional<Integer> deviceId =
        wanted.equals("*") ? Optional.empty() : Optional.of(AccountCalls.parseDeviceId(wanted));
    Account account = access.require(call, target);
    rates.preKeys.take(new PreKeyFetch(call.source(), account.aci()));
    List<DeviceKeys> found = new ArrayList<>();
    for (Device device : account.devices()) {
      if (deviceId.isEmpty() || deviceId.get() == device.id()) {
        take(new DeviceAddress(account.aci(), device.id()), target.kind(), device)
            .ifPresent(found::add);
      }
    }
    if (found.isEmpty()) {
      // An anonymous caller does not learn which devices there are.
      throw call.caller().isPresent() ? ApiException.notFound() : ApiException.unauthorized();
    }
    return ApiResponse.json(new Bundle(account.identityKey(target.kind()), found));
  }

  private Optional<DeviceKeys> take(DeviceAddress address, IdentityType identity, Device device) {
    Optional<PreKey> signed = keys.repeated(address, identity, PreKey.Kind.EC);
    Optional<PreKey> kem =
        keys.takeOneTime(address, identity, PreKey.Kind.KEM)
            .or(() -> keys.repeated(address, identity, PreKey.Kind.KEM));
    if (signed.isEmpty() || kem.isEmpty()) {
      return Optional.empty();
    }
    return Optional.of(
        new DeviceKeys(
            device.id(),
            device.registrationId(identity),
            SignedKeyReply.of(signed.get()),
            keys.takeOneTime(address, identity, PreKey.Kind.EC)
                .map(key -> new UnsignedKeyReply(key.keyId(), key.publicKey()))
                .orElse(null),
            SignedKeyReply.of(kem.get())));
  }

  private static IdentityType identity(Route.Call call) {
    return identity(call.request().query("identity").orElse("aci"));
  }

  /** Clients write it in either case. */
  private static IdentityType identity(String text) {
    return switch (text.toLowerCase(Locale.ROOT)) {
      case "aci" -> IdentityType.ACI;
      case "pni" -> IdentityType.PNI;
      default -> throw ApiException.badRequest();
    };
  }
}
