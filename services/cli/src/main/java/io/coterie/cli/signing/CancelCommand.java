package io.coterie.cli.signing;

import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.protobuf.util.Timestamps;
import io.coterie.cli.intent.Approval;
import io.coterie.cli.intent.IntentFile;
import io.coterie.cli.key.AttestedKeys;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Printing;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.attestation.NeverProof;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.CancelSigningRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
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
  @Mixin Approval approval = new Approval();

  @Parameters(paramLabel = "KEY", arity = "0..1", description = "Name of the key.")
  @Nullable String key;

  @Option(
      names = "--request-id",
      paramLabel = "UUID",
      description = "Of the request, at most a day old.")
  @Nullable String requestId;

  @Option(
      names = "--reshare-epoch",
      paramLabel = "EPOCH",
      description =
          "The one that the request's intent names, as 'coterie sign' printed it: only its parties"
              + " can say how the request ended.")
  @Nullable Integer reshareEpoch;

  @Option(
      names = "--fingerprint",
      paramLabel = "HEX",
      description =
          "Fingerprint of the key, as 'coterie sign' printed it: a key of that name with another one"
              + " is refused.")
  @Nullable String fingerprint;

  @Option(
      names = "--intent",
      paramLabel = "FILE",
      description =
          "Instead of all that: the request's signed intent, from 'coterie intent sign'; a"
              + " signature is verified then.")
  @Nullable Path intent;

  /**
   * The request to cancel, as its requester knows it. Its reshare epoch is never taken from the
   * coordinator, which could name parties that have never heard of the request. Without a
   * fingerprint the key is the one that the coordinator shows: where a name stands for two attested
   * keys, a proof about the other one would be true, and say nothing about this request.
   *
   * @param asked the intent of the request, if it is at hand
   */
  private record Target(
      String key,
      String requestId,
      int reshareEpoch,
      Optional<ByteString> fingerprint,
      Optional<SignedIntent> asked) {}

  @Override
  public Integer call() {
    Target target = target();
    if (!RequestId.isOne(target.requestId())) {
      throw CliException.local("the request id is not a lower-case UUID of version 7");
    }
    IntentSigner signer = profile.requesterKey();
    try (Profile.Connection connection = profile.connect()) {
      AttestedKey attested = new AttestedKeys(profile, connection).get(target.key());
      target
          .fingerprint()
          .ifPresent(given -> SignCommand.requireFingerprint(given, attested, "cancelled"));
      CancelIntent cancel = cancel(target, attested);
      String requester = profile.requester();
      target.asked().ifPresent(asked -> requireSame(asked, requester, cancel));
      approval.require(spec, requester, cancel);
      SignedIntent signed = signer.sign(cancel);
      Signing answer =
          SigningServiceGrpc.newBlockingStub(connection.channel())
              .withDeadlineAfter(profile.timeout().toSeconds(), SECONDS)
              .cancelSigning(CancelSigningRequest.newBuilder().setSignedIntent(signed).build());
      ExpectedSigning.requireAnswer(attested.name(), target.requestId(), answer);
      ReceiptCheck receipts = new ReceiptCheck(attested, profile.trust());
      if (answer.getState() == Signing.State.SIGNED) {
        return signed(attested, receipts, target.asked(), answer);
      }
      return notSigned(
          answer,
          receipts,
          new NeverProof.Request(requester, target.requestId(), target.reshareEpoch()));
    }
  }

  private Target target() {
    boolean given = key != null || requestId != null || reshareEpoch != null || fingerprint != null;
    if (intent != null && !given) {
      SignedIntent asked = IntentFile.read(Objects.requireNonNull(intent));
      SigningIntent content = SignCommand.content(asked);
      return new Target(
          content.getKey(),
          content.getRequestId(),
          content.getReshareEpoch(),
          Optional.empty(),
          Optional.of(asked));
    }
    if (intent != null || key == null || requestId == null || reshareEpoch == null) {
      throw new ParameterException(
          Printing.line(spec),
          "Give a KEY, --request-id and --reshare-epoch as 'coterie sign' printed them, or"
              + " --intent FILE alone");
    }
    return new Target(
        key,
        requestId,
        reshareEpoch,
        Optional.ofNullable(fingerprint).map(Spelling::parseFingerprint),
        Optional.empty());
  }

  /** Receipts about another requester, key or installation would be true, and prove nothing. */
  private static void requireSame(SignedIntent asked, String requester, CancelIntent cancel) {
    SigningIntent content = SignCommand.content(asked);
    if (asked.getSignaturesCount() != 1 || !asked.getSignatures(0).getKeyid().equals(requester)) {
      throw CliException.local("the intent is not one of requester " + requester);
    }
    if (!content.getInstallation().equals(cancel.getInstallation())
        || !content.getKey().equals(cancel.getKey())
        || !content.getKeyFingerprint().equals(cancel.getKeyFingerprint())) {
      throw CliException.local(
          "the intent is for %s with fingerprint %s in %s, and the key that is shown has %s in %s"
              .formatted(
                  content.getKey(),
                  KeyFingerprint.text(content.getKeyFingerprint()),
                  content.getInstallation(),
                  KeyFingerprint.text(cancel.getKeyFingerprint()),
                  cancel.getInstallation()));
    }
  }

  private CancelIntent cancel(Target target, AttestedKey attested) {
    return CancelIntent.newBuilder()
        .setRequestId(target.requestId())
        .setKey(attested.name())
        .setScheme(attested.scheme())
        .setInstallation(profile.trust().roster().installation())
        .setKeyFingerprint(attested.fingerprint())
        .setReshareEpoch(target.reshareEpoch())
        .setNotAfter(notAfter(target.requestId()))
        .build();
  }

  private static Timestamp notAfter(String requestId) {
    Instant now = Instant.now();
    Instant last = RequestId.time(requestId).plus(VerifiedIntent.MAX_LIFE);
    if (now.isAfter(last)) {
      throw CliException.local(
          "the request id is more than a day old: no party signs anything under it any more, and none"
              + " remembers whether it did. Look at the chain.");
    }
    Instant end = now.plus(LIFE);
    return Timestamps.fromMillis((end.isAfter(last) ? last : end).toEpochMilli());
  }

  private int signed(
      AttestedKey attested, ReceiptCheck receipts, Optional<SignedIntent> asked, Signing answer) {
    if (asked.isEmpty()) {
      print(
          told(answer, Signing.State.SIGNED, List.of()),
          Optional.empty(),
          "SIGNED by the word of the coordinator: 'coterie sign' with the same request id,"
              + " reshare epoch and options gets the signature and verifies it. The request is not"
              + " cancelled.");
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
    List<SignedReceipt> words = answer.getReceiptsList();
    if (proof.holds()) {
      print(
          told(answer, Signing.State.NOT_SIGNED, words),
          Optional.empty(),
          ("NOT SIGNED: %s will never sign %s, and the others are too few, if at most %d of these"
                  + " parties lies. The payload may be asked for under another id.")
              .formatted(
                  String.join(", ", proof.never()),
                  said(receipts, request),
                  receipts.trust().corrupt()));
      return 0;
    }
    print(
        told(answer, Signing.State.UNKNOWN, words),
        Optional.empty(),
        unknown(proof, receipts, request));
    return ExitCode.UNAVAILABLE;
  }

  /** The verified part of an answer, and its name. */
  private static Signing told(Signing answer, Signing.State state, List<SignedReceipt> receipts) {
    return Signing.newBuilder()
        .setName(answer.getName())
        .setRequestId(answer.getRequestId())
        .setState(state)
        .addAllReceipts(receipts)
        .build();
  }

  /** The request in words: a profile may be of another requester, and a name of another key. */
  private static String said(ReceiptCheck receipts, NeverProof.Request request) {
    return "%s's request %s with %s (fingerprint %s, parties of reshare epoch %d)"
        .formatted(
            request.requester(),
            request.requestId(),
            receipts.key().name(),
            KeyFingerprint.text(receipts.key().fingerprint()),
            request.reshareEpoch());
  }

  private static String unknown(
      NeverProof proof, ReceiptCheck receipts, NeverProof.Request request) {
    List<String> said = new ArrayList<>();
    said.add(
        "UNKNOWN: %s that they never sign %s (%s), which is not enough; %s."
            .formatted(
                proof.never().size() + " of " + proof.holders() + " parties say",
                said(receipts, request),
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
}
