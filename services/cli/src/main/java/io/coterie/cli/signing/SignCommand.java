package io.coterie.cli.signing;

import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.cli.intent.Approval;
import io.coterie.cli.intent.IntentFile;
import io.coterie.cli.intent.IntentOptions;
import io.coterie.cli.key.AttestedKeys;
import io.coterie.cli.payload.PayloadOptions;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Printing;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.grpc.StatusRuntimeException;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code coterie sign}. */
@Command(
    name = "sign",
    mixinStandardHelpOptions = true,
    description =
        "Get a signature and wait for it. Exit code 0: it is signed; 6: the parties have proven that"
            + " it never is; 4: not known, whatever the coordinator says.")
public final class SignCommand implements Callable<Integer> {
  private static final String UNKNOWN =
      "UNKNOWN. Whether it was signed is not known. Repeat this with the same --request-id,"
          + " --reshare-epoch and other options, or --intent, then 'coterie cancel': sign the payload"
          + " under no other id before that says NOT SIGNED.";

  @Spec @Nullable CommandSpec spec;
  @Mixin Profile profile = new Profile();
  @Mixin Output output = new Output();
  @Mixin IntentOptions common = new IntentOptions();
  @Mixin Approval approval = new Approval();

  @Parameters(paramLabel = "KEY", arity = "0..1", description = "Name of the key.")
  @Nullable String key;

  @Mixin PayloadOptions payload = new PayloadOptions();

  @Option(
      names = "--intent",
      paramLabel = "FILE",
      description = "Instead of a key and a payload: what 'coterie intent sign' wrote.")
  @Nullable Path intent;

  @Option(
      names = "--reshare-epoch",
      paramLabel = "EPOCH",
      description =
          "To repeat a request after a reshare of its key: the one that was printed then.")
  @Nullable Integer reshareEpoch;

  @Override
  public Integer call() {
    boolean fromFile = intent != null && key == null && !payload.given() && reshareEpoch == null;
    if (!fromFile && (intent != null || key == null || !payload.given())) {
      throw new ParameterException(
          Printing.line(spec), "Give a KEY and what to sign, or --intent FILE alone");
    }
    SignedIntent ready = fromFile ? IntentFile.read(Objects.requireNonNull(intent)) : null;
    SigningIntent asked =
        ready != null
            ? content(ready)
            : common.signing(Objects.requireNonNull(key), payload, Printing.line(spec));
    Optional<IntentSigner> signer =
        ready != null ? Optional.empty() : Optional.of(profile.requesterKey());
    try (Profile.Connection connection = profile.connect()) {
      AttestedKeys keys = new AttestedKeys(profile, connection);
      // On its way while the person reads.
      ListenableFuture<Key> answer = keys.ask(asked.getKey());
      approval.require(spec, asked);
      AttestedKey attested = keys.require(asked.getKey(), AttestedKeys.answer(answer));
      SigningIntent named = keys.naming(attested, asked);
      if (reshareEpoch != null) {
        named = named.toBuilder().setReshareEpoch(reshareEpoch).build();
      }
      ExpectedSigning expected = ExpectedSigning.of(named, attested);
      SignedIntent signed = ready;
      if (signed == null) {
        signed = signer.orElseThrow().sign(named);
        // Both are needed to cancel the request later.
        Printing.err(spec)
            .printf(
                "request id %s%nreshare epoch %d%n", named.getRequestId(), named.getReshareEpoch());
      }
      ReceiptCheck receipts = new ReceiptCheck(attested, profile.trust());
      Signing signing;
      try {
        signing =
            expected.require(
                signed,
                receipts,
                SigningServiceGrpc.newBlockingStub(connection.channel())
                    .withDeadlineAfter(profile.timeout().toSeconds(), SECONDS)
                    .sign(SignRequest.newBuilder().setSignedIntent(signed).build()));
      } catch (StatusRuntimeException e) {
        // The sender of an error can have the signature. Nothing of its advice is passed on.
        throw new CliException(
            ExitCode.UNAVAILABLE,
            UNKNOWN + " The coordinator's word, which proves nothing: " + CliException.said(e));
      } catch (CliException e) {
        throw new CliException(ExitCode.UNAVAILABLE, UNKNOWN + " " + e.getMessage());
      }
      output.signing(
          Printing.out(spec),
          signing,
          signing.getState() == Signing.State.SIGNED
              ? SignedPayload.signed(asked, expected.publicKey(), signing)
              : Optional.empty());
      return switch (signing.getState()) {
        case SIGNED -> 0;
        case NOT_SIGNED -> ExitCode.NOT_SIGNED;
        default -> {
          Printing.err(spec).println(UNKNOWN);
          yield ExitCode.UNAVAILABLE;
        }
      };
    }
  }

  static SigningIntent content(SignedIntent signed) {
    try {
      return SigningIntent.parseFrom(signed.getPayload());
    } catch (InvalidProtocolBufferException e) {
      throw CliException.local("the intent is not one to sign something");
    }
  }
}
