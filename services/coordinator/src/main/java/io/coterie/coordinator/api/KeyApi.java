package io.coterie.coordinator.api;

import io.coterie.coordinator.custody.key.EpochQuestions;
import io.coterie.coordinator.custody.key.KeyCreations;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyRenewals;
import io.coterie.coordinator.custody.request.IntentCheck;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.CancelKeyOperationRequest;
import io.coterie.proto.custody.v1.CreateKeyRequest;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.ImportKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.coterie.proto.custody.v1.RefreshKeyRequest;
import io.coterie.proto.custody.v1.ReshareKeyRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.grpc.BindableService;
import io.grpc.ServerInterceptors;
import io.grpc.ServerServiceDefinition;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.Map;

/** The {@code KeyService} of the API. */
public final class KeyApi implements KeyServiceGrpc.AsyncService, BindableService {
  private static final int MAX_PAGE = 1000;

  private final KeyCreations creations;
  private final KeyRenewals renewals;
  private final KeyDirectory keys;
  private final EpochQuestions epochs;
  private final IntentCheck intents;

  public KeyApi(
      KeyCreations creations,
      KeyRenewals renewals,
      KeyDirectory keys,
      EpochQuestions epochs,
      IntentCheck intents) {
    this.creations = creations;
    this.renewals = renewals;
    this.keys = keys;
    this.epochs = epochs;
    this.intents = intents;
  }

  /** Requests are decoded inside the interceptors, so that bad bytes end like any bad request. */
  @Override
  public ServerServiceDefinition bindService() {
    return ServerInterceptors.useInputStreamMessages(KeyServiceGrpc.bindService(this));
  }

  @Override
  public void createKey(CreateKeyRequest request, StreamObserver<Key> answer) {
    Call call = Call.current();
    VerifiedIntent.KeyCreation intent =
        call.accept(intents, request.getSignedIntent(), VerifiedIntent.KeyCreation.class);
    KeyRecord record = call.await(caller -> creations.create(intent, caller));
    Call.requireSuccess(record.error());
    answer(answer, record);
  }

  @Override
  public void importKey(ImportKeyRequest request, StreamObserver<Key> answer) {
    Call call = Call.current();
    VerifiedIntent.KeyImport intent =
        call.accept(intents, request.getSignedIntent(), VerifiedIntent.KeyImport.class);
    VerifiedIntent.KeyImport whole;
    try {
      whole = intent.with(request.getEncryptedSharesList());
    } catch (IntentException e) {
      throw e.toCustodyException();
    }
    KeyRecord record = call.await(caller -> creations.create(whole, caller));
    Call.requireSuccess(record.error());
    answer(answer, record);
  }

  @Override
  public void refreshKey(RefreshKeyRequest request, StreamObserver<Key> answer) {
    renew(request.getSignedIntent(), VerifiedIntent.KeyRefresh.class, answer);
  }

  @Override
  public void reshareKey(ReshareKeyRequest request, StreamObserver<Key> answer) {
    renew(request.getSignedIntent(), VerifiedIntent.KeyReshare.class, answer);
  }

  private void renew(
      SignedIntent signed,
      Class<? extends VerifiedIntent.NextEpoch> kind,
      StreamObserver<Key> answer) {
    Call call = Call.current();
    VerifiedIntent.NextEpoch intent = call.accept(intents, signed, kind);
    answer(answer, call.await(caller -> renewals.renew(intent, caller)));
  }

  @Override
  public void cancelKeyOperation(CancelKeyOperationRequest request, StreamObserver<Key> answer) {
    Call call = Call.current();
    String name = Resources.keyName(request.getName());
    answer(
        answer,
        call.await(
            caller ->
                renewals.cancel(
                    name, request.getRequestId(), call.client()::requireMaySubmitFor, caller)));
  }

  private static void answer(StreamObserver<Key> answer, KeyRecord record) {
    answer.onNext(Resources.key(record));
    answer.onCompleted();
  }

  @Override
  public void getKey(GetKeyRequest request, StreamObserver<Key> answer) {
    String name = Resources.keyName(request.getName());
    Call call = Call.current();
    call.client().requireMayRead(name);
    KeyRecord record = read(name);
    if (request.getChallenge().isEmpty()) {
      answer(answer, record);
      return;
    }
    List<EpochStatement> current =
        call.await(
            caller -> epochs.ask(call.client().name(), record, request.getChallenge(), caller));
    // Read again: the parties may have gone on to other shares while they were asked.
    answer.onNext(Resources.key(read(name)).toBuilder().addAllCurrent(current).build());
    answer.onCompleted();
  }

  private KeyRecord read(String name) {
    return keys.read(name)
        .orElseThrow(
            () ->
                new CustodyException(
                    ErrorReason.KEY_NOT_FOUND, Map.of(StatusErrors.RESOURCE, name)));
  }

  @Override
  public void listKeys(ListKeysRequest request, StreamObserver<ListKeysResponse> answer) {
    String after = PageToken.parse(request.getPageToken(), IntentVerifier::isKeyName);
    int size = Page.size(request.getPageSize(), MAX_PAGE);
    List<KeyRecord> found = keys.list(after, Call.current().client().readKeys(), size + 1);
    Page<Key> page = Page.of(found, size, Resources::key);
    answer.onNext(
        ListKeysResponse.newBuilder()
            .addAllKeys(page.items())
            .setNextPageToken(page.next(Key::getName))
            .build());
    answer.onCompleted();
  }
}
