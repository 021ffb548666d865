package io.coterie.cli.key;

import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.ByteString;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.attestation.AttestationException;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.attestation.CurrentProof;
import io.coterie.platform.attestation.CurrentStatement;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.payload.BitcoinAddress;
import io.coterie.platform.payload.Chain;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.trust.Trust;
import java.io.PrintWriter;
import java.security.SecureRandom;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.ExecutionException;

/**
 * The installation's answers about keys. Commands use a key only as it comes from here: the
 * coordinator is believed in nothing that its parties have not signed.
 */
public final class AttestedKeys {
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Profile profile;
  private final Profile.Connection connection;
  private final Trust trust;

  /**
   * The keys of an installation.
   *
   * @throws CliException if the trust file cannot be used
   */
  public AttestedKeys(Profile profile, Profile.Connection connection) {
    this.profile = profile;
    this.connection = connection;
    this.trust = profile.trust();
  }

  /** Name of the installation that the trust file is of. */
  String installation() {
    return trust.roster().installation();
  }

  /**
   * An intent that names its key beyond doubt. One that is signed already may name an earlier
   * reshare: its request can have ended before the next one.
   *
   * @throws CliException if it already names another one
   */
  public SigningIntent naming(AttestedKey key, SigningIntent intent) {
    boolean silent = intent.getInstallation().isEmpty() && intent.getKeyFingerprint().isEmpty();
    SigningIntent named =
        intent.toBuilder()
            .setInstallation(installation())
            .setKeyFingerprint(key.fingerprint())
            .setReshareEpoch(silent ? key.reshareEpoch() : intent.getReshareEpoch())
            .build();
    if (!silent && !named.equals(intent)) {
      throw CliException.local(
          "the intent is for installation "
              + intent.getInstallation()
              + " and a key with fingerprint "
              + KeyFingerprint.text(intent.getKeyFingerprint())
              + "; "
              + key.name()
              + " of "
              + installation()
              + " has "
              + KeyFingerprint.text(key.fingerprint()));
    }
    return named;
  }

  /** Asks for a key; the answer is not verified. */
  private ListenableFuture<Key> ask(String name) {
    return ask(name, ByteString.EMPTY);
  }

  /**
   * Asks for a key, and its parties which epoch of it they use; the answer is not verified.
   *
   * @param challenge that {@link #challenge} has drawn for this
   */
  ListenableFuture<Key> ask(String name, ByteString challenge) {
    return KeyServiceGrpc.newFutureStub(connection.channel())
        .withDeadlineAfter(profile.timeout().toSeconds(), SECONDS)
        .getKey(
            GetKeyRequest.newBuilder()
                .setName(Spelling.keyName(name))
                .setChallenge(challenge)
                .build());
  }

  /** A challenge to the parties of a key, for one answer alone. */
  static ByteString challenge() {
    byte[] challenge = new byte[CurrentStatement.CHALLENGE_BYTES];
    RANDOM.nextBytes(challenge);
    return ByteString.copyFrom(challenge);
  }

  /** How many receipts of a key's parties prove that a request was not signed. */
  String receipts(AttestedKey key) {
    int holders = key.parties().size();
    return Output.receipts(trust.receiptsNeeded(holders, key.threshold()), holders);
  }

  /** Asks for a key, and waits for it. */
  public AttestedKey get(String name) {
    return require(name, answer(ask(name)));
  }

  /**
   * Asks for a key that is about to be replaced, and waits for it.
   *
   * @param err told which parties may go on to another epoch all the same
   * @throws CliException if its parties do not prove that they use the epoch that is shown
   */
  AttestedKey getCurrent(String name, PrintWriter err) {
    ByteString challenge = challenge();
    Key answer = answer(ask(name, challenge));
    AttestedKey key = require(name, answer);
    CurrentProof proof = proof(key, answer, challenge);
    if (!proof.holds()) {
      throw refused(
          key.name(),
          "is not proven to be in epoch "
              + key.epoch()
              + " now: "
              + Output.count(proof)
              + ". Ask again when more parties can be reached, or give the epoch with --epoch.");
    }
    if (!proof.undecided().isEmpty()) {
      err.println(Output.undecided(proof));
    }
    return key;
  }

  /**
   * Verifies the parties' answers to a challenge.
   *
   * @param key that the answer attests
   * @throws CliException if one of them is not what it must be, or shows a later epoch
   */
  CurrentProof proof(AttestedKey key, Key answer, ByteString challenge) {
    try {
      return CurrentProof.of(key, answer, challenge, trust);
    } catch (AttestationException e) {
      throw refused(key.name(), "is not shown as it is now: " + e.getMessage());
    }
  }

  /** Waits for an answer; it is not verified. */
  static Key answer(ListenableFuture<Key> asked) {
    try {
      return asked.get();
    } catch (ExecutionException e) {
      throw CliException.of(Objects.requireNonNullElse(e.getCause(), e));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new CliException(ExitCode.UNAVAILABLE, "interrupted before the key was known");
    }
  }

  /**
   * Verifies an answer.
   *
   * @param name the key that was asked for
   * @throws CliException saying why nothing of it may be believed
   */
  public AttestedKey require(String name, Key answer) {
    String whole = Spelling.keyName(name);
    try {
      return AttestedKey.of(whole, answer, trust);
    } catch (AttestationException e) {
      throw refused(whole, "is not attested: " + e.getMessage());
    }
  }

  /**
   * Refuses an answer without attestation that shows no state of the key that was asked for.
   *
   * @param name resource name
   */
  static void requireState(String name, Key answer) {
    boolean shown =
        switch (answer.getState()) {
          case ACTIVE -> true; // its attestation is looked at
          case STATE_UNSPECIFIED -> false;
          default -> answer.getName().equals(name);
        };
    if (!shown) {
      throw refused(name, "is not shown: the answer has no state, or is about another key");
    }
  }

  /** A refusal that names its key, if that is the name of one. */
  public static CliException refused(String name, String why) {
    return new CliException(
        ExitCode.REFUSED, (IntentVerifier.isKeyName(name) ? name : "a key") + " " + why);
  }

  /**
   * The public key that signatures for a target verify under.
   *
   * @throws CliException if keys of its scheme have no such target
   */
  public static ByteString verifyingKey(AttestedKey key, KeyTarget target) {
    try {
      return key.verifyingKey(target);
    } catch (IllegalArgumentException e) {
      throw noSuchChild(key);
    }
  }

  /**
   * The address of a key's descendant.
   *
   * @throws CliException if keys of its scheme have no such descendant or no addresses there
   */
  static String address(
      AttestedKey key, Chain chain, List<Integer> path, BitcoinAddress.Network network) {
    if (!chain.has(key.scheme())) {
      throw CliException.local(
          key.name()
              + " has no "
              + chain.name().toLowerCase(Locale.ROOT)
              + " addresses: its scheme is "
              + Spelling.scheme(key.scheme()));
    }
    try {
      return chain.address(key.scheme(), key.keyPublic(), path, network);
    } catch (IllegalArgumentException e) {
      throw noSuchChild(key);
    }
  }

  private static CliException noSuchChild(AttestedKey key) {
    return CliException.local(
        key.name() + " has no such child: its scheme is " + Spelling.scheme(key.scheme()));
  }

  /**
   * Refuses to use a key in the way of another scheme.
   *
   * @throws CliException saying which scheme it is of
   */
  public static void requireScheme(AttestedKey key, Scheme scheme) {
    if (key.scheme() != scheme) {
      String its = Spelling.scheme(key.scheme());
      throw CliException.local(
          key.name()
              + " is of scheme "
              + its
              + " and not "
              + Spelling.scheme(scheme)
              + ": give --scheme "
              + its);
    }
  }
}
