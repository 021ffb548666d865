package io.coterie.cli.signing;

import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.cli.intent.Approval;
import io.coterie.cli.intent.ApprovalFile;
import io.coterie.cli.intent.IntentFile;
import io.coterie.cli.intent.IntentOptions;
import io.coterie.cli.key.AttestedKeys;
import io.coterie.cli.payload.PayloadOptions;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.PartyRefusal;
import io.coterie.cli.terminal.Printing;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.grpc.StatusRuntimeException;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
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
      "UNKNOWN. Whether it was signed is not known. Repeat this with the printed request id,"
          + " reshare epoch and fingerprint as --request-id, --reshare-epoch and --fingerprint and"
          + " the same other options, or with the same --intent, then 'coterie cancel': sign the"
          + " payload under no other id before that says NOT SIGNED.";

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
      description =
          "Signed intent that 'coterie intent sign' wrote, in place of a KEY and its options.")
  @Nullable Path intent;

  @Option(
      names = "--approval",
      paramLabel = "FILE",
      description =
          "Approval of the intent by one of its approvers, as 'coterie group approve' writes it;"
              + " once for each. A request that ended for want of approvals may come again with"
              + " others.")
  List<Path> approvals = List.of();

  @Option(
      names = "--reshare-epoch",
      paramLabel = "EPOCH",
      description =
          "Epoch of the key's last reshare, 0 if there was none. Needed beside --request-id: give the"
              + " one that was printed when you repeat a request, so that a reshare since then makes"
              + " no second intent of it; for a new request the one that 'coterie keys get' shows.")
  @Nullable Integer reshareEpoch;

  @Option(
      names = "--fingerprint",
      paramLabel = "HEX",
      description =
          "Fingerprint of the key: one of that name with another fingerprint is refused. Give the"
              + " one that was printed, in quotes, when you repeat a request.")
  @Nullable String fingerprint;

  @Override
  public Integer call() {
    boolean fromFile = isFromFile();
    VerifiedIntent.Signing ready = fromFile ? ready(Objects.requireNonNull(intent)) : null;
    // Nothing is shown or sent that a misspelt option would stop later.
    Optional<ByteString> meant = Optional.ofNullable(fingerprint).map(Spelling::parseFingerprint);
    List<ByteString> approved = ready == null ? List.of() : approvals(ready);
    SigningIntent asked =
        ready != null
            ? ready.intent()
            : common.signing(Objects.requireNonNull(key), payload, Printing.line(spec));
    Optional<IntentSigner> signer =
        ready != null ? Optional.empty() : Optional.of(profile.requesterKey());
    try (Profile.Connection connection = profile.connect()) {
      AttestedKeys keys = new AttestedKeys(profile, connection);
      // Asked about is all that is signed: which of the keys of that name, and since which reshare.
      AttestedKey attested = keys.get(asked.getKey());
      meant.ifPresent(given -> requireFingerprint(given, attested, "signed"));
      SigningIntent named = keys.naming(attested, asked);
      if (reshareEpoch != null) {
        named = named.toBuilder().setReshareEpoch(reshareEpoch).build();
      }
      ExpectedSigning expected = ExpectedSigning.of(named, attested);
      SignedIntent signed;
      if (ready != null) {
        approval.require(spec, ready, expected.publicKey());
        signed = ready.envelope();
      } else {
        approval.require(spec, profile.requester(), named, expected.publicKey());
        signed = signer.orElseThrow().sign(named);
        // They name the request when it is repeated or cancelled.
        Printing.err(spec)
            .printf(
                "request id %s%nreshare epoch %d%nfingerprint %s%n",
                named.getRequestId(),
                named.getReshareEpoch(),
                KeyFingerprint.text(named.getKeyFingerprint()));
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
                    .sign(
                        SignRequest.newBuilder()
                            .setSignedIntent(signed)
                            .addAllApprovals(approved)
                            .build()));
      } catch (StatusRuntimeException e) {
        throw unknown(e, receipts.refusals(e, signed, expected.request(signed)));
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

  /**
   * A name can stand for two attested keys: the end of a request with one says nothing of the
   * other.
   */
  static void requireFingerprint(ByteString given, AttestedKey attested, String deed) {
    if (!given.equals(attested.fingerprint())) {
      throw CliException.local(
          ("nothing is %s: the request is for a key with fingerprint %s, and the %s that is shown has"
                  + " %s")
              .formatted(
                  deed,
                  KeyFingerprint.text(given),
                  attested.name(),
                  KeyFingerprint.text(attested.fingerprint())));
    }
  }

  /**
   * Whether the intent is in a file. Else a request id needs a reshare epoch beside it: with that
   * of today, from the coordinator, a request that is repeated after a reshare would be a second
   * intent under its id, and a proof that the second one is not signed says nothing about the
   * first.
   */
  private boolean isFromFile() {
    boolean given =
        key != null
            || payload.given()
            || reshareEpoch != null
            || fingerprint != null
            || common.hasRequestId();
    if (intent != null && !given) {
      return true;
    }
    if (!approvals.isEmpty()) {
      throw new ParameterException(
          Printing.line(spec), "Give --approval beside the --intent FILE that was approved");
    }
    if (intent != null || key == null || !payload.given()) {
      throw new ParameterException(
          Printing.line(spec), "Give a KEY and what to sign, or --intent FILE alone");
    }
    if (common.hasRequestId() && reshareEpoch == null) {
      throw new ParameterException(
          Printing.line(spec),
          "Give --request-id and --reshare-epoch as 'coterie sign' printed them, for a new request"
              + " the epoch that 'coterie keys get' shows, or --intent FILE alone");
    }
    return false;
  }

  /**
   * The sender of an error can have the signature, and a party that refused one order can have
   * followed another. Nothing of its advice is passed on.
   */
  private static CliException unknown(StatusRuntimeException error, List<PartyRefusal> refusals) {
    String refused =
        refusals.stream().map(PartyRefusal::words).collect(Collectors.joining("; ", " ", "."));
    return new CliException(
        ExitCode.UNAVAILABLE,
        UNKNOWN
            + (refusals.isEmpty() ? "" : refused)
            + " The coordinator's word, which proves nothing: "
            + CliException.said(error),
        refusals);
  }

  /** Whether they hold, and are enough, the signers say. */
  private List<ByteString> approvals(VerifiedIntent.Signing signed) {
    List<ByteString> read = approvals.stream().map(ApprovalFile::read).toList();
    if (!IntentVerifier.areApprovals(read)) {
      throw CliException.local("a request has at most 32 approvals");
    }
    if (!read.isEmpty() && !signed.intent().hasApprovers()) {
      throw CliException.local("the intent names no approvers: 'coterie intent sign --approvers'");
    }
    return read;
  }

  /** Nobody is shown an intent as one of a requester that has not signed it. */
  private VerifiedIntent.Signing ready(Path file) {
    SignedIntent read = IntentFile.read(file);
    return IntentFile.verified(profile.trust(), file, read);
  }

  static SigningIntent content(SignedIntent signed) {
    try {
      return SigningIntent.parseFrom(signed.getPayload());
    } catch (InvalidProtocolBufferException e) {
      throw CliException.local("the intent is not one to sign something");
    }
  }
}
