package io.coterie.messaging.api;

import io.coterie.messaging.account.Account;
import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.account.IdentityType;
import io.coterie.messaging.account.ServiceIdentifier;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.Collection;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Decides who may reach an account: any device that names itself, and without a name a client that
 * knows the account's access key. A client without a name is not told whether an account exists.
 */
public final class AccessCheck {
  static final String ACCESS_KEY_HEADER = "Unidentified-Access-Key";
  static final String GROUP_TOKEN_HEADER = "Group-Send-Token";

  private final Accounts accounts;

  private final boolean stories;

  /**
   * @param stories whether stories are offered, which reach every account without its access key
   */
  public AccessCheck(Accounts accounts, boolean stories) {
    this.accounts = accounts;
    this.stories = stories;
  }

  /**
   * Whether a message is sent as a story.
   *
   * @throws ApiException 403 if stories are not offered, 400 if the sender names itself, which the
   *     story would tell its recipients
   */
  boolean isStory(Route.Call call) {
    if (!call.request().queryFlag("story", false)) {
      return false;
    }
    if (!stories) {
      throw ApiException.forbidden();
    }
    if (call.caller().isPresent()) {
      throw ApiException.badRequest();
    }
    return true;
  }

  /**
   * The account at the address.
   *
   * @throws ApiException 400, 401 or 404
   */
  Account require(Route.Call call, ServiceIdentifier target) {
    requireNoGroupToken(call);
    Optional<byte[]> accessKey = accessKey(call.request());
    if (call.caller().isEmpty() && accessKey.isEmpty()) {
      throw ApiException.unauthorized();
    }
    Optional<Account> account = accounts.find(target);
    if (call.caller().isPresent()) {
      return account.orElseThrow(ApiException::notFound);
    }
    return account
        .filter(a -> target.kind() == IdentityType.ACI && opens(accessKey.orElseThrow(), a))
        .orElseThrow(ApiException::unauthorized);
  }

  private static boolean opens(byte[] accessKey, Account account) {
    byte[] expected = account.unidentifiedAccessKey();
    boolean same = expected != null && MessageDigest.isEqual(expected, accessKey);
    return same || account.unrestrictedUnidentifiedAccess();
  }

  /** The contribution of an account's key to the combined key of many; empty if it has none. */
  static Optional<byte[]> share(byte @Nullable [] accessKey, boolean unrestricted) {
    return unrestricted
        ? Optional.of(new byte[Account.ACCESS_KEY_BYTES])
        : Optional.ofNullable(accessKey);
  }

  /**
   * Checks one access key for many accounts: the exclusive or of the keys of those that are
   * restricted.
   *
   * @param shares contribution of each account
   * @throws ApiException 401
   */
  static void requireCombined(byte[] accessKey, Collection<Optional<byte[]>> shares) {
    byte[] expected = new byte[Account.ACCESS_KEY_BYTES];
    for (Optional<byte[]> share : shares) {
      byte[] key = share.orElseThrow(ApiException::unauthorized);
      for (int i = 0; i < expected.length; i++) {
        expected[i] ^= key[i];
      }
    }
    if (!MessageDigest.isEqual(expected, accessKey)) {
      throw ApiException.unauthorized();
    }
  }

  /** The access key in the request; 401 if it is not one. */
  static Optional<byte[]> accessKey(ApiRequest request) {
    return request.header(ACCESS_KEY_HEADER).map(AccessCheck::decode);
  }

  private static byte[] decode(String header) {
    try {
      byte[] key = Base64.getDecoder().decode(header.strip());
      if (key.length == Account.ACCESS_KEY_BYTES) {
        return key;
      }
    } catch (IllegalArgumentException e) {
      // Answered like a key of the wrong length.
    }
    throw ApiException.unauthorized();
  }

  /**
   * Group send tokens come from a group service, which this installation does not have: none is
   * valid. Together with another authorization one is a bad request, as with every Signal server.
   */
  static void requireNoGroupToken(Route.Call call) {
    if (call.request().header(GROUP_TOKEN_HEADER).isPresent()) {
      boolean combined =
          call.caller().isPresent() || call.request().header(ACCESS_KEY_HEADER).isPresent();
      throw combined ? ApiException.badRequest() : ApiException.unauthorized();
    }
  }
}
