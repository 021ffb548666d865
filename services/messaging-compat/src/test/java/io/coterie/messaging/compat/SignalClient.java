package io.coterie.messaging.compat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import org.signal.libsignal.metadata.SealedSessionCipher;
import org.signal.libsignal.metadata.certificate.CertificateValidator;
import org.signal.libsignal.metadata.certificate.SenderCertificate;
import org.signal.libsignal.metadata.protocol.UnidentifiedSenderMessageContent;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.SessionBuilder;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.ecc.Curve;
import org.signal.libsignal.protocol.ecc.ECKeyPair;
import org.signal.libsignal.protocol.groups.GroupCipher;
import org.signal.libsignal.protocol.groups.GroupSessionBuilder;
import org.signal.libsignal.protocol.kem.KEMKeyPair;
import org.signal.libsignal.protocol.kem.KEMKeyType;
import org.signal.libsignal.protocol.message.SenderKeyDistributionMessage;
import org.signal.libsignal.protocol.state.KyberPreKeyRecord;
import org.signal.libsignal.protocol.state.PreKeyBundle;
import org.signal.libsignal.protocol.state.PreKeyRecord;
import org.signal.libsignal.protocol.state.SignedPreKeyRecord;
import org.signal.libsignal.protocol.util.KeyHelper;
import org.whispersystems.signalservice.api.NetworkResult;
import org.whispersystems.signalservice.api.SignalServiceMessageSender;
import org.whispersystems.signalservice.api.SignalServiceMessageSender.IndividualSendEvents;
import org.whispersystems.signalservice.api.SignalServiceMessageSender.SenderKeyGroupEvents;
import org.whispersystems.signalservice.api.SignalSessionLock;
import org.whispersystems.signalservice.api.account.AccountApi;
import org.whispersystems.signalservice.api.account.AccountAttributes;
import org.whispersystems.signalservice.api.account.PreKeyCollection;
import org.whispersystems.signalservice.api.account.PreKeyUpload;
import org.whispersystems.signalservice.api.attachment.AttachmentApi;
import org.whispersystems.signalservice.api.certificate.CertificateApi;
import org.whispersystems.signalservice.api.crypto.ContentHint;
import org.whispersystems.signalservice.api.crypto.EnvelopeContent;
import org.whispersystems.signalservice.api.crypto.SealedSenderAccess;
import org.whispersystems.signalservice.api.crypto.SignalServiceCipher;
import org.whispersystems.signalservice.api.crypto.SignalServiceCipherResult;
import org.whispersystems.signalservice.api.crypto.UnidentifiedAccess;
import org.whispersystems.signalservice.api.keys.KeysApi;
import org.whispersystems.signalservice.api.link.LinkDeviceApi;
import org.whispersystems.signalservice.api.message.MessageApi;
import org.whispersystems.signalservice.api.messages.EnvelopeResponse;
import org.whispersystems.signalservice.api.messages.SendMessageResult;
import org.whispersystems.signalservice.api.messages.SignalServiceDataMessage;
import org.whispersystems.signalservice.api.push.DistributionId;
import org.whispersystems.signalservice.api.push.ServiceId;
import org.whispersystems.signalservice.api.push.ServiceId.ACI;
import org.whispersystems.signalservice.api.push.ServiceId.PNI;
import org.whispersystems.signalservice.api.push.ServiceIdType;
import org.whispersystems.signalservice.api.push.SignalServiceAddress;
import org.whispersystems.signalservice.api.registration.RegistrationApi;
import org.whispersystems.signalservice.api.util.CredentialsProvider;
import org.whispersystems.signalservice.api.websocket.HealthMonitor;
import org.whispersystems.signalservice.api.websocket.SignalWebSocket;
import org.whispersystems.signalservice.internal.configuration.SignalCdnUrl;
import org.whispersystems.signalservice.internal.configuration.SignalCdsiUrl;
import org.whispersystems.signalservice.internal.configuration.SignalServiceConfiguration;
import org.whispersystems.signalservice.internal.configuration.SignalServiceUrl;
import org.whispersystems.signalservice.internal.configuration.SignalStorageUrl;
import org.whispersystems.signalservice.internal.configuration.SignalSvr2Url;
import org.whispersystems.signalservice.internal.push.Content;
import org.whispersystems.signalservice.internal.push.DataMessage;
import org.whispersystems.signalservice.internal.push.OutgoingPushMessage;
import org.whispersystems.signalservice.internal.push.OutgoingPushMessageList;
import org.whispersystems.signalservice.internal.push.PushServiceSocket;
import org.whispersystems.signalservice.internal.push.PushTransportDetails;
import org.whispersystems.signalservice.internal.push.SendGroupMessageResponse;
import org.whispersystems.signalservice.internal.push.SendMessageResponse;
import org.whispersystems.signalservice.internal.push.VerifyAccountResponse;
import org.whispersystems.signalservice.internal.websocket.OkHttpWebSocketConnection;

/** A user of Signal's own client library, on its two WebSockets. */
final class SignalClient implements AutoCloseable {
  private static final String AGENT = "compat";
  private static final long PATIENCE_MS = 30_000;
  static final int ONE_TIME_KEYS = 10;
  private static final long MAX_ENVELOPE_BYTES = 96 * 1024;
  private static final HealthMonitor NO_MONITOR =
      new HealthMonitor() {
        @Override
        public void onKeepAliveResponse(long sentTimestamp, boolean isIdentifiedWebSocket) {}

        @Override
        public void onMessageError(int status, boolean isIdentifiedWebSocket) {}
      };

  private static final int DEVICE = SignalServiceAddress.DEFAULT_DEVICE_ID;

  private final String number;
  private final NewAccount own;
  private final ClientStore store;
  private final ReentrantLock sessionLock = new ReentrantLock();
  private final SignalSessionLock lock =
      () -> {
        sessionLock.lock();
        return sessionLock::unlock;
      };
  private final ExecutorService executor = Executors.newCachedThreadPool();
  private final SignalWebSocket.AuthenticatedWebSocket identified;
  private final SignalWebSocket.UnauthenticatedWebSocket unidentified;
  private final PushServiceSocket http;
  private final MessageApi messages;
  private final SignalServiceMessageSender sender;
  private final SignalServiceCipher cipher;
  private final ACI aci;

  /** The secrets and keys that somebody makes up before registering. */
  private record NewAccount(
      String password,
      IdentityKeyPair identity,
      IdentityKeyPair pniIdentity,
      int registrationId,
      byte[] accessKey,
      SignedPreKeyRecord signed,
      KyberPreKeyRecord lastResort) {
    static NewAccount generate() throws Exception {
      IdentityKeyPair identity = IdentityKeyPair.generate();
      byte[] accessKey = new byte[16];
      System.arraycopy(identity.getPublicKey().serialize(), 1, accessKey, 0, accessKey.length);
      return new NewAccount(
          UUID.randomUUID().toString(),
          identity,
          IdentityKeyPair.generate(),
          KeyHelper.generateRegistrationId(false),
          accessKey,
          signedPreKey(identity, 1),
          kyberPreKey(identity, 1));
    }

    NetworkResult<VerifyAccountResponse> register(
        ServiceProcess service, String number, byte[] token) throws Exception {
      PushServiceSocket anonymous =
          new PushServiceSocket(
              configuration(service),
              credentials(number, password, null, null),
              AGENT,
              null,
              false);
      return new RegistrationApi(anonymous)
          .registerAccount(
              null,
              Base64.getEncoder().encodeToString(token),
              new AccountAttributes(
                  null,
                  registrationId,
                  true,
                  null,
                  accessKey,
                  false,
                  new AccountAttributes.Capabilities(true, true, true, true, true),
                  false,
                  null,
                  registrationId,
                  null),
              new PreKeyCollection(identity.getPublicKey(), signed, lastResort),
              new PreKeyCollection(
                  pniIdentity.getPublicKey(),
                  signedPreKey(pniIdentity, 2),
                  kyberPreKey(pniIdentity, 2)),
              null,
              true);
    }
  }

  /** The answer to somebody new with that token. */
  static NetworkResult<VerifyAccountResponse> register(
      ServiceProcess service, String number, byte[] token) throws Exception {
    return NewAccount.generate().register(service, number, token);
  }

  /** Registers a number with its one-time token, uploads keys, and connects. */
  SignalClient(ServiceProcess service, String number) throws Exception {
    this.number = number;
    own = NewAccount.generate();
    store = new ClientStore(own.identity(), own.registrationId());
    SignalServiceConfiguration configuration = configuration(service);
    VerifyAccountResponse account = success(own.register(service, number, service.token(number)));
    aci = ACI.parseOrThrow(account.getUuid());
    PNI pni = PNI.parseOrThrow(account.getPni());
    store.storeSignedPreKey(own.signed().getId(), own.signed());
    store.storeLastResortKyberPreKey(own.lastResort().getId(), own.lastResort());
    CredentialsProvider credentials = credentials(number, own.password(), aci, pni);
    identified =
        new SignalWebSocket.AuthenticatedWebSocket(
            () ->
                new OkHttpWebSocketConnection(
                    "identified",
                    configuration,
                    Optional.of(credentials),
                    AGENT,
                    NO_MONITOR,
                    false),
            Thread::sleep,
            PATIENCE_MS);
    unidentified =
        new SignalWebSocket.UnauthenticatedWebSocket(
            () ->
                new OkHttpWebSocketConnection(
                    "unidentified", configuration, Optional.empty(), AGENT, NO_MONITOR, false),
            Thread::sleep,
            PATIENCE_MS);
    identified.connect();
    unidentified.connect();
    uploadKeys();
    http = new PushServiceSocket(configuration, credentials, AGENT, null, false);
    messages = new MessageApi(identified, unidentified);
    sender =
        new SignalServiceMessageSender(
            http,
            store.asDataStore(),
            lock,
            new AttachmentApi(identified, http),
            messages,
            keys(),
            Optional.empty(),
            executor,
            MAX_ENVELOPE_BYTES);
    cipher =
        new SignalServiceCipher(
            address(),
            DEVICE,
            store,
            lock,
            new CertificateValidator(Curve.decodePoint(service.trustRoot(), 0)));
  }

  private static SignalServiceConfiguration configuration(ServiceProcess service) throws Exception {
    return new SignalServiceConfiguration(
        new SignalServiceUrl[] {new SignalServiceUrl(service.url(), service.trustStore())},
        Map.of(
            0,
            new SignalCdnUrl[] {new SignalCdnUrl(service.url(), service.trustStore())},
            2,
            new SignalCdnUrl[] {new SignalCdnUrl(service.url(), service.trustStore())},
            3,
            new SignalCdnUrl[] {new SignalCdnUrl(service.url(), service.trustStore())}),
        new SignalStorageUrl[] {new SignalStorageUrl(service.url(), service.trustStore())},
        new SignalCdsiUrl[0],
        new SignalSvr2Url[0],
        List.of(),
        Optional.empty(),
        Optional.empty(),
        new byte[0],
        new byte[0],
        new byte[0],
        false);
  }

  private static CredentialsProvider credentials(
      String number, String password, ACI ownAci, PNI ownPni) {
    return new CredentialsProvider() {
      @Override
      public ACI getAci() {
        return ownAci;
      }

      @Override
      public PNI getPni() {
        return ownPni;
      }

      @Override
      public String getE164() {
        return number;
      }

      @Override
      public int getDeviceId() {
        return DEVICE;
      }

      @Override
      public String getPassword() {
        return password;
      }
    };
  }

  private void uploadKeys() throws Exception {
    List<PreKeyRecord> ec = new ArrayList<>();
    List<KyberPreKeyRecord> kyber = new ArrayList<>();
    for (int id = 100; id < 100 + ONE_TIME_KEYS; id++) {
      PreKeyRecord preKey = new PreKeyRecord(id, Curve.generateKeyPair());
      ec.add(preKey);
      store.storePreKey(id, preKey);
      KyberPreKeyRecord kyberKey = kyberPreKey(own.identity(), id);
      kyber.add(kyberKey);
      store.storeKyberPreKey(id, kyberKey);
    }
    success(
        keys()
            .setPreKeys(
                new PreKeyUpload(ServiceIdType.ACI, own.signed(), ec, own.lastResort(), kyber)));
    success(
        keys()
            .checkRepeatedUseKeys(
                ServiceIdType.ACI,
                own.identity().getPublicKey(),
                own.signed().getId(),
                own.signed().getKeyPair().getPublicKey(),
                own.lastResort().getId(),
                own.lastResort().getKeyPair().getPublicKey()));
  }

  private static SignedPreKeyRecord signedPreKey(IdentityKeyPair identity, int id)
      throws Exception {
    ECKeyPair pair = Curve.generateKeyPair();
    return new SignedPreKeyRecord(
        id,
        System.currentTimeMillis(),
        pair,
        Curve.calculateSignature(identity.getPrivateKey(), pair.getPublicKey().serialize()));
  }

  private static KyberPreKeyRecord kyberPreKey(IdentityKeyPair identity, int id) throws Exception {
    KEMKeyPair pair = KEMKeyPair.generate(KEMKeyType.KYBER_1024);
    return new KyberPreKeyRecord(
        id,
        System.currentTimeMillis(),
        pair,
        Curve.calculateSignature(identity.getPrivateKey(), pair.getPublicKey().serialize()));
  }

  /** The result of a call, which must have been answered with 2xx. */
  static <T> T success(NetworkResult<T> result) throws Exception {
    try {
      return result.successOrThrow();
    } catch (Exception | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  ACI aci() {
    return aci;
  }

  KeysApi keys() {
    return new KeysApi(identified, unidentified);
  }

  AccountApi accounts() {
    return new AccountApi(identified);
  }

  LinkDeviceApi devices() {
    return new LinkDeviceApi(identified);
  }

  int registrationId() {
    return own.registrationId();
  }

  SignalServiceAddress address() {
    return new SignalServiceAddress(aci, number);
  }

  /** That client's address in a store of sessions, with any device. */
  SignalProtocolAddress device(int device) {
    return new SignalProtocolAddress(aci.toString(), device);
  }

  private SenderCertificate certificate() throws Exception {
    return new SenderCertificate(success(new CertificateApi(identified).getSenderCertificate()));
  }

  private UnidentifiedAccess accessTo(SignalClient other) throws Exception {
    return new UnidentifiedAccess(other.own.accessKey(), certificate().getSerialized(), false);
  }

  /** Access to those who have these clients' keys, without a name. */
  SealedSenderAccess sealed(List<SignalClient> keysOf) throws Exception {
    List<UnidentifiedAccess> access = new ArrayList<>();
    for (SignalClient client : keysOf) {
      access.add(accessTo(client));
    }
    return access.size() == 1
        ? SealedSenderAccess.forIndividual(access.getFirst())
        : SealedSenderAccess.forGroupSend(null, access, false);
  }

  /** The keys that the service hands out for an account, to somebody with that access key. */
  NetworkResult<List<PreKeyBundle>> keysOf(ACI target, SignalClient accessKeyOf) throws Exception {
    return keys()
        .getPreKeys(new SignalServiceAddress(target), sealed(List.of(accessKeyOf)), DEVICE);
  }

  /** Opens a session that is with another device, or one that has registered otherwise. */
  void believe(SignalClient peer, int device, int registrationId) throws Exception {
    PreKeyBundle keys = success(keysOf(peer.aci, peer)).getFirst();
    new SessionBuilder(store, peer.device(device))
        .process(
            new PreKeyBundle(
                registrationId,
                device,
                keys.getPreKeyId(),
                keys.getPreKey(),
                keys.getSignedPreKeyId(),
                keys.getSignedPreKey(),
                keys.getSignedPreKeySignature(),
                keys.getIdentityKey(),
                keys.getKyberPreKeyId(),
                keys.getKyberPreKey(),
                keys.getKyberPreKeySignature()));
  }

  /** A message for a client's device, not sent yet. */
  OutgoingPushMessage encrypted(SignalClient to, String body, boolean sealed) throws Exception {
    return sender.getEncryptedMessage(
        to.address(),
        sealed ? sealed(List.of(to)) : SealedSenderAccess.NONE,
        DEVICE,
        EnvelopeContent.encrypted(content(body), ContentHint.DEFAULT, Optional.empty()),
        false);
  }

  /** Sends once over HTTP, where this library has a name for each refusal. */
  SendMessageResponse deliver(
      ServiceId to, OutgoingPushMessage message, SealedSenderAccess access, boolean online)
      throws IOException {
    return http.sendMessage(outgoing(to, message, online), access, false);
  }

  /** Sends once over the WebSocket. */
  NetworkResult<SendMessageResponse> push(
      ServiceId to, OutgoingPushMessage message, SealedSenderAccess access) {
    return messages.sendMessage(outgoing(to, message, false), access, false);
  }

  private static OutgoingPushMessageList outgoing(
      ServiceId to, OutgoingPushMessage message, boolean online) {
    return new OutgoingPushMessageList(
        to.toString(), System.currentTimeMillis(), List.of(message), online, false);
  }

  /** One sealed message to many devices, whose clients get this client's sender key aside. */
  byte[] sealedToMany(List<SignalProtocolAddress> devices, List<SignalClient> readers, String body)
      throws Exception {
    UUID distribution = UUID.randomUUID();
    SignalProtocolAddress self = device(DEVICE);
    SenderKeyDistributionMessage key = new GroupSessionBuilder(store).create(self, distribution);
    for (SignalClient reader : readers) {
      new GroupSessionBuilder(reader.store).process(self, key);
    }
    byte[] padded = new PushTransportDetails().getPaddedMessageBody(content(body).encode());
    return new SealedSessionCipher(store, aci.getRawUuid(), number, DEVICE)
        .multiRecipientEncrypt(
            devices,
            new UnidentifiedSenderMessageContent(
                new GroupCipher(store, self).encrypt(distribution, padded),
                certificate(),
                UnidentifiedSenderMessageContent.CONTENT_HINT_DEFAULT,
                Optional.empty()));
  }

  /** Sends a message to many over HTTP. */
  SendGroupMessageResponse deliverToMany(byte[] message, SealedSenderAccess access, boolean story)
      throws IOException {
    return http.sendGroupMessage(message, access, System.currentTimeMillis(), false, false, story);
  }

  private static Content content(String body) {
    DataMessage data =
        new DataMessage.Builder().timestamp(System.currentTimeMillis()).body(body).build();
    return new Content.Builder().dataMessage(data).build();
  }

  /** Sends to one, under this client's name or sealed. */
  SendMessageResult send(SignalClient to, String body, boolean sealed) throws Exception {
    return sender.sendDataMessage(
        to.address(),
        sealed ? sealed(List.of(to)) : SealedSenderAccess.NONE,
        ContentHint.DEFAULT,
        message(body),
        IndividualSendEvents.EMPTY,
        true,
        false);
  }

  /** Sends to all with this client's sender key: distribution where needed, then one request. */
  List<SendMessageResult> sendToGroup(DistributionId group, List<SignalClient> to, String body)
      throws Exception {
    List<SignalServiceAddress> addresses = to.stream().map(SignalClient::address).toList();
    List<UnidentifiedAccess> access = new ArrayList<>();
    for (SignalClient client : to) {
      access.add(accessTo(client));
    }
    SenderKeyDistributionMessage distribution = sender.getOrCreateNewGroupSession(group);
    sender.sendSenderKeyDistributionMessage(
        group,
        addresses,
        access.stream().map(SealedSenderAccess::forIndividual).toList(),
        distribution,
        Optional.empty(),
        false,
        false);
    return sender.sendGroupDataMessage(
        group,
        addresses,
        access,
        null,
        false,
        ContentHint.DEFAULT,
        message(body),
        SenderKeyGroupEvents.EMPTY,
        true,
        false,
        null,
        null);
  }

  private static SignalServiceDataMessage message(String body) {
    return SignalServiceDataMessage.newBuilder()
        .withTimestamp(System.currentTimeMillis())
        .withBody(body)
        .build();
  }

  /** A message that this client received and decrypted. */
  record Received(String body, ACI from, boolean sealed) {}

  /** The next data message; sender-key distributions on the way to it are processed. */
  Received receive() throws Exception {
    while (true) {
      Optional<Received> received = open(arrival());
      if (received.isPresent()) {
        return received.get();
      }
    }
  }

  /** The next message as it arrives, not acknowledged. */
  EnvelopeResponse arrival() throws Exception {
    List<EnvelopeResponse> batch = new ArrayList<>();
    while (batch.isEmpty()) {
      try {
        identified.readMessageBatch(
            PATIENCE_MS,
            1,
            (List<EnvelopeResponse> envelopes) -> {
              batch.addAll(envelopes);
            });
      } catch (TimeoutException e) {
        throw new AssertionError("nothing received", e);
      }
    }
    return batch.getFirst();
  }

  /** Decrypts and acknowledges a message; nothing if it is no data message. */
  Optional<Received> open(EnvelopeResponse response) throws Exception {
    SignalServiceCipherResult result =
        cipher.decrypt(response.getEnvelope(), System.currentTimeMillis());
    identified.sendAck(response);
    if (result.getContent().senderKeyDistributionMessage != null) {
      new GroupSessionBuilder(store)
          .process(
              new SignalProtocolAddress(
                  result.getMetadata().getSourceServiceId().toString(),
                  result.getMetadata().getSourceDeviceId()),
              new SenderKeyDistributionMessage(
                  result.getContent().senderKeyDistributionMessage.toByteArray()));
    }
    return Optional.ofNullable(result.getContent().dataMessage)
        .map(
            data ->
                new Received(
                    data.body,
                    (ACI) result.getMetadata().getSourceServiceId(),
                    result.getMetadata().getSealedSender()));
  }

  void disconnect() {
    identified.disconnect();
  }

  void connect() throws Exception {
    identified.connect();
  }

  @Override
  public void close() throws Exception {
    identified.disconnect();
    unidentified.disconnect();
    executor.shutdownNow();
    executor.awaitTermination(PATIENCE_MS, TimeUnit.MILLISECONDS);
  }
}
