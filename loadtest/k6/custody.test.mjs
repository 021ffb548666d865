// Checks what the scenario sends and accepts, by implementations other than its own where there are some: node's
// Ed25519, published vectors.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync, verify as nodeVerifies } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Requester, installation, preAuthenticated, profile, requestId, requesterKey, verify } from './custody.js';

const protoset = readFileSync(new URL('../../proto/target/custody.protoset', import.meta.url));
const schema = createFileRegistry(fromBinary(FileDescriptorSetSchema, protoset)).getMessage('coterie.custody.v1.SigningIntent');
const base64 = (hex) => Buffer.from(hex, 'hex').toString('base64');
const pkcs8 = (key) => key.export({ type: 'pkcs8', format: 'pem' });
const fingerprint = base64('ca10eaf27c8b0c93f8d2402dba6159f9');
const ID = '0190d5c6-7f3a-7b5e-9c1d-2e4f6a8b0c1d';

test('writes the intent that was meant, signed as DSSE', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const requester = new Requester(protoset, 'wallet', requesterKey(pkcs8(privateKey)), 'production');
  for (const [scheme, kind] of [
    ['SCHEME_BLS12381', 'message'],
    ['SCHEME_ECDSA_SECP256K1', 'digest'],
    ['SCHEME_ED25519', 'digest'],
    ['SCHEME_BIP340_SECP256K1', 'digest'],
  ]) {
    const { content, message } = requester.request({ name: 'keys/demo', scheme, fingerprint }, ID, 1_700_000_000_999);
    const { payload, payloadType, signatures } = message.signedIntent;
    const bytes = Buffer.from(payload, 'base64');
    const intent = fromBinary(schema, bytes);
    assert.equal(intent.requestId, ID);
    assert.equal(intent.key, 'keys/demo');
    assert.equal(intent.installation, 'production');
    assert.equal(Buffer.from(intent.keyFingerprint).toString('base64'), fingerprint);
    assert.equal(intent.payload.case, kind);
    assert.equal(Buffer.from(intent.payload.value).toString('base64'), content);
    assert.equal(intent.payload.value.length, 32);
    assert.equal(intent.notAfter.seconds, 1_700_000_000n);
    assert.equal(intent.$unknown, undefined);
    assert.equal(signatures.length, 1);
    assert.equal(signatures[0].keyid, 'wallet');
    const signature = Buffer.from(signatures[0].sig, 'base64');
    assert.ok(nodeVerifies(null, preAuthenticated(payloadType, bytes), publicKey, signature));
    bytes[bytes.length - 1] ^= 1;
    assert.ok(!nodeVerifies(null, preAuthenticated(payloadType, bytes), publicKey, signature));
  }
  assert.throws(() => requester.request({ name: 'keys/demo', scheme: 'toString' }, ID, 0), /scheme toString/);
});

test('two requests have different content', () => {
  const requester = new Requester(protoset, 'wallet', new Uint8Array(32), 'production');
  const contents = [requestId(1), requestId(1)].map(
    (id) => requester.request({ name: 'keys/demo', scheme: 'SCHEME_ED25519', fingerprint }, id, 0).content
  );
  assert.notEqual(contents[0], contents[1]);
});

test('encodes as the example of DSSE 1.0', () => {
  const bytes = preAuthenticated('http://example.com/HelloWorld', Buffer.from('hello world'));
  assert.equal(Buffer.from(bytes).toString(), 'DSSEv1 29 http://example.com/HelloWorld 11 hello world');
});

const vectors = {
  // Ethereum's BLS tests.
  SCHEME_BLS12381: [
    'a491d1b0ecd9bb917989f0e74f0dea0422eac4a873e5e2644f368dffb9a6e20fd6e10c1b77654d067c0618f6e5a7f79a',
    '00'.repeat(32),
    'b6ed936746e01f8ecf281f020953fbf1f01debd5657c4a383940b020b26507f6076334f91e2366c96e9ab279fb5158090352ea1c5b0c9274504f4f0e7053af24802e51e4568d164fe986834f41e55c8e850ce1f98458c0cfc9ab380b55285a55',
  ],
  // EIP-155.
  SCHEME_ECDSA_SECP256K1: [
    '024bc2a31265153f07e70e0bab08724e6b85e217f8cd628ceb62974247bb493382',
    'daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53',
    '28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa63627667cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83',
  ],
  // RFC 8032, 7.1, test 2.
  SCHEME_ED25519: [
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
  // BIP-340, test vector 1.
  SCHEME_BIP340_SECP256K1: [
    'dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659',
    '243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89',
    '6896bd60eeae296db48a229ff71dfe071bde413e6d43f917dc8dcf8c78de33418906d11ac976abccb20b091292bff4ea897efcb639ea871cfa95f6de339e4b0a',
  ],
};

for (const [scheme, [publicKey, content, signature]] of Object.entries(vectors)) {
  test(`${scheme}: takes the published signature, and nothing that is altered`, () => {
    const says = (...hex) => verify(scheme, ...hex.map(base64));
    assert.equal(says(publicKey, content, signature), true);
    const flipped = (hex) => `${hex.slice(0, -2)}${(parseInt(hex.slice(-2), 16) ^ 1).toString(16).padStart(2, '0')}`;
    for (const bad of [
      [publicKey, content, flipped(signature)],
      [publicKey, flipped(content), signature],
      [flipped(publicKey), content, signature],
      [publicKey, content, signature.slice(2)],
      [publicKey, content, '00'.repeat(signature.length / 2)],
      [publicKey, content, ''],
    ]) {
      assert.equal(says(...bad), false, JSON.stringify(bad));
    }
    assert.equal(verify(scheme, base64(publicKey), base64(content), 'not base64!'), false);
  });
}

test('does not know other schemes', () => {
  assert.throws(() => verify('SCHEME_UNSPECIFIED', '', '', ''), /not known/);
});

test('reads the key of a requester, and nothing else', () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const seed = Buffer.from(privateKey.export({ format: 'jwk' }).d, 'base64url');
  assert.deepEqual(Buffer.from(requesterKey(pkcs8(privateKey))), seed);
  const p256 = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey;
  const open = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' });
  for (const bad of ['', 'x', open, pkcs8(p256), pkcs8(privateKey).replace('MC4C', 'MC4D')]) {
    assert.throws(() => requesterKey(bad), /not an Ed25519 key/);
  }
  assert.equal(createPrivateKey(pkcs8(privateKey)).asymmetricKeyType, 'ed25519');
});

test('reads a profile of coterie', () => {
  const text = `# of a demo
endpoint=localhost:1
 ca = ca.pem
cert=/etc/coterie/cert.pem
key: key.pem
requester=wallet
requester-key=wallet.pem
trust=trust.json

`;
  assert.deepEqual(profile(text, '/etc/coterie'), {
    endpoint: 'localhost:1',
    requester: 'wallet',
    ca: '/etc/coterie/ca.pem',
    cert: '/etc/coterie/cert.pem',
    key: '/etc/coterie/key.pem',
    requesterKey: '/etc/coterie/wallet.pem',
    trust: '/etc/coterie/trust.json',
  });
  assert.throws(() => profile(text.replace('ca =', 'xx ='), '/'), /no ca$/);
  assert.throws(() => profile(`${text}key=C:\\key.pem`, '/'), /backslash/);
});

test('reads the installation that a trust file is of', () => {
  const file = (payload) => JSON.stringify({ payload: Buffer.from(payload).toString('base64'), signatures: [] });
  assert.equal(installation(file('{"version":1,"installation":"production"}')), 'production');
  assert.throws(() => installation(file('{"version":1}')), /names no installation/);
  assert.throws(() => installation('{"installation":"production"}'), /names no installation/);
});

test('draws request ids of version 7, which say when', () => {
  const id = requestId(1_645_557_742_000);
  assert.match(id, /^017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.notEqual(requestId(1_645_557_742_000), id);
});
