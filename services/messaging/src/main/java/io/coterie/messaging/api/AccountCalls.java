package io.coterie.messaging.api;

import static io.coterie.messaging.api.Route.Access.ANYONE;
import static io.coterie.messaging.api.Route.Access.DEVICE;
import static io.coterie.messaging.api.Route.Body.JSON;
import static io.coterie.messaging.api.Route.Body.NONE;

import io.coterie.messaging.account.Account;
import io.coterie.messaging.account.AccountStore.Registration;
import io.coterie.messaging.account.AccountStore.RegistrationResult;
import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.account.Credentials;
import io.coterie.messaging.account.Device;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.account.PasswordHash;
import io.coterie.messaging.account.PreKey;
import io.coterie.messaging.account.ServiceNumber;
import io.coterie.messaging.api.KeyEntities.KeyEntity;
import io.coterie.messaging.certificate.SenderCertificates;
import io.coterie.messaging.limit.RateLimits;
import io.coterie.messaging.limit.RateLimits.NumberOf;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.queue.Presence;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.ecc.ECPublicKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Registration, the account's own attributes, its devices, and its sender certificate. */
public final class AccountCalls {
  private static final Logger LOG = LoggerFactory.getLogger(AccountCalls.class);
  private static final int MAX_TOKEN_BYTES = 64;

  private final Accounts accounts;
  private final SenderCertificates certificates;
  private final MessageQueue queue;
  private final Presence presence;
  private final RateLimits rates;
  private final SecureRandom random;
  private final Clock clock;

  public AccountCalls(
      Accounts accounts,
      SenderCertificates certificates,
      MessageQueue queue,
      Presence presence,
      RateLimits rates,
      SecureRandom random,
      Clock clock) {
    this.accounts = accounts;
    this.certificates = certificates;
    this.queue = queue;
    this.presence = presence;
    this.rates = rates;
    this.random = random;
    this.clock = clock;
  }

  List<Route> routes() {
    return List.of(
        new Route("POST", "/v1/verification/session", ANYONE, JSON, false, this::openVerification),
        new Route("GET", "/v1/verification/session/*", ANYONE, NONE, false, this::noVerification),
        new Route("PATCH", "/v1/verification/session/*", ANYONE, JSON, false, this::noVerification),
        new Route(
            "POST", "/v1/verification/session/*/code", ANYONE, JSON, false, this::noVerification),
        new Route(
            "PUT", "/v1/verification/session/*/code", ANYONE, JSON, false, this::noVerification),
        new Route("POST", "/v1/registration", ANYONE, JSON, true, this::register),
        new Route("GET", "/v1/accounts/whoami", DEVICE, NONE, false, this::whoAmI),
        new Route("PUT", "/v1/accounts/attributes", DEVICE, JSON, true, this::setAttributes),
        new Route("DELETE", "/v1/accounts/me", DEVICE, NONE, true, this::deleteAccount),
        new Route("GET", "/v1/devices", DEVICE, NONE, false, this::devices),
        new Route("PUT", "/v1/devices/capabilities", DEVICE, JSON, true, this::setCapabilities),
        new Route("DELETE", "/v1/devices/*", DEVICE, NONE, true, this::removeDevice),
        new Route("GET", "/v1/certificate/delivery", DEVICE, NONE, false, this::certificate));
  }

  private record VerificationRefusal(String reason, boolean permanentFailure, String message) {}

  /** Nobody here can send a text message; a one-time token registers a member. */
  private ApiResponse openVerification(Route.Call call) {
    return ApiResponse.json(
        403,
        new VerificationRefusal(
            "illegalArgument",
            true,
            "numbers are not verified here: register with a recovery password, which is the"
                + " one-time token that the operator has issued for the number"));
  }

  private ApiResponse noVerification(Route.Call call) {
    throw ApiException.notFound();
  }

  private record RegistrationRequest(
      @Nullable String sessionId,
      byte @Nullable [] recoveryPassword,
      AccountEntities.@Nullable Attributes accountAttributes,
      byte @Nullable [] aciIdentityKey,
      byte @Nullable [] pniIdentityKey,
      @Nullable KeyEntity aciSignedPreKey,
      @Nullable KeyEntity pniSignedPreKey,
      @Nullable KeyEntity aciPqLastResortPreKey,
      @Nullable KeyEntity pniPqLastResortPreKey,
      @Nullable String gcmToken,
      @Nullable String apnToken) {}

  private ApiResponse register(Route.Call call) {
    Credentials.Basic basic =
        call.request()
            .header("Authorization")
            .flatMap(Credentials::basic)
            .orElseThrow(ApiException::unauthorized);
    RegistrationRequest request = call.json(RegistrationRequest.class);
    int passwordLength = basic.password().length();
    if (!ServiceNumber.isValid(basic.user())
        || passwordLength < PasswordHash.MIN_PASSWORD_LENGTH
        || passwordLength > PasswordHash.MAX_PASSWORD_LENGTH) {
      throw ApiException.unprocessable();
    }
    if ((request.sessionId() == null) == (request.recoveryPassword() == null)) {
      throw ApiException.unprocessable();
    }
    AccountEntities.Attributes attributes =
        Optional.ofNullable(request.accountAttributes()).orElseThrow(ApiException::unprocessable);
    attributes.check();
    ECPublicKey aciKey = KeyEntities.identityKey(request.aciIdentityKey());
    ECPublicKey pniKey = KeyEntities.identityKey(request.pniIdentityKey());
    rates.registration.take(new NumberOf(call.request().source(), basic.user()));
    if (request.recoveryPassword() == null) {
      // No session was ever verified here.
      throw ApiException.unauthorized();
    }
    if (request.recoveryPassword().length > MAX_TOKEN_BYTES) {
      throw ApiException.forbidden();
    }
    Instant now = clock.instant().truncatedTo(ChronoUnit.MICROS);
    Device primary =
        new Device(
            Device.PRIMARY_ID,
            PasswordHash.of(basic.password(), random),
            attributes.aciRegistrationId(),
            attributes.pniRegistrationIdOrAci(),
            attributes.name(),
            attributes.fetches(),
            attributes.capabilityNames(),
            now,
            now);
    Registration registration =
        new Registration(
            basic.user(),
            sha256(request.recoveryPassword()),
            basic.password(),
            aciKey.serialize(),
            pniKey.serialize(),
            attributes.accessKey(),
            attributes.unrestricted(),
            primary,
            KeyEntities.signed(PreKey.Kind.EC, request.aciSignedPreKey(), aciKey),
            KeyEntities.signed(PreKey.Kind.EC, request.pniSignedPreKey(), pniKey),
            KeyEntities.signed(PreKey.Kind.KEM, request.aciPqLastResortPreKey(), aciKey),
            KeyEntities.signed(PreKey.Kind.KEM, request.pniPqLastResortPreKey(), pniKey));
    return switch (accounts.register(registration)) {
      case RegistrationResult.Registered(Account account, boolean replaced) -> {
        if (replaced) {
          queue.dropOnline(account.aci());
          presence.revoke(account.aci());
        }
        LOG.atInfo()
            .addKeyValue("aci", account.aci())
            .addKeyValue("replaced", replaced)
            .log("account registered");
        yield ApiResponse.json(AccountEntities.Registered.of(account, replaced));
      }
      case RegistrationResult.Repeated(Account account) ->
          ApiResponse.json(AccountEntities.Registered.of(account, false));
      case RegistrationResult.Refused refused -> throw ApiException.forbidden();
    };
  }

  private static byte[] sha256(byte[] value) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(value);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  private ApiResponse whoAmI(Route.Call call) {
    return ApiResponse.json(AccountEntities.Identity.of(call.device().account()));
  }

  private ApiResponse setAttributes(Route.Call call) {
    Authenticated who = call.device();
    AccountEntities.Attributes attributes = call.json(AccountEntities.Attributes.class);
    attributes.check();
    rates.changes.take(who.address());
    Device device = who.device();
    Device changed =
        new Device(
            device.id(),
            device.password(),
            attributes.aciRegistrationId(),
            attributes.pniRegistrationIdOrAci(),
            attributes.name() == null ? device.name() : attributes.name(),
            attributes.fetches(),
            attributes.capabilityNames(),
            device.created(),
            device.lastSeen());
    accounts.updateAttributes(
        who.address(), changed, attributes.accessKey(), attributes.unrestricted());
    return ApiResponse.empty(204);
  }

  private ApiResponse deleteAccount(Route.Call call) {
    Authenticated who = call.device();
    accounts.delete(who.account());
    queue.dropOnline(who.account().aci());
    presence.revoke(who.account().aci());
    LOG.atInfo().addKeyValue("aci", who.account().aci()).log("account deleted");
    return ApiResponse.empty(204);
  }

  private static final class Capabilities extends LinkedHashMap<String, Boolean> {
    private static final long serialVersionUID = 1L;
  }

  private ApiResponse setCapabilities(Route.Call call) {
    Authenticated who = call.device();
    Map<String, Boolean> capabilities = call.json(Capabilities.class);
    rates.changes.take(who.address());
    accounts.updateCapabilities(who.address(), AccountEntities.capabilityNames(capabilities));
    return ApiResponse.empty(204);
  }

  private record DeviceList(List<DeviceInfo> devices) {}

  /**
   * @param created signal-service-java reads this one
   * @param createdAtCiphertext the same, sealed to the account's identity key and bound to the
   *     device; libsignal's typed client reads this one
   */
  private record DeviceInfo(
      int id,
      @Nullable String name,
      long lastSeen,
      int registrationId,
      long created,
      byte[] createdAtCiphertext) {
    static DeviceInfo of(Device device, ECPublicKey identityKey) {
      long created = device.created().toEpochMilli();
      return new DeviceInfo(
          device.id(),
          device.name(),
          device.lastSeen().truncatedTo(ChronoUnit.DAYS).toEpochMilli(),
          device.registrationId(),
          created,
          identityKey.seal(
              ByteBuffer.allocate(Long.BYTES).putLong(created).array(),
              "deviceCreatedAt",
              ByteBuffer.allocate(1 + Integer.BYTES)
                  .put((byte) device.id())
                  .putInt(device.registrationId())
                  .array()));
    }
  }

  private ApiResponse devices(Route.Call call) {
    Account account = call.device().account();
    ECPublicKey identityKey = KeyEntities.identityKey(account.aciIdentityKey());
    return ApiResponse.json(
        new DeviceList(
            account.devices().stream().map(d -> DeviceInfo.of(d, identityKey)).toList()));
  }

  private ApiResponse removeDevice(Route.Call call) {
    Authenticated who = call.device();
    int id = parseDeviceId(call.segments().getFirst());
    int self = who.device().id();
    if (self != Device.PRIMARY_ID && self != id) {
      throw ApiException.unauthorized();
    }
    if (id == Device.PRIMARY_ID) {
      throw ApiException.forbidden();
    }
    DeviceAddress address = new DeviceAddress(who.account().aci(), id);
    if (!accounts.removeDevice(address)) {
      throw ApiException.notFound();
    }
    queue.dropOnline(address);
    presence.revoke(address);
    return ApiResponse.empty(204);
  }

  /** A device id, or 422. */
  static int parseDeviceId(String text) {
    if (!text.matches("[0-9]{1,3}")) {
      throw ApiException.unprocessable();
    }
    int id = Integer.parseInt(text);
    if (id < Device.PRIMARY_ID || id > Device.MAX_ID) {
      throw ApiException.unprocessable();
    }
    return id;
  }

  private record Certificate(byte[] certificate) {}

  private ApiResponse certificate(Route.Call call) {
    Authenticated who = call.device();
    boolean includeE164 = call.request().queryFlag("includeE164", true);
    return ApiResponse.json(
        new Certificate(
            certificates.issue(
                who.account().aci().toString(),
                includeE164 ? Optional.of(who.account().number()) : Optional.empty(),
                who.device().id(),
                who.account().aciIdentityKey())));
  }
}
