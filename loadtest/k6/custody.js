// Does the work of a wallet backend apart from calling: writes and signs intents, verifies signatures. Shares no code
// with the services: messages are encoded from the descriptors of proto/ (@bufbuild/protobuf), signatures made and
// verified by @noble/curves.
import './text-encoding.js';
import { create, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf';
import { base64Decode, base64Encode } from '@bufbuild/protobuf/wire';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { bls12_381 } from '@noble/curves/bls12-381';
import { ed25519 } from '@noble/curves/ed25519';
import { schnorr, secp256k1 } from '@noble/curves/secp256k1';

// Every virtual user has tables of its own. Small ones, made at once: in k6, which interprets, those that the library
// would make at the first signature take longer than a hundred signatures.
for (const { Point } of [ed25519, secp256k1]) Point.BASE.precompute(4, false);

const INTENT = 'coterie.custody.v1.SigningIntent';
const INTENT_TYPE = 'application/vnd.coterie.signing-intent.v1+protobuf';
const BLS_SUITE = 'BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_';

// PKCS#8 of an Ed25519 key without attributes (RFC 8410), before the 32 bytes of the key.
const ED25519_PREFIX = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32];
const ED25519_BYTES = 32;

// k6's Uint8Array.from does not take a string.
const ascii = (text) => Uint8Array.from(Array.from(text, (character) => character.charCodeAt(0)));

function concatenated(...parts) {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

const schemes = {
  SCHEME_BLS12381: {
    payload: 'message',
    verifies: (publicKey, message, signature) => {
      const bls = bls12_381.longSignatures;
      return bls.verify(signature, bls.hash(message, BLS_SUITE), publicKey);
    },
  },
  SCHEME_ECDSA_SECP256K1: {
    payload: 'digest',
    verifies: (publicKey, digest, signature) =>
      secp256k1.verify(signature, digest, publicKey, { lowS: true, prehash: false }),
  },
  // As RFC 8032 says, and not as lax as ZIP-215.
  SCHEME_ED25519: {
    payload: 'digest',
    verifies: (publicKey, message, signature) =>
      ed25519.verify(signature, message, publicKey, { zip215: false }),
  },
  SCHEME_BIP340_SECP256K1: {
    payload: 'digest',
    verifies: (publicKey, digest, signature) => schnorr.verify(signature, digest, publicKey),
  },
};

function schemeOf(name) {
  if (!Object.hasOwn(schemes, name)) throw new Error(`keys of scheme ${name} are not known here`);
  return schemes[name];
}

/**
 * Whether a signature is one of these bytes: a message or a digest, as the scheme has it. False for anything that is no
 * signature at all. All bytes are base64, as JSON has them.
 */
export function verify(scheme, publicKey, content, signature) {
  const { verifies } = schemeOf(scheme);
  try {
    return verifies(base64Decode(publicKey), base64Decode(content), base64Decode(signature));
  } catch {
    return false;
  }
}

/** The 32 bytes that an Ed25519 key in a PEM file (PKCS#8) consists of. */
export function requesterKey(pem) {
  const body = /^-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----\s*$/.exec(pem);
  const der = body ? base64Decode(body[1].replace(/\s/g, '')) : new Uint8Array();
  if (
    der.length !== ED25519_PREFIX.length + ED25519_BYTES ||
    !ED25519_PREFIX.every((byte, index) => der[index] === byte)
  ) {
    throw new Error('the requester key is not an Ed25519 key in PKCS#8 (PEM)');
  }
  return der.slice(ED25519_PREFIX.length);
}

/** The bytes that DSSE 1.0 signs: "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body. */
export const preAuthenticated = (type, body) =>
  concatenated(ascii(`DSSEv1 ${type.length} ${type} ${body.length} `), body);

/**
 * A request id: a UUID of version 7 (RFC 9562), whose first 48 bits are the time.
 *
 * @param now in ms since 1970
 */
export function requestId(now) {
  const time = now.toString(16).padStart(12, '0');
  // Of version 4: its last 74 bits are random, and so are those of version 7.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${crypto.randomUUID().slice(15)}`;
}

/** Writes requests for signatures, as one requester. */
export class Requester {
  /**
   * @param protoset serialised FileDescriptorSet of the wire contracts, with what they import
   * @param name of the requester, as the services' configuration knows it
   * @param key 32 bytes, see requesterKey
   * @param installation whose parties may sign, as its trust file names it
   */
  constructor(protoset, name, key, installation) {
    const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, protoset));
    this.intent = registry.getMessage(INTENT);
    this.timestamp = registry.getMessage('google.protobuf.Timestamp');
    this.schemes = registry.getEnum('coterie.custody.v1.Scheme');
    if (!this.intent || !this.timestamp || !this.schemes) throw new Error(`the descriptors lack ${INTENT}`);
    this.name = name;
    this.key = key;
    this.installation = installation;
  }

  /**
   * A SignRequest in JSON, and what is signed in base64: 32 bytes that no other request has.
   *
   * @param key a Key in JSON
   * @param requestId a UUID of version 7
   * @param notAfter until when signers may begin, in ms since 1970
   */
  request(key, requestId, notAfter) {
    const { payload: kind } = schemeOf(key.scheme);
    const content = ascii(requestId.replace(/-/g, ''));
    const payload = toBinary(
      this.intent,
      create(this.intent, {
        requestId,
        key: key.name,
        scheme: this.schemes.values.find(({ name }) => name === key.scheme).number,
        payload: { case: kind, value: content },
        installation: this.installation,
        keyFingerprint: base64Decode(key.fingerprint),
        reshareEpoch: key.reshareEpoch || 0,
        purpose: 'load',
        notAfter: create(this.timestamp, { seconds: BigInt(Math.floor(notAfter / 1000)) }),
      })
    );
    const sig = ed25519.sign(preAuthenticated(INTENT_TYPE, payload), this.key);
    return {
      content: base64Encode(content),
      message: {
        signedIntent: {
          payload: base64Encode(payload),
          payloadType: INTENT_TYPE,
          signatures: [{ sig: base64Encode(sig), keyid: this.name }],
        },
      },
    };
  }
}

/**
 * The name of the installation that a trust file is of. The file's signatures are not checked: a load test believes the
 * folder that it is run in.
 *
 * @param text of the file: JSON, whose `payload` is the base64 of the JSON that says what is believed
 */
export function installation(text) {
  const { payload } = JSON.parse(text);
  const name = payload && JSON.parse(new TextDecoder().decode(base64Decode(payload))).installation;
  if (!name) throw new Error('the trust file names no installation');
  return name;
}

/**
 * The settings of a profile of `coterie`, NAME=VALUE in lines.
 *
 * @param folder of the profile: files in it that are not absolute are found from there
 */
export function profile(text, folder) {
  const settings = {};
  for (const line of text.split(/\r?\n/)) {
    const [, name, value] = /^\s*([^#!=:\s][^=:\s]*)\s*[=:\s]\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined) continue;
    if (value.includes('\\')) throw new Error(`the profile's ${name} has a backslash, which is not understood here`);
    settings[name] = value;
  }
  const given = (name) => {
    if (!settings[name]) throw new Error(`the profile has no ${name}`);
    return settings[name];
  };
  const file = (name) => (given(name).startsWith('/') ? given(name) : `${folder}/${given(name)}`);
  return {
    endpoint: given('endpoint'),
    requester: given('requester'),
    ca: file('ca'),
    cert: file('cert'),
    key: file('key'),
    requesterKey: file('requester-key'),
    trust: file('trust'),
  };
}
