package io.coterie.cli.key;

import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.protobuf.ByteString;
import io.coterie.cli.intent.Approval;
import io.coterie.cli.intent.IntentOptions;
import io.coterie.cli.payload.DerivationPath;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Printing;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.payload.BitcoinAddress;
import io.coterie.platform.payload.Chain;
import io.coterie.proto.custody.v1.CancelKeyOperationRequest;
import io.coterie.proto.custody.v1.CreateKeyRequest;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.ImportKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.RefreshKeyRequest;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.ReshareKeyRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code coterie keys}. */
@Command(
    name = "keys",
    addMethodSubcommands = false,
    aliases = "key",
    mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND",
    description = "Create, import and look up keys, give them new shares.")
public final class KeysCommand {
  private static final int PAGE = 50;

  private static final String EPOCH =
      "The epoch to replace, when a request id is repeated; else the present, if enough parties say"
          + " that they use it.";

  @Spec @Nullable CommandSpec spec;

  @Command(
      name = "create",
      mixinStandardHelpOptions = true,
      description = "Create a key by distributed key generation and wait for it.")
  int create(
      @Mixin Profile profile,
      @Mixin Output output,
      @Mixin IntentOptions common,
      @Mixin Approval approval,
      @Parameters(paramLabel = "KEY", description = "1 to 63 of [a-z0-9-], a letter first.")
          String key,
      @Option(names = "--threshold", required = true, description = "Parties needed to sign.")
          int threshold,
      @Option(
              names = "--parties",
              required = true,
              split = ",",
              paramLabel = "NAME",
              description = "Parties that will hold a share, in the roster's spelling.")
          List<String> parties,
      @Option(
              names = "--scheme",
              defaultValue = "bls12381",
              completionCandidates = Spelling.Schemes.class,
              description = "${COMPLETION-CANDIDATES}; default ${DEFAULT-VALUE}.")
          String scheme) {
    KeyIntent intent =
        KeyIntent.newBuilder()
            .setRequestId(common.requestId())
            .setKey(Spelling.keyName(key))
            .setScheme(Spelling.parseScheme(scheme))
            .setThreshold(threshold)
            .addAllParties(parties)
            .setInstallation(profile.trust().roster().installation())
            .setPurpose(common.purpose())
            .setNotAfter(common.notAfter())
            .build();
    IntentSigner signer = profile.requesterKey();
    approval.require(spec, profile.requester(), intent);
    SignedIntent signed = signer.sign(intent);
    try (Profile.Connection connection = profile.connect()) {
      AttestedKeys keys = new AttestedKeys(profile, connection);
      err().println("request id " + intent.getRequestId());
      Key answer =
          stub(profile, connection)
              .createKey(CreateKeyRequest.newBuilder().setSignedIntent(signed).build());
      AttestedKeys.requireState(intent.getKey(), answer);
      if (answer.getState() != Key.State.ACTIVE) {
        output.keyState(out(), intent.getKey(), answer);
        return ExitCode.REFUSED;
      }
      AttestedKey created = keys.require(intent.getKey(), answer);
      require(
          created.creation().equals(IntentVerifier.digest(signed.getPayload())),
          created,
          "was created by another intent than this one");
      output.key(out(), answer, created);
      receipts(output, keys, created);
      return 0;
    }
  }

  @Command(
      name = "import",
      mixinStandardHelpOptions = true,
      description =
          "Have parties take over an Ed25519 key that exists already, so that any two of them sign"
              + " exactly as RFC 8032 says. The key is split here, and no party sees it.")
  int importKey(
      @Mixin Profile profile,
      @Mixin Output output,
      @Mixin IntentOptions common,
      @Mixin Approval approval,
      @Parameters(paramLabel = "KEY", description = "1 to 63 of [a-z0-9-], a letter first.")
          String key,
      @Option(
              names = "--seed",
              required = true,
              paramLabel = "FILE",
              description = "The Ed25519 key, as PEM (PKCS#8) or the 32 bytes of its seed.")
          Path file,
      @Option(
              names = "--parties",
              required = true,
              split = ",",
              paramLabel = "NAME",
              description = "Parties that will hold a share, in the roster's spelling.")
          List<String> parties) {
    IntentSigner signer = profile.requesterKey();
    SplitSeed split = SplitSeed.of(Spelling.keyName(key), file, parties, profile.trust().roster());
    ImportIntent intent =
        ImportIntent.newBuilder()
            .setRequestId(common.requestId())
            .setKey(Spelling.keyName(key))
            .setScheme(Scheme.SCHEME_ED25519_EXACT)
            .setThreshold(IntentVerifier.IMPORT_THRESHOLD)
            .addAllParties(parties)
            .setPublicKey(split.publicKey())
            .addAllShareDigests(split.shares().stream().map(IntentVerifier::digest).toList())
            .setInstallation(profile.trust().roster().installation())
            .setPurpose(common.purpose())
            .setNotAfter(common.notAfter())
            .build();
    approval.require(spec, profile.requester(), intent);
    SignedIntent signed = signer.sign(intent);
    try (Profile.Connection connection = profile.connect()) {
      AttestedKeys keys = new AttestedKeys(profile, connection);
      err().println("request id " + intent.getRequestId());
      Key answer =
          stub(profile, connection)
              .importKey(
                  ImportKeyRequest.newBuilder()
                      .setSignedIntent(signed)
                      .addAllEncryptedShares(split.shares())
                      .build());
      AttestedKey imported = keys.require(intent.getKey(), answer);
      require(
          imported.creation().equals(IntentVerifier.digest(signed.getPayload())),
          imported,
          "was made by another intent than this one");
      output.key(out(), answer, imported);
      return 0;
    }
  }

  @Command(
      name = "get",
      aliases = "show",
      mixinStandardHelpOptions = true,
      description = "Show one key, or an address of it.")
  int get(
      @Mixin Profile profile,
      @Mixin Output output,
      @Parameters(paramLabel = "KEY") String key,
      @Option(
              names = "--address",
              paramLabel = "CHAIN",
              description =
                  "Show only the address: ethereum, bitcoin (ECDSA: P2WPKH; BIP-340: Taproot without"
                      + " scripts, BIP-86), or solana.")
          @Nullable Chain chain,
      @Option(
              names = "--path",
              paramLabel = "PATH",
              converter = DerivationPath.class,
              description = "The child of the key, such as m/0/1; the key itself by default.")
          @Nullable DerivationPath path,
      @Option(
              names = "--network",
              defaultValue = "mainnet",
              description = "Bitcoin: ${COMPLETION-CANDIDATES}; default ${DEFAULT-VALUE}.")
          BitcoinAddress.Network network) {
    List<Integer> numbers = path == null ? List.of() : path.numbers();
    boolean whole = chain == null && numbers.isEmpty();
    // An address is the same in every epoch.
    ByteString challenge = whole ? AttestedKeys.challenge() : ByteString.EMPTY;
    try (Profile.Connection connection = profile.connect()) {
      AttestedKeys keys = new AttestedKeys(profile, connection);
      Key answer = AttestedKeys.answer(keys.ask(key, challenge));
      AttestedKeys.requireState(Spelling.keyName(key), answer);
      if (whole && answer.getState() != Key.State.ACTIVE) {
        output.keyState(out(), Spelling.keyName(key), answer);
        return 0;
      }
      AttestedKey found = keys.require(key, answer);
      if (whole) {
        output.key(out(), answer, found, keys.proof(found, answer, challenge));
        receipts(output, keys, found);
      } else {
        String place = path == null ? "m" : path.toString();
        if (chain == null) {
          output.child(
              out(), found.name(), place, AttestedKeys.verifyingKey(found, KeyTarget.at(numbers)));
        } else {
          String address = AttestedKeys.address(found, chain, numbers, network);
          output.address(out(), found.name(), place, address);
        }
      }
      return 0;
    }
  }

  @Command(
      name = "refresh",
      mixinStandardHelpOptions = true,
      description =
          "Give every party a new share of the same key; the old shares are worthless then.")
  int refresh(
      @Mixin Profile profile,
      @Mixin Output output,
      @Mixin IntentOptions common,
      @Mixin Approval approval,
      @Parameters(paramLabel = "KEY") String key,
      @Option(names = "--epoch", description = EPOCH) @Nullable Integer epoch) {
    IntentSigner signer = profile.requesterKey();
    try (Profile.Connection connection = profile.connect()) {
      AttestedKeys keys = new AttestedKeys(profile, connection);
      AttestedKey present = epoch == null ? keys.getCurrent(key, err()) : keys.get(key);
      RefreshIntent intent =
          RefreshIntent.newBuilder()
              .setRequestId(common.requestId())
              .setKey(present.name())
              .setScheme(present.scheme())
              .setEpoch(epoch == null ? present.epoch() : epoch)
              .setInstallation(keys.installation())
              .setKeyFingerprint(present.fingerprint())
              .setPurpose(common.purpose())
              .setNotAfter(common.notAfter())
              .build();
      approval.require(spec, profile.requester(), intent);
      SignedIntent signed = signer.sign(intent);
      err().println("request id " + intent.getRequestId() + ", epoch " + intent.getEpoch());
      Key answer =
          stub(profile, connection)
              .refreshKey(RefreshKeyRequest.newBuilder().setSignedIntent(signed).build());
      AttestedKey renewed = keys.require(key, answer);
      // A later epoch proves nothing: it may be older than this intent.
      require(
          renewed.intents().contains(IntentVerifier.digest(signed.getPayload())),
          renewed,
          "is not known to have new shares by this intent: it shows epoch "
              + renewed.epoch()
              + " by another one, or by this one for fewer parties than the trust file asks for"
              + " now");
      output.key(out(), answer, renewed);
      return 0;
    }
  }

  @Command(
      name = "reshare",
      mixinStandardHelpOptions = true,
      description =
          "Give shares of the same key to these parties; a party that is not named loses its share,"
              + " and the old shares are worthless then. With the parties as they are: repairs a"
              + " lost share.")
  int reshare(
      @Mixin Profile profile,
      @Mixin Output output,
      @Mixin IntentOptions common,
      @Mixin Approval approval,
      @Parameters(paramLabel = "KEY") String key,
      @Option(
              names = "--threshold",
              required = true,
              description = "Parties needed to sign from then on.")
          int threshold,
      @Option(
              names = "--parties",
              required = true,
              split = ",",
              paramLabel = "NAME",
              description = "Parties that will hold a share, in the roster's spelling.")
          List<String> parties,
      @Option(names = "--epoch", description = EPOCH) @Nullable Integer epoch) {
    IntentSigner signer = profile.requesterKey();
    try (Profile.Connection connection = profile.connect()) {
      AttestedKeys keys = new AttestedKeys(profile, connection);
      AttestedKey present = epoch == null ? keys.getCurrent(key, err()) : keys.get(key);
      ReshareIntent intent =
          ReshareIntent.newBuilder()
              .setRequestId(common.requestId())
              .setKey(present.name())
              .setScheme(present.scheme())
              .setEpoch(epoch == null ? present.epoch() : epoch)
              .setThreshold(threshold)
              .addAllParties(parties)
              .setPublicKey(present.keyPublic().getPublicKey())
              .setInstallation(keys.installation())
              .setPurpose(common.purpose())
              .setNotAfter(common.notAfter())
              .build();
      approval.require(spec, profile.requester(), intent);
      SignedIntent signed = signer.sign(intent);
      err().println("request id " + intent.getRequestId() + ", epoch " + intent.getEpoch());
      Key answer =
          stub(profile, connection)
              .reshareKey(ReshareKeyRequest.newBuilder().setSignedIntent(signed).build());
      AttestedKey renewed = keys.require(key, answer);
      require(
          renewed.intents().contains(IntentVerifier.digest(signed.getPayload())),
          renewed,
          "was not given to these parties by this intent, or they are fewer than the trust file"
              + " asks for now");
      output.key(out(), answer, renewed);
      receipts(output, keys, renewed);
      return 0;
    }
  }

  @Command(
      name = "cancel",
      mixinStandardHelpOptions = true,
      description =
          "End a refresh or reshare that is running, unless the parties use the new shares"
              + " already.")
  int cancel(
      @Mixin Profile profile,
      @Mixin Output output,
      @Parameters(paramLabel = "KEY") String key,
      @Option(
              names = "--request-id",
              required = true,
              paramLabel = "UUID",
              description = "Of the refresh or reshare.")
          String requestId) {
    try (Profile.Connection connection = profile.connect()) {
      AttestedKeys keys = new AttestedKeys(profile, connection);
      Key answer =
          stub(profile, connection)
              .cancelKeyOperation(
                  CancelKeyOperationRequest.newBuilder()
                      .setName(Spelling.keyName(key))
                      .setRequestId(requestId)
                      .build());
      output.key(out(), answer, keys.require(key, answer));
      return 0;
    }
  }

  @Command(
      name = "list",
      mixinStandardHelpOptions = true,
      description = "Show all keys; exit code 3 if one of them is not attested.")
  int list(@Mixin Profile profile, @Mixin Output output) {
    try (Profile.Connection connection = profile.connect()) {
      KeyList list = new KeyList(new AttestedKeys(profile, connection), output, out(), err());
      String page = "";
      do {
        ListKeysResponse next =
            stub(profile, connection)
                .listKeys(
                    ListKeysRequest.newBuilder().setPageSize(PAGE).setPageToken(page).build());
        list.add(next);
        page = next.getNextPageToken();
      } while (!page.isEmpty());
      return list.end();
    }
  }

  /** Says whether the shape of a key lets it be proven that a request was not signed. */
  private void receipts(Output output, AttestedKeys keys, AttestedKey key) {
    if (output.isText()) {
      Output.row(out(), "receipts", keys.receipts(key));
    }
  }

  private static KeyServiceGrpc.KeyServiceBlockingStub stub(
      Profile profile, Profile.Connection connection) {
    return KeyServiceGrpc.newBlockingStub(connection.channel())
        .withDeadlineAfter(profile.timeout().toSeconds(), SECONDS);
  }

  /** Refuses a key that is attested, but not the work of the intent that was sent. */
  private static void require(boolean condition, AttestedKey key, String why) {
    if (!condition) {
      throw AttestedKeys.refused(
          key.name(),
          why + ". Compare 'coterie keys get' with the records of the parties before you use it.");
    }
  }

  private PrintWriter out() {
    return Printing.out(spec);
  }

  private PrintWriter err() {
    return Printing.err(spec);
  }
}
