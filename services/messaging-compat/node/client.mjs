// An account at the messaging service, used through Signal's client library alone: its typed chat, its keys, its
// ciphers. State is in memory.
import { randomBytes } from 'node:crypto';
import * as signal from '@signalapp/libsignal-client';

const DEVICE = 1;
/** Type of an envelope whose sender only the recipient learns. */
const SEALED = 6;
const PATIENCE_MS = 30_000;

/** The service that NpmClientTest has started. */
export const service = {
  net: new signal.Net.Net({
    localTestServer: true,
    userAgent: 'coterie-test',
    TESTING_localServer_chatPort: Number(process.env.SIGNAL_PORT),
    // Contact discovery and secure value recovery, which are not used: the discard port.
    TESTING_localServer_cdsiPort: 9,
    TESTING_localServer_svr2Port: 9,
    TESTING_localServer_svrBPort: 9,
    TESTING_localServer_rootCertificateDer: bytes(process.env.SIGNAL_CA),
    TESTING_localServer_httpVersion: 1,
  }),
  trustRoot: signal.PublicKey.deserialize(bytes(process.env.SIGNAL_TRUST_ROOT)),
  /** So many stored messages wait for a device. */
  stored: Number(process.env.SIGNAL_STORED),
  tokens: new Map(process.env.SIGNAL_TOKENS.split(',').map((entry) => split(entry, '='))),
};

function split(text, separator) {
  const at = text.indexOf(separator);
  return [text.slice(0, at), bytes(text.slice(at + 1))];
}

export function bytes(base64) {
  return new Uint8Array(Buffer.from(base64, 'base64'));
}

function kept(stores, kind) {
  const map = new Map();
  stores[`save${kind}`] = async (id, record) => void map.set(String(id), record);
  stores[`get${kind}`] = async (id) => map.get(String(id)) ?? Promise.reject(new Error(`no ${kind} ${id}`));
  return map;
}

function key(address, distribution = '') {
  return `${address.name()}.${address.deviceId()}/${distribution}`;
}

/** All stores of one account, as libsignal wants them. */
class Stores {
  constructor(identity, registrationId) {
    const sessions = new Map();
    const senderKeys = new Map();
    const peers = new Map();
    this.sessions = Object.assign(Object.create(signal.SessionStore.prototype), {
      saveSession: async (name, record) => void sessions.set(key(name), record),
      getSession: async (name) => sessions.get(key(name)) ?? null,
      getExistingSessions: async (names) => names.map((name) => sessions.get(key(name))),
    });
    this.identities = Object.assign(Object.create(signal.IdentityKeyStore.prototype), {
      getIdentityKey: async () => identity.privateKey,
      getIdentityKeyPair: async () => identity,
      getLocalRegistrationId: async () => registrationId,
      saveIdentity: async (name, publicKey) => {
        peers.set(key(name), publicKey);
        return signal.IdentityChange.NewOrUnchanged;
      },
      isTrustedIdentity: async () => true,
      getIdentity: async (name) => peers.get(key(name)) ?? null,
    });
    this.senderKeys = Object.assign(Object.create(signal.SenderKeyStore.prototype), {
      saveSenderKey: async (sender, distribution, record) =>
        void senderKeys.set(key(sender, distribution), record),
      getSenderKey: async (sender, distribution) => senderKeys.get(key(sender, distribution)) ?? null,
    });
    this.preKeys = Object.create(signal.PreKeyStore.prototype);
    const oneTime = kept(this.preKeys, 'PreKey');
    this.preKeys.removePreKey = async (id) => void oneTime.delete(String(id));
    this.signedPreKeys = Object.create(signal.SignedPreKeyStore.prototype);
    kept(this.signedPreKeys, 'SignedPreKey');
    this.kyberPreKeys = Object.create(signal.KyberPreKeyStore.prototype);
    kept(this.kyberPreKeys, 'KyberPreKey');
    this.kyberPreKeys.markKyberPreKeyUsed = async () => {};
  }
}

function signedPreKey(id, identity) {
  const pair = signal.PrivateKey.generate();
  const signature = identity.privateKey.sign(pair.getPublicKey().serialize());
  return signal.SignedPreKeyRecord.new(id, Date.now(), pair.getPublicKey(), pair, signature);
}

function kyberPreKey(id, identity) {
  const pair = signal.KEMKeyPair.generate();
  const signature = identity.privateKey.sign(pair.getPublicKey().serialize());
  return signal.KyberPreKeyRecord.new(id, Date.now(), pair, signature);
}

/** The fields of an envelope that the tests look at: type (1), source (11), content (8), guid (9). */
export function envelope(buffer) {
  const fields = new Map();
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = buffer[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return Number(value);
      }
    }
  };
  while (at < buffer.length) {
    const tag = varint();
    if (tag % 8 === 0) {
      fields.set(tag >> 3, varint());
    } else if (tag % 8 === 2) {
      const length = varint();
      fields.set(tag >> 3, new Uint8Array(buffer.slice(at, at + length)));
      at += length;
    } else {
      throw new Error(`wire type ${tag % 8}`);
    }
  }
  const text = (field) => (fields.has(field) ? Buffer.from(fields.get(field)).toString() : undefined);
  return { type: fields.get(1), source: text(11), content: fields.get(8), guid: text(9) };
}

export class Account {
  static PREKEYS = 5;

  constructor(number) {
    this.number = number;
    this.identity = signal.IdentityKeyPair.generate();
    this.registrationId = 1 + (randomBytes(2).readUInt16BE() % 0x3ff0);
    this.password = randomBytes(18).toString('base64url');
    this.accessKey = new Uint8Array(randomBytes(16));
    this.stores = new Stores(this.identity, this.registrationId);
    this.inbox = [];
    this.waiting = [];
  }

  /** Registers by the typed call for a number with a recovery password, which is the one-time token here. */
  async register(token) {
    const pni = signal.IdentityKeyPair.generate();
    const signed = signedPreKey(1, this.identity);
    const lastResort = kyberPreKey(1, this.identity);
    await this.stores.signedPreKeys.saveSignedPreKey(1, signed);
    await this.stores.kyberPreKeys.saveKyberPreKey(1, lastResort);
    const registered = await service.net.reregisterAccount({
      e164: this.number,
      accountPassword: this.password,
      skipDeviceTransfer: true,
      accountAttributes: new signal.Net.AccountAttributes({
        recoveryPassword: token,
        aciRegistrationId: this.registrationId,
        pniRegistrationId: this.registrationId,
        registrationLock: null,
        unidentifiedAccessKey: this.accessKey,
        unrestrictedUnidentifiedAccess: false,
        capabilities: new Set(['spqr']),
        discoverableByPhoneNumber: false,
      }),
      aciPublicKey: this.identity.publicKey,
      pniPublicKey: pni.publicKey,
      aciSignedPreKey: signed,
      pniSignedPreKey: signedPreKey(1, pni),
      aciPqLastResortPreKey: lastResort,
      pniPqLastResortPreKey: kyberPreKey(1, pni),
    });
    this.aci = registered.aci;
    this.address = signal.ProtocolAddress.new(this.aci, DEVICE);
    return registered;
  }

  /** Connects; `acknowledges` decides for each message whether the service hears that it has come. */
  async connect(acknowledges = () => true) {
    const listener = {
      onConnectionInterrupted: () => {},
      onQueueEmpty: () => {},
      onIncomingMessage: (message, _, ack) => {
        const received = envelope(message);
        if (acknowledges(received)) {
          ack.send(200);
        }
        const next = this.waiting.shift();
        if (next) {
          next(received);
        } else {
          this.inbox.push(received);
        }
      },
    };
    const user = `${this.aci.getServiceIdString()}.${DEVICE}`;
    this.chat = await service.net.connectAuthenticatedChat(user, this.password, false, listener);
    this.anonymous ??= await service.net.connectUnauthenticatedChat({ onConnectionInterrupted: () => {} });
  }

  async disconnect() {
    await this.chat.disconnect();
  }

  async close() {
    await this.chat?.disconnect();
    await this.anonymous?.disconnect();
  }

  /** The next message, read or not. */
  next() {
    const waits = this.inbox.shift();
    if (waits) {
      return Promise.resolve(waits);
    }
    return new Promise((resolve, reject) => {
      const end = setTimeout(() => reject(new Error(`no message for ${this.number}`)), PATIENCE_MS);
      this.waiting.push((received) => {
        clearTimeout(end);
        resolve(received);
      });
    });
  }

  /** A call without a type, on the typed chat's connection; JSON both ways. */
  async call(verb, path, body) {
    const answer = await this.chat.fetch({
      verb,
      path,
      headers: body ? [['content-type', 'application/json']] : [],
      body: body && new Uint8Array(Buffer.from(JSON.stringify(body))),
    });
    return { status: answer.status, body: JSON.parse(Buffer.from(answer.body ?? []).toString() || 'null') };
  }

  /** Typed calls for one's own keys, devices and account need gRPC over HTTP/2, which is no part of this API. */
  async uploadOneTimeKeys() {
    const base64 = (value) => Buffer.from(value).toString('base64');
    const ids = Array.from({ length: Account.PREKEYS }, (_, i) => 100 + i);
    const preKeys = ids.map((keyId) => {
      const pair = signal.PrivateKey.generate();
      void this.stores.preKeys.savePreKey(keyId, signal.PreKeyRecord.new(keyId, pair.getPublicKey(), pair));
      return { keyId, publicKey: base64(pair.getPublicKey().serialize()) };
    });
    const pqPreKeys = ids.map((keyId) => {
      const record = kyberPreKey(keyId, this.identity);
      void this.stores.kyberPreKeys.saveKyberPreKey(keyId, record);
      return { keyId, publicKey: base64(record.publicKey().serialize()), signature: base64(record.signature()) };
    });
    return this.call('PUT', '/v2/keys?identity=aci', { preKeys, pqPreKeys });
  }

  async keyCount() {
    return (await this.call('GET', '/v2/keys?identity=aci')).body;
  }

  /** Opens a session with keys that the service hands out to whoever has the access key. */
  async open(peer, accessKey = peer.accessKey) {
    const { preKeyBundles } = await this.anonymous.getPreKeys({
      target: peer.aci,
      device: 'all',
      auth: { accessKey },
    });
    const { sessions, identities } = this.stores;
    await signal.processPreKeyBundle(preKeyBundles[0], peer.address, this.address, sessions, identities);
    return preKeyBundles;
  }

  /** Opens a session that is with another device, or one that has registered otherwise; its address. */
  async believe(peer, device, registrationId) {
    const [keys] = await this.open(peer);
    const { sessions, identities } = this.stores;
    const address = signal.ProtocolAddress.new(peer.aci, device);
    const believed = signal.PreKeyBundle.new(
      registrationId, device, keys.preKeyId(), keys.preKeyPublic(), keys.signedPreKeyId(), keys.signedPreKeyPublic(),
      keys.signedPreKeySignature(), keys.identityKey(), keys.kyberPreKeyId(), keys.kyberPreKeyPublic(),
      keys.kyberPreKeySignature(),
    );
    await signal.processPreKeyBundle(believed, address, this.address, sessions, identities);
    return address;
  }

  async certificate() {
    const { body } = await this.call('GET', '/v1/certificate/delivery?includeE164=false');
    return signal.SenderCertificate.deserialize(bytes(body.certificate));
  }

  /** Sends by name, under the session. */
  async sendByName(peer, text, options = {}) {
    const { sessions, identities } = this.stores;
    const contents = await signal.signalEncrypt(
      new Uint8Array(Buffer.from(text)), peer.address, this.address, sessions, identities,
    );
    await this.chat.sendMessage(this.#outbound(peer, contents, options));
  }

  /** Sends sealed: the service does not learn who sends. */
  async sendSealed(peer, text, { accessKey = peer.accessKey, ...options } = {}) {
    const { sessions, identities } = this.stores;
    const contents = await signal.sealedSenderEncryptMessage(
      new Uint8Array(Buffer.from(text)), peer.address, await this.certificate(), sessions, identities,
    );
    await this.anonymous.sendMessage({ ...this.#outbound(peer, contents, options), auth: { accessKey } });
  }

  #outbound(
    peer,
    contents,
    { destination = peer.aci, registrationId = peer.registrationId, deviceId = DEVICE, onlineOnly = false },
  ) {
    return {
      destination,
      timestamp: Date.now(),
      contents: [{ deviceId, registrationId, contents }],
      onlineOnly,
      urgent: false,
    };
  }

  /** One sealed message to many, under a sender key; typed clients write the combined access key themselves. */
  async sealedToMany(peers, text, addresses = peers.map((peer) => peer.address)) {
    const { sessions, identities, senderKeys } = this.stores;
    this.distribution ??= crypto.randomUUID();
    const handedOut = await signal.SenderKeyDistributionMessage.create(this.address, this.distribution, senderKeys);
    for (const peer of peers) {
      await signal.processSenderKeyDistributionMessage(this.address, handedOut, peer.stores.senderKeys);
    }
    const message = await signal.groupEncrypt(
      this.address, this.distribution, senderKeys, new Uint8Array(Buffer.from(text)),
    );
    const content = signal.UnidentifiedSenderMessageContent.new(message, await this.certificate(), 0, null);
    return signal.sealedSenderMultiRecipientEncrypt(
      content, addresses, identities, sessions,
    );
  }

  async sendToMany(peers, payload, accessKey = combined(peers)) {
    const answer = await this.anonymous.fetch({
      verb: 'PUT',
      path: `/v1/messages/multi_recipient?ts=${Date.now()}&online=false&urgent=false&story=false`,
      headers: [
        ['content-type', 'application/vnd.signal-messenger.mrm'],
        ['unidentified-access-key', Buffer.from(accessKey).toString('base64')],
      ],
      body: payload,
    });
    return { status: answer.status, body: JSON.parse(Buffer.from(answer.body ?? []).toString() || 'null') };
  }

  /** Opens a received message of whatever kind. */
  async read(received) {
    const { identities, senderKeys } = this.stores;
    if (received.type === SEALED) {
      const sealed = await signal.sealedSenderDecryptToUsmc(received.content, identities);
      const certificate = sealed.senderCertificate();
      if (!certificate.validate(service.trustRoot, Date.now())) {
        throw new Error('a certificate that the trust root has not signed');
      }
      const sender = signal.ProtocolAddress.new(certificate.senderUuid(), certificate.senderDeviceId());
      const plain =
        sealed.msgType() === signal.CiphertextMessageType.SenderKey
          ? await signal.groupDecrypt(sender, senderKeys, sealed.contents())
          : await this.#open(sealed.msgType(), sealed.contents(), sender);
      return { text: Buffer.from(plain).toString(), from: certificate.senderUuid() };
    }
    const sender = signal.ProtocolAddress.new(received.source, DEVICE);
    const plain = await this.#open(received.type, received.content, sender);
    return { text: Buffer.from(plain).toString(), from: received.source };
  }

  #open(type, content, sender) {
    const { sessions, identities, preKeys, signedPreKeys, kyberPreKeys } = this.stores;
    return type === signal.CiphertextMessageType.PreKey
      ? signal.signalDecryptPreKey(
          signal.PreKeySignalMessage.deserialize(content),
          sender, this.address, sessions, identities, preKeys, signedPreKeys, kyberPreKeys,
        )
      : signal.signalDecrypt(signal.SignalMessage.deserialize(content), sender, this.address, sessions, identities);
  }
}

/** The exclusive or of the access keys of all recipients. */
export function combined(accounts) {
  const key = new Uint8Array(16);
  for (const account of accounts) {
    account.accessKey.forEach((byte, i) => (key[i] ^= byte));
  }
  return key;
}
