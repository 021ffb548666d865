package io.coterie.cli.signing;

import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.protobuf.Timestamp;
import com.google.protobuf.util.Timestamps;
import io.coterie.cli.key.AttestedKeys;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Printing;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.attestation.NeverProof;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.CancelSigningRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code coterie cancel}. */
@Command(
    name = "cancel",
    mixinStandardHelpOptions = true,
    description =
        "Have a request never signed, and learn how it ended: exit code 0 if it is proven that"
            + " nothing was signed, 1 if it is signed, 4 if it is not known.")
public final class CancelCommand implements Callable<Integer> {
  private static final Duration LIFE = Duration.ofMinutes(5);

  @Spec @Nullable CommandSpec spec;
  @Mixin Profile profile = new Profile();
  @Mixin Output output = new Output();

  @Parameters(paramLabel = "KEY", description = "Name of the key.")
  String key = "";

  @Option(
      names = "--request-id",
      required = true,
      paramLabel = "UUID",
      description = "Of the request, at most a day old.")
  String requestId = "";

  @Option(
      names = "--reshare-epoch",
      paramLabel = "EPOCH",
      description = "If the key was reshared since: the one that the request's intent names.")
  @Nullable Integer reshareEpoch;

  @Option(
      names = "--intent",
      paramLabel = "FILE",
      description =
          "The request's signed intent, from 'coterie intent sign': a signature is verified then.")
  @Nullable Path intent;

  @Override
  public Integer call() {
    if (!RequestId.isOne(requestId)) {
      throw CliException.local("--request-id is not a lower-case UUID of version 7");
    }
    Optional<SignedIntent> asked = Optional.ofNullable(intent).map(SignCommand::read);
    IntentSigner signer = profile.requesterKey();
    try (Profile.Connection connection = profile.connect()) {
      AttestedKey attested = new AttestedKeys(profile, connection).get(key);
      CancelIntent cancel = cancel(attested);
      SignedIntent signed = signer.sign(cancel);
      Signing answer =
          SigningServiceGrpc.newBlockingStub(connection.channel())
              .withDeadlineAfter(profile.timeout().toSeconds(), SECONDS)
              .cancelSigning(CancelSigningRequest.newBuilder().setSignedIntent(signed).build());
      requireField(attested, "name", answer.getName().startsWith(attested.name() + "/signings/"));
      requireField(attested, "request_id", answer.getRequestId().equals(requestId));
      ReceiptCheck receipts = new ReceiptCheck(attested, profile.trust());
      if (answer.getState() == Signing.State.SIGNED) {
        return signed(attested, receipts, asked, answer);
      }
      return notSigned(
          ExpectedSigning.unfinished(answer),
          receipts,
          new NeverProof.Request(
              signed.getSignatures(0).getKeyid(), requestId, cancel.getReshareEpoch()));
    }
  }

  private CancelIntent cancel(AttestedKey attested) {
    return CancelIntent.newBuilder()
        .setRequestId(requestId)
        .setKey(attested.name())
        .setScheme(attested.scheme())
        .setInstallation(profile.trust().roster().installation())
        .setKeyFingerprint(attested.fingerprint())
        .setReshareEpoch(reshareEpoch == null ? attested.reshareEpoch() : reshareEpoch)
        .setNotAfter(notAfter())
        .build();
  }

  private Timestamp notAfter() {
    Instant now = Instant.now();
    Instant last = RequestId.time(requestId).plus(VerifiedIntent.MAX_LIFE);
    if (now.isAfter(last)) {
      throw CliException.local(
          "--request-id is more than a day old: no party signs anything under it any more, and none"
              + " remembers whether it did. Look at the chain.");
    }
    Instant end = now.plus(LIFE);
    return Timestamps.fromMillis((end.isAfter(last) ? last : end).toEpochMilli());
  }

  private int signed(
      AttestedKey attested, ReceiptCheck receipts, Optional<SignedIntent> asked, Signing answer) {
    if (asked.isEmpty()) {
      print(
          answer.toBuilder().clearReceipts().build(),
          Optional.empty(),
          "SIGNED by the word of the coordinator: 'coterie sign' with the same request id and"
              + " payload, or --intent here, verifies the signature. The request is not cancelled.");
      return ExitCode.NO;
    }
    SigningIntent content = SignCommand.content(asked.get());
    ExpectedSigning expected = ExpectedSigning.of(content, attested);
    Signing verified = expected.require(asked.get(), receipts, answer);
    print(
        verified,
        SignedPayload.signed(content, expected.publicKey(), verified),
        "SIGNED: the signature is valid, and the request is not cancelled.");
    return ExitCode.NO;
  }

  private int notSigned(Signing answer, ReceiptCheck receipts, NeverProof.Request request) {
    NeverProof proof = receipts.proof(answer, request);
    if (proof.holds()) {
      print(
          answer.toBuilder().setState(Signing.State.NOT_SIGNED).clearError().build(),
          Optional.empty(),
          ("NOT SIGNED: %s will never sign it, and the others are too few. The payload may be asked"
                  + " for under another id.")
              .formatted(String.join(", ", proof.never())));
      return 0;
    }
    print(
        answer.toBuilder().setState(Signing.State.UNKNOWN).build(),
        Optional.empty(),
        unknown(proof, receipts));
    return ExitCode.UNAVAILABLE;
  }

  private static String unknown(NeverProof proof, ReceiptCheck receipts) {
    List<String> said = new ArrayList<>();
    said.add(
        "UNKNOWN: %s that they never sign it (%s), which is not enough; %s."
            .formatted(
                proof.never().size() + " of " + proof.holders() + " parties say",
                proof.never().isEmpty() ? "none" : String.join(", ", proof.never()),
                Output.receipts(proof.needed(), proof.holders())));
    said.add(
        proof.isImpossible()
            ? "The trust file lets %d parties lie, as many as sign with %s."
                .formatted(receipts.trust().corrupt(), receipts.key().name())
            : "Cancel again when the other parties answer.");
    said.add(
        "Repeat the request with the same intent to get its signature if there is one. Ask for the"
            + " payload under no other id, unless the two exclude each other on the chain (same"
            + " nonce or input).");
    return String.join(" ", said);
  }

  private void print(Signing signing, Optional<String> payload, String words) {
    PrintWriter out = Printing.out(spec);
    output.signing(out, signing, payload);
    (output.isText() ? out : Printing.err(spec)).println(words);
  }

  private static void requireField(AttestedKey key, String field, boolean agrees) {
    if (!agrees) {
      throw AttestedKeys.refused(
          key.name(),
          "has no such signing: field " + field + " of the answer is not as it must be");
    }
  }
}
