package io.coterie.coordinator.api;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.api.Resources.SigningName;
import io.coterie.coordinator.custody.request.IntentCheck;
import io.coterie.coordinator.custody.signing.CancelledSigning;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.coordinator.custody.signing.SigningWatcher;
import io.coterie.coordinator.custody.signing.Signings;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.CancelSigningRequest;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.ListSigningsRequest;
import io.coterie.proto.custody.v1.ListSigningsResponse;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.proto.custody.v1.WatchSigningRequest;
import io.grpc.BindableService;
import io.grpc.ServerInterceptors;
import io.grpc.ServerServiceDefinition;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.Map;

/** The {@code SigningService} of the API. */
public final class SigningApi implements SigningServiceGrpc.AsyncService, BindableService {
  /** A signing in words can take 20 KB, and a page is in memory as a whole. */
  private static final int MAX_PAGE = 200;

  private final Signings signings;
  private final IntentCheck intents;

  public SigningApi(Signings signings, IntentCheck intents) {
    this.signings = signings;
    this.intents = intents;
  }

  /** Requests are decoded inside the interceptors, so that bad bytes end like any bad request. */
  @Override
  public ServerServiceDefinition bindService() {
    return ServerInterceptors.useInputStreamMessages(SigningServiceGrpc.bindService(this));
  }

  @Override
  public void sign(SignRequest request, StreamObserver<Signing> answer) {
    Call call = Call.current();
    VerifiedIntent.Signing intent =
        call.accept(intents, request.getSignedIntent(), VerifiedIntent.Signing.class);
    List<ByteString> approvals = approvals(request, intent);
    SigningRecord record = call.await(caller -> signings.sign(intent, approvals, caller));
    Call.requireSuccess(record.error());
    answer.onNext(Resources.signing(record));
    answer.onCompleted();
  }

  /** As few and as short as the signers take them, who alone look into them. */
  private static List<ByteString> approvals(SignRequest request, VerifiedIntent.Signing intent) {
    List<ByteString> approvals = request.getApprovalsList();
    boolean wanted = approvals.isEmpty() || intent.intent().hasApprovers();
    if (wanted && IntentVerifier.areApprovals(approvals)) {
      return approvals;
    }
    throw new CustodyException(
        ErrorReason.APPROVAL_INVALID,
        Map.of(
            StatusErrors.RESOURCE,
            intent.key(),
            StatusErrors.DETAIL,
            wanted
                ? "there are more than 32 approvals, or one does not have 416 bytes"
                : "there are approvals, and the intent names no approvers"));
  }

  @Override
  public void cancelSigning(CancelSigningRequest request, StreamObserver<Signing> answer) {
    Call call = Call.current();
    VerifiedIntent.Cancellation intent =
        call.accept(intents, request.getSignedIntent(), VerifiedIntent.Cancellation.class);
    CancelledSigning ended = call.await(caller -> signings.cancel(intent, caller));
    call.about("end", ended.state().name());
    answer.onNext(Resources.signing(ended));
    answer.onCompleted();
  }

  @Override
  public void getSigning(GetSigningRequest request, StreamObserver<Signing> answer) {
    SigningName name = SigningName.parse(request.getName());
    Call.current().client().requireMayRead(name.key());
    answer.onNext(Resources.signing(find(name, Call.current().client())));
    answer.onCompleted();
  }

  @Override
  public void listSignings(
      ListSigningsRequest request, StreamObserver<ListSigningsResponse> answer) {
    String key = Resources.keyName(request.getParent());
    Call.current().client().requireMayRead(key);
    String token =
        PageToken.parse(
            request.getPageToken(),
            text -> Resources.isPlace(text) && text.startsWith(key + "/signings/"));
    SigningStore.Place after = token.isEmpty() ? null : Resources.parsePlace(token);
    int size = Page.size(request.getPageSize(), MAX_PAGE);
    List<SigningRecord> found =
        signings.list(key, Call.current().client().readSignings(), after, size + 1);
    Page<Signing> page = Page.of(found, size, Resources::signing);
    answer.onNext(
        ListSigningsResponse.newBuilder()
            .addAllSignings(page.items())
            .setNextPageToken(page.next(Resources::place))
            .build());
    answer.onCompleted();
  }

  @Override
  public void watchSigning(WatchSigningRequest request, StreamObserver<Signing> answer) {
    SigningName name = SigningName.parse(request.getName());
    Client client = Call.current().client();
    client.requireMayRead(name.key());
    Watch watch = new Watch((ServerCallStreamObserver<Signing>) answer);
    // A signing that the client may not see is as one that is not there, before anything is
    // watched.
    find(name, client);
    // Before the look that counts, so that no change falls between.
    watch.stopWith(signings.watch(name.id(), watch));
    try {
      SigningRecord record = find(name, client);
      watch.changed(record);
      signings.follow(record);
    } catch (CustodyException e) {
      watch.stop();
      throw e;
    }
  }

  private SigningRecord find(SigningName name, Client client) {
    return signings
        .find(name.id())
        .filter(s -> s.key().equals(name.key()) && client.mayReadSigningsOf(s.requester()))
        .orElseThrow(
            () ->
                new CustodyException(
                    ErrorReason.SIGNING_NOT_FOUND,
                    Map.of(StatusErrors.RESOURCE, name.key() + "/signings/" + name.id())));
  }

  /** One stream: sends a record once it says more than the last one did, and ends after the end. */
  private static final class Watch implements SigningWatcher {
    private final ServerCallStreamObserver<Signing> answer;
    private Runnable ending = () -> {};
    private boolean stopped;
    private int sessions = -1;

    Watch(ServerCallStreamObserver<Signing> answer) {
      this.answer = answer;
      answer.setOnCancelHandler(this::stop);
    }

    synchronized void stopWith(Runnable unwatch) {
      if (stopped) {
        unwatch.run();
      } else {
        ending = unwatch;
      }
    }

    @Override
    public synchronized void changed(SigningRecord record) {
      if (stopped || answer.isCancelled()) {
        stop();
        return;
      }
      boolean last = record.state() != Signing.State.PENDING;
      if (last || record.sessions() > sessions) {
        sessions = record.sessions();
        answer.onNext(Resources.signing(record));
      }
      if (last) {
        answer.onCompleted();
        stop();
      }
    }

    @Override
    public synchronized void stopping() {
      if (!stopped) {
        answer.onError(StatusErrors.of(ErrorReason.DRAINING));
        stop();
      }
    }

    synchronized void stop() {
      stopped = true;
      ending.run();
    }
  }
}
