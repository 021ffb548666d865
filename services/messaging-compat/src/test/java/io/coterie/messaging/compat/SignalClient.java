package io.coterie.messaging.compat;

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
import org.signal.libsignal.metadata.certificate.CertificateValidator;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.ecc.Curve;
import org.signal.libsignal.protocol.ecc.ECKeyPair;
import org.signal.libsignal.protocol.groups.GroupSessionBuilder;
import org.signal.libsignal.protocol.kem.KEMKeyPair;
import org.signal.libsignal.protocol.kem.KEMKeyType;
import org.signal.libsignal.protocol.message.SenderKeyDistributionMessage;
import org.signal.libsignal.protocol.state.KyberPreKeyRecord;
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
import org.whispersystems.signalservice.api.crypto.SealedSenderAccess;
import org.whispersystems.signalservice.api.crypto.SignalServiceCipher;
import org.whispersystems.signalservice.api.crypto.SignalServiceCipherResult;
import org.whispersystems.signalservice.api.crypto.UnidentifiedAccess;
import org.whispersystems.signalservice.api.keys.KeysApi;
import org.whispersystems.signalservice.api.message.MessageApi;
import org.whispersystems.signalservice.api.messages.EnvelopeResponse;
import org.whispersystems.signalservice.api.messages.SendMessageResult;
import org.whispersystems.signalservice.api.messages.SignalServiceDataMessage;
import org.whispersystems.signalservice.api.push.DistributionId;
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
import org.whispersystems.signalservice.internal.push.PushServiceSocket;
import org.whispersystems.signalservice.internal.push.VerifyAccountResponse;
import org.whispersystems.signalservice.internal.websocket.OkHttpWebSocketConnection;

/** A user of Signal's own client library, on its two WebSockets. */
final class SignalClient implements AutoCloseable {
  private static final String AGENT = "compat";
  private static final long PATIENCE_MS = 30_000;
  private static final int ONE_TIME_KEYS = 10;
  private static final long MAX_ENVELOPE_BYTES = 96 * 1024;
  private static final HealthMonitor NO_MONITOR =
      new HealthMonitor() {
        @Override
        public void onKeepAliveResponse(long sentTimestamp, boolean isIdentifiedWebSocket) {}

        @Override
        public void onMessageError(int status, boolean isIdentifiedWebSocket) {}
      };

  private final String number;
  private final String password = UUID.randomUUID().toString();
  private final IdentityKeyPair identity = IdentityKeyPair.generate();
  private final IdentityKeyPair pniIdentity = IdentityKeyPair.generate();
  private final int registrationId = KeyHelper.generateRegistrationId(false);
  private final byte[] accessKey = new byte[16];
  private final ClientStore store = new ClientStore(identity, registrationId);
  private final ReentrantLock sessionLock = new ReentrantLock();
  private final SignalSessionLock lock =
      () -> {
        sessionLock.lock();
        return sessionLock::unlock;
      };
  private final ExecutorService executor = Executors.newCachedThreadPool();
  private final SignalWebSocket.AuthenticatedWebSocket identified;
  private final SignalWebSocket.UnauthenticatedWebSocket unidentified;
  private final SignalServiceMessageSender sender;
  private final SignalServiceCipher cipher;
  private final ACI aci;
  private final PNI pni;

  /** Registers a number with its one-time token, uploads keys, and connects. */
  SignalClient(ServiceProcess service, String number) throws Exception {
    this.number = number;
    System.arraycopy(identity.getPublicKey().serialize(), 1, accessKey, 0, accessKey.length);
    SignalServiceConfiguration configuration = configuration(service);
    PushServiceSocket anonymous =
        new PushServiceSocket(configuration, credentials(null, null), AGENT, null, false);
    SignedPreKeyRecord signed = signedPreKey(identity, 1);
    KyberPreKeyRecord lastResort = kyberPreKey(identity, 1);
    VerifyAccountResponse account =
        success(
            new RegistrationApi(anonymous)
                .registerAccount(
                    null,
                    Base64.getEncoder().encodeToString(service.token(number)),
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
                    true));
    aci = ACI.parseOrThrow(account.getUuid());
    pni = PNI.parseOrThrow(account.getPni());
    store.storeSignedPreKey(signed.getId(), signed);
    store.storeLastResortKyberPreKey(lastResort.getId(), lastResort);
    CredentialsProvider credentials = credentials(aci, pni);
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
    uploadKeys(signed, lastResort);
    PushServiceSocket socket =
        new PushServiceSocket(configuration, credentials, AGENT, null, false);
    sender =
        new SignalServiceMessageSender(
            socket,
            store.asDataStore(),
            lock,
            new AttachmentApi(identified, socket),
            new MessageApi(identified, unidentified),
            new KeysApi(identified, unidentified),
            Optional.empty(),
            executor,
            MAX_ENVELOPE_BYTES);
    cipher =
        new SignalServiceCipher(
            new SignalServiceAddress(aci, number),
            SignalServiceAddress.DEFAULT_DEVICE_ID,
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

  private CredentialsProvider credentials(ACI ownAci, PNI ownPni) {
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
        return SignalServiceAddress.DEFAULT_DEVICE_ID;
      }

      @Override
      public String getPassword() {
        return password;
      }
    };
  }

  private void uploadKeys(SignedPreKeyRecord signed, KyberPreKeyRecord lastResort)
      throws Exception {
    List<PreKeyRecord> ec = new ArrayList<>();
    List<KyberPreKeyRecord> kyber = new ArrayList<>();
    for (int id = 100; id < 100 + ONE_TIME_KEYS; id++) {
      PreKeyRecord preKey = new PreKeyRecord(id, Curve.generateKeyPair());
      ec.add(preKey);
      store.storePreKey(id, preKey);
      KyberPreKeyRecord kyberKey = kyberPreKey(identity, id);
      kyber.add(kyberKey);
      store.storeKyberPreKey(id, kyberKey);
    }
    success(keys().setPreKeys(new PreKeyUpload(ServiceIdType.ACI, signed, ec, lastResort, kyber)));
    success(
        keys()
            .checkRepeatedUseKeys(
                ServiceIdType.ACI,
                identity.getPublicKey(),
                signed.getId(),
                signed.getKeyPair().getPublicKey(),
                lastResort.getId(),
                lastResort.getKeyPair().getPublicKey()));
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

  SignalServiceAddress address() {
    return new SignalServiceAddress(aci, number);
  }

  private UnidentifiedAccess accessTo(SignalClient other) throws Exception {
    return new UnidentifiedAccess(
        other.accessKey, success(new CertificateApi(identified).getSenderCertificate()), false);
  }

  /** Sends to one, under this client's name or sealed. */
  SendMessageResult send(SignalClient to, String body, boolean sealed) throws Exception {
    return sender.sendDataMessage(
        to.address(),
        sealed ? SealedSenderAccess.forIndividual(accessTo(to)) : SealedSenderAccess.NONE,
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
      List<EnvelopeResponse> batch = new ArrayList<>();
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
      for (EnvelopeResponse response : batch) {
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
        if (result.getContent().dataMessage != null) {
          return new Received(
              result.getContent().dataMessage.body,
              (ACI) result.getMetadata().getSourceServiceId(),
              result.getMetadata().getSealedSender());
        }
      }
    }
  }

  @Override
  public void close() throws Exception {
    identified.disconnect();
    unidentified.disconnect();
    executor.shutdownNow();
    executor.awaitTermination(PATIENCE_MS, TimeUnit.MILLISECONDS);
  }
}
