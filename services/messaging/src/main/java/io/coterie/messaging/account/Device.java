package io.coterie.messaging.account;

import java.time.Instant;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A device of an account.
 *
 * @param id {@value #PRIMARY_ID} to {@value #MAX_ID}
 * @param password how its password is recognised
 * @param registrationId 1..0x3FFF
 * @param pniRegistrationId 1..0x3FFF
 * @param name encrypted by the client, as it came; may be absent
 * @param fetchesMessages whether it reads its messages itself, without push
 * @param capabilities names of the capabilities it announced
 */
public record Device(
    int id,
    PasswordHash password,
    int registrationId,
    int pniRegistrationId,
    @Nullable String name,
    boolean fetchesMessages,
    Set<String> capabilities,
    Instant created,
    Instant lastSeen) {
  public static final int PRIMARY_ID = 1;
  public static final int MAX_ID = 127;
  public static final int MAX_REGISTRATION_ID = 0x3FFF;

  public int registrationId(IdentityType identity) {
    return identity == IdentityType.ACI ? registrationId : pniRegistrationId;
  }
}
