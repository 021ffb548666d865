package io.coterie.cli;

import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
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
    description = "Get a signature and wait for it.")
final class SignCommand implements Callable<Integer> {
  @Spec @Nullable CommandSpec spec;
  @Mixin Profile profile = new Profile();
  @Mixin Output output = new Output();
  @Mixin IntentOptions common = new IntentOptions();

  @Parameters(paramLabel = "KEY", arity = "0..1", description = "Name of the key.")
  @Nullable String key;

  @ArgGroup IntentOptions.@Nullable Payload payload;

  @Option(
      names = "--scheme",
      defaultValue = "bls12381",
      description = "Signature scheme; default ${DEFAULT-VALUE}.")
  String scheme = "bls12381";

  @Option(
      names = "--intent",
      paramLabel = "FILE",
      description = "Instead of a key and a message: what 'coterie intent sign' wrote.")
  @Nullable Path intent;

  @Override
  public Integer call() {
    SignedIntent signed;
    if (intent != null && key == null && payload == null) {
      signed = read(intent);
    } else if (intent == null && key != null && payload != null) {
      SigningIntent made = common.signing(key, scheme, payload);
      signed = profile.requesterKey().sign(made);
      Printing.err(spec).println("request id " + made.getRequestId());
    } else {
      throw new ParameterException(
          Printing.line(spec), "Give a KEY and a message, or --intent FILE alone");
    }
    try (Profile.Connection connection = profile.connect()) {
      Signing signing =
          SigningServiceGrpc.newBlockingStub(connection.channel())
              .withDeadlineAfter(profile.timeout().toSeconds(), SECONDS)
              .sign(SignRequest.newBuilder().setSignedIntent(signed).build());
      output.signing(Printing.out(spec), signing);
      return switch (signing.getState()) {
        case SIGNED -> 0;
        case FAILED -> Coterie.REFUSED;
        default -> Coterie.UNAVAILABLE;
      };
    }
  }

  private static SignedIntent read(Path file) {
    try {
      return SignedIntent.parseFrom(Files.readAllBytes(file));
    } catch (InvalidProtocolBufferException e) {
      throw CliException.local("intent file " + file + " is not a signed intent");
    } catch (IOException e) {
      throw CliException.local("intent file " + file + " cannot be read");
    }
  }
}
