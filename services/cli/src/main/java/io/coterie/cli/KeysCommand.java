package io.coterie.cli;

import static java.util.concurrent.TimeUnit.SECONDS;

import io.coterie.proto.custody.v1.CreateKeyRequest;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.coterie.proto.custody.v1.SignedIntent;
import java.io.PrintWriter;
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
    mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND",
    description = "Create and look up keys.")
final class KeysCommand {
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

  @Command(name = "get", mixinStandardHelpOptions = true, description = "Show one key.")
  int get(
      @Mixin Profile profile, @Mixin Output output, @Parameters(paramLabel = "KEY") String key) {
    try (Profile.Connection connection = profile.connect()) {
      output.key(out(), get(profile, connection, key));
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
        String row = "%-24s %-9s %-9s %-7s %s%n";
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
