package io.coterie.cli;

import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.protobuf.ByteString;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.payload.BitcoinAddress;
import io.coterie.platform.payload.EthereumAddress;
import io.coterie.platform.payload.SolanaAddress;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.CancelKeyOperationRequest;
import io.coterie.proto.custody.v1.CreateKeyRequest;
import io.coterie.proto.custody.v1.GetKeyRequest;
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
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
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
    aliases = "key",
    mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND",
    description = "Create and look up keys, give them new shares.")
final class KeysCommand {
  private static final String EPOCH =
      "The epoch to replace, when a request id is repeated; else the present.";

  @Spec @Nullable CommandSpec spec;

  @Command(
      name = "create",
      mixinStandardHelpOptions = true,
      description = "Create a key by distributed key generation and wait for it.")
  int create(
      @Mixin Profile profile,
      @Mixin Output output,
      @Mixin IntentOptions common,
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
              description = "Signature scheme; default ${DEFAULT-VALUE}.")
          String scheme) {
    KeyIntent intent =
        KeyIntent.newBuilder()
            .setRequestId(common.requestId())
            .setKey(IntentOptions.keyName(key))
            .setScheme(IntentOptions.parseScheme(scheme))
            .setThreshold(threshold)
            .addAllParties(parties)
            .setPurpose(common.purpose)
            .setNotAfter(common.notAfter())
            .build();
    SignedIntent signed = profile.requesterKey().sign(intent);
    err().println("request id " + intent.getRequestId());
    try (Profile.Connection connection = profile.connect()) {
      Key created =
          keys(profile, connection)
              .createKey(CreateKeyRequest.newBuilder().setSignedIntent(signed).build());
      output.key(out(), created);
      return created.getState() == Key.State.ACTIVE ? 0 : Coterie.REFUSED;
    }
  }

  /** Chains whose addresses are known. */
  enum Chain {
    ETHEREUM,
    BITCOIN,
    SOLANA
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
    Key found;
    try (Profile.Connection connection = profile.connect()) {
      found = get(profile, connection, key);
    }
    List<Integer> numbers = path == null ? List.of() : path.numbers();
    if (chain == null && numbers.isEmpty()) {
      output.key(out(), found);
      return 0;
    }
    KeyTarget target = KeyTarget.at(numbers);
    out()
        .println(
            chain == null
                ? HexFormat.of().formatHex(signer(found, target).toByteArray())
                : address(found, target, chain, network));
    return 0;
  }

  private static String address(
      Key key, KeyTarget target, Chain chain, BitcoinAddress.Network network) {
    boolean schnorr = key.getScheme() == Scheme.SCHEME_BIP340_SECP256K1;
    boolean known =
        switch (chain) {
          case ETHEREUM -> key.getScheme() == Scheme.SCHEME_ECDSA_SECP256K1;
          case BITCOIN -> schnorr || key.getScheme() == Scheme.SCHEME_ECDSA_SECP256K1;
          case SOLANA -> key.getScheme() == Scheme.SCHEME_ED25519;
        };
    if (!known) {
      throw CliException.local(
          key.getName()
              + " has no "
              + chain.name().toLowerCase(Locale.ROOT)
              + " addresses: its scheme is "
              + Output.scheme(key.getScheme().name()));
    }
    return switch (chain) {
      case ETHEREUM -> EthereumAddress.of(signer(key, target));
      case SOLANA -> SolanaAddress.of(signer(key, target));
      case BITCOIN ->
          schnorr
              ? BitcoinAddress.taproot(
                  signer(key, new KeyTarget(target.path(), Optional.of(ByteString.EMPTY))), network)
              : BitcoinAddress.of(signer(key, target), network);
    };
  }

  /**
   * The public key that signatures for a target verify under.
   *
   * @throws CliException if keys of its scheme have no such target, or it is not made yet
   */
  static ByteString signer(Key key, KeyTarget target) {
    KeyPublic.Builder publicKey = KeyPublic.newBuilder().setPublicKey(key.getPublicKey());
    if (!key.getXpub().isEmpty()) {
      ExtendedPublicKey root = ExtendedPublicKey.parse(key.getXpub());
      publicKey.setPublicKey(root.publicKey()).setChainCode(root.chainCode());
    }
    if (publicKey.getPublicKey().isEmpty()) {
      throw CliException.local(
          key.getName() + " has no public key: its state is " + key.getState());
    }
    try {
      return SchemeKeys.of(key.getScheme()).verifyingKey(publicKey.build(), target);
    } catch (IllegalArgumentException e) {
      throw CliException.local(
          key.getName()
              + " has no such child: its scheme is "
              + Output.scheme(key.getScheme().name()));
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
      @Parameters(paramLabel = "KEY") String key,
      @Option(names = "--epoch", description = EPOCH) @Nullable Integer epoch) {
    try (Profile.Connection connection = profile.connect()) {
      Key present = get(profile, connection, key);
      RefreshIntent intent =
          RefreshIntent.newBuilder()
              .setRequestId(common.requestId())
              .setKey(present.getName())
              .setScheme(present.getScheme())
              .setEpoch(epoch == null ? present.getEpoch() : epoch)
              .setPurpose(common.purpose)
              .setNotAfter(common.notAfter())
              .build();
      SignedIntent signed = profile.requesterKey().sign(intent);
      err().println("request id " + intent.getRequestId() + ", epoch " + intent.getEpoch());
      output.key(
          out(),
          keys(profile, connection)
              .refreshKey(RefreshKeyRequest.newBuilder().setSignedIntent(signed).build()));
      return 0;
    }
  }

  @Command(
      name = "reshare",
      mixinStandardHelpOptions = true,
      description =
          "Give shares of the same key to these parties; who is not named loses its share, and the"
              + " old shares are worthless then. With the parties as they are: repairs a lost"
              + " share.")
  int reshare(
      @Mixin Profile profile,
      @Mixin Output output,
      @Mixin IntentOptions common,
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
    try (Profile.Connection connection = profile.connect()) {
      Key present = get(profile, connection, key);
      ReshareIntent intent =
          ReshareIntent.newBuilder()
              .setRequestId(common.requestId())
              .setKey(present.getName())
              .setScheme(present.getScheme())
              .setEpoch(epoch == null ? present.getEpoch() : epoch)
              .setThreshold(threshold)
              .addAllParties(parties)
              .setPublicKey(present.getPublicKey())
              .setPurpose(common.purpose)
              .setNotAfter(common.notAfter())
              .build();
      SignedIntent signed = profile.requesterKey().sign(intent);
      err().println("request id " + intent.getRequestId() + ", epoch " + intent.getEpoch());
      output.key(
          out(),
          keys(profile, connection)
              .reshareKey(ReshareKeyRequest.newBuilder().setSignedIntent(signed).build()));
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
      output.key(
          out(),
          keys(profile, connection)
              .cancelKeyOperation(
                  CancelKeyOperationRequest.newBuilder()
                      .setName(IntentOptions.keyName(key))
                      .setRequestId(requestId)
                      .build()));
      return 0;
    }
  }

  @Command(name = "list", mixinStandardHelpOptions = true, description = "Show all keys.")
  int list(@Mixin Profile profile, @Mixin Output output) {
    try (Profile.Connection connection = profile.connect()) {
      ListKeysResponse.Builder all = ListKeysResponse.newBuilder();
      String page = "";
      do {
        ListKeysResponse next =
            keys(profile, connection)
                .listKeys(
                    ListKeysRequest.newBuilder().setPageSize(1000).setPageToken(page).build());
        all.addAllKeys(next.getKeysList());
        page = next.getNextPageToken();
      } while (!page.isEmpty());
      if (!output.json(out(), all)) {
        String row = "%-24s %-9s %-15s %-7s %s%n";
        out().printf(row, "KEY", "STATE", "SCHEME", "T OF N", "PARTIES");
        for (Key key : all.getKeysList()) {
          out()
              .printf(
                  row,
                  key.getName(),
                  key.getState(),
                  Output.scheme(key.getScheme().name()),
                  key.getThreshold() + " of " + key.getPartiesCount(),
                  String.join(", ", key.getPartiesList()));
        }
        out().flush();
      }
      return 0;
    }
  }

  static Key get(Profile profile, Profile.Connection connection, String key) {
    return keys(profile, connection)
        .getKey(GetKeyRequest.newBuilder().setName(IntentOptions.keyName(key)).build());
  }

  private static KeyServiceGrpc.KeyServiceBlockingStub keys(
      Profile profile, Profile.Connection connection) {
    return KeyServiceGrpc.newBlockingStub(connection.channel())
        .withDeadlineAfter(profile.timeout().toSeconds(), SECONDS);
  }

  private PrintWriter out() {
    return Printing.out(spec);
  }

  private PrintWriter err() {
    return Printing.err(spec);
  }
}
