// The verifier is itself checked against published vectors (Ethereum's BLS tests, EIP-155, BIP-143, BIP-32), good and bad.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { secp256k1 } from '@noble/curves/secp256k1';
import { Psbt, Transaction } from 'bitcoinjs-lib';
import { perform } from './verify.mjs';

const publicKey =
  'a491d1b0ecd9bb917989f0e74f0dea0422eac4a873e5e2644f368dffb9a6e20fd6e10c1b77654d067c0618f6e5a7f79a';
const message = '00'.repeat(32);
const signature =
  'b6ed936746e01f8ecf281f020953fbf1f01debd5657c4a383940b020b26507f6076334f91e2366c96e9ab279fb5158090352ea1c5b0c9274504f4f0e7053af24802e51e4568d164fe986834f41e55c8e850ce1f98458c0cfc9ab380b55285a55';

test('accepts the published signature', () => {
  assert.equal(perform({ task: 'bls', publicKey, message, signature }).valid, true);
});

test('refuses another message, another key, a truncated or altered signature, and the identity', () => {
  const generator =
    '97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb';
  const identityKey = 'c0' + '00'.repeat(47);
  const identitySignature = 'c0' + '00'.repeat(95);
  for (const bad of [
    { publicKey, message: '01' + '00'.repeat(31), signature },
    { publicKey: generator, message, signature },
    { publicKey, message, signature: signature.slice(2) },
    { publicKey, message, signature: signature.slice(0, -2) + '00' },
    { publicKey: identityKey, message, signature: identitySignature },
    { publicKey, message, signature: identitySignature },
    { publicKey, message, signature, proof: signature },
  ]) {
    assert.equal(perform({ task: 'bls', ...bad }).valid, false, JSON.stringify(bad));
  }
});

const eip155 =
  'f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83';

test('recovers the sender of the transaction of EIP-155', () => {
  const task = 'ethereum-transaction';
  const { valid, value } = perform({ task, transaction: eip155 });
  assert.deepEqual([valid, value], [true, '0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F']);
  const altered = eip155.replace('67cbe9d8', '67cbe9d9');
  assert.notEqual(perform({ task, transaction: altered }).value, value);
  assert.equal(perform({ task, transaction: eip155.slice(2) }).valid, false);
});

test('verifies an ECDSA signature on a digest, with low s only', () => {
  const good = {
    task: 'ecdsa',
    publicKey: '024bc2a31265153f07e70e0bab08724e6b85e217f8cd628ceb62974247bb493382',
    digest: 'daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53',
    signature:
      '28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa63627667cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83',
  };
  assert.equal(perform(good).valid, true);
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const s = BigInt(`0x${good.signature.slice(64)}`);
  const high = good.signature.slice(0, 64) + (order - s).toString(16).padStart(64, '0');
  assert.equal(perform({ ...good, signature: high }).valid, false);
  assert.equal(perform({ ...good, digest: '00'.repeat(32) }).valid, false);
  assert.equal(perform({ ...good, signature: '00'.repeat(64) }).valid, false);
});

test('derives the address of a child', () => {
  const xpub =
    'xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB';
  const task = 'ethereum-address';
  const child = perform({ task, xpub, path: '0' });
  const own = perform({
    task,
    xpub: 'xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH',
    path: '',
  });
  assert.equal(child.value, own.value);
});

test('finalises a PSBT only if its signature is right', () => {
  // Private key and output of the example of BIP-143.
  const key = '619c335025c7f4012e556c2a58b2506e30b8511b53ade95ea316fd8c3286feb9';
  const unsigned =
    '70736274ff010052020000000111111111111111111111111111111111111111111111111111111111111111110000000000ffffffff01f01ec323000000001600141d0f172a0ecb48aee1be1f2687d2963ae33f71a10000000000' +
    '01011f0046c323000000001600141d0f172a0ecb48aee1be1f2687d2963ae33f71a10000';
  const signed = (wrong) =>
    Psbt.fromHex(unsigned)
      .signInput(0, {
        publicKey: secp256k1.getPublicKey(key),
        sign: (hash) => {
          hash[0] ^= wrong;
          return secp256k1.sign(hash, key, { prehash: false }).toBytes();
        },
      })
      .toHex();
  const good = perform({ task: 'bitcoin-psbt', psbt: signed(0) });
  assert.equal(good.valid, true);
  assert.equal(Transaction.fromHex(good.value).ins[0].witness.length, 2);
  for (const psbt of [signed(1), unsigned, '70736274ff']) {
    assert.equal(perform({ task: 'bitcoin-psbt', psbt }).valid, false);
  }
});

test('drafts transactions', () => {
  const to = '0x52908400098527886E0F7030069857D2E4169EE7';
  const draft = perform({ task: 'ethereum-draft', chainId: '1', nonce: '7', to, value: '5' });
  assert.match(draft.value, /^02e[0-9a-f]+c0$/);
  const publicKey = '025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357';
  const psbt = perform({
    task: 'bitcoin-draft',
    publicKey,
    inputs: '2',
    amount: '5000',
    fee: '500',
    to: 'bc1qr583w2swedy2acd7rung055k8t3n7udp7vyzyg',
  });
  const { data, txOutputs } = Psbt.fromHex(psbt.value);
  assert.equal(data.inputs.length, 2);
  assert.equal(txOutputs[0].value, 9500n);
  assert.equal(
    Buffer.from(data.inputs[1].witnessUtxo.script).toString('hex'),
    '00141d0f172a0ecb48aee1be1f2687d2963ae33f71a1'
  );
});

test('knows its tasks', () => {
  assert.throws(() => perform({ task: 'toString' }));
});
