// The verifier is itself checked against published vectors (Ethereum's BLS tests, EIP-155, BIP-143, BIP-32,
// BIP-86, Solana's tests), good and bad.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { schnorr, secp256k1 } from '@noble/curves/secp256k1';
import { Psbt, Transaction } from 'bitcoinjs-lib';
import { perform } from './verify.mjs';

const publicKey =
  'a491d1b0ecd9bb917989f0e74f0dea0422eac4a873e5e2644f368dffb9a6e20fd6e10c1b77654d067c0618f6e5a7f79a';
const message = '00'.repeat(32);
const signature =
  'b6ed936746e01f8ecf281f020953fbf1f01debd5657c4a383940b020b26507f6076334f91e2366c96e9ab279fb5158090352ea1c5b0c9274504f4f0e7053af24802e51e4568d164fe986834f41e55c8e850ce1f98458c0cfc9ab380b55285a55';

test('accepts the published signature', async () => {
  assert.equal((await perform({ task: 'bls', publicKey, message, signature })).valid, true);
});

test('refuses another message, another key, a truncated or altered signature, and the identity', async () => {
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
    assert.equal((await perform({ task: 'bls', ...bad })).valid, false, JSON.stringify(bad));
  }
});

const eip155 =
  'f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83';

test('recovers the sender of the transaction of EIP-155', async () => {
  const task = 'ethereum-transaction';
  const { valid, value } = await perform({ task, transaction: eip155 });
  assert.deepEqual([valid, value], [true, '0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F']);
  const altered = eip155.replace('67cbe9d8', '67cbe9d9');
  assert.notEqual((await perform({ task, transaction: altered })).value, value);
  assert.equal((await perform({ task, transaction: eip155.slice(2) })).valid, false);
});

test('verifies an ECDSA signature on a digest, with low s only', async () => {
  const good = {
    task: 'ecdsa',
    publicKey: '024bc2a31265153f07e70e0bab08724e6b85e217f8cd628ceb62974247bb493382',
    digest: 'daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53',
    signature:
      '28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa63627667cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83',
  };
  assert.equal((await perform(good)).valid, true);
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const s = BigInt(`0x${good.signature.slice(64)}`);
  const high = good.signature.slice(0, 64) + (order - s).toString(16).padStart(64, '0');
  assert.equal((await perform({ ...good, signature: high })).valid, false);
  assert.equal((await perform({ ...good, digest: '00'.repeat(32) })).valid, false);
  assert.equal((await perform({ ...good, signature: '00'.repeat(64) })).valid, false);
});

// A published vector, and what must not pass for it.
async function onlyTheVector(task, good, message) {
  assert.equal((await perform({ task, ...good })).valid, true);
  for (const bad of [
    { signature: good.signature.slice(0, -2) },
    { signature: `${'0'.repeat(64)}${good.signature.slice(64)}` },
    { signature: `${good.signature.slice(0, 64)}${'f'.repeat(64)}` },
    { publicKey: good.publicKey.replace(/.$/, (last) => (last === '0' ? '1' : '0')) },
    { [message]: `${good[message]}00` },
  ]) {
    assert.equal((await perform({ task, ...good, ...bad })).valid, false, JSON.stringify(bad));
  }
}

test('verifies an Ed25519 signature', async () => {
  // RFC 8032, 7.1, test 2.
  const good = {
    publicKey: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    message: '72',
    signature:
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  };
  await onlyTheVector('ed25519', good, 'message');
});

test('verifies a BIP-340 signature', async () => {
  // BIP-340, test vector 1.
  const good = {
    publicKey: 'dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659',
    digest: '243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89',
    signature:
      '6896bd60eeae296db48a229ff71dfe071bde413e6d43f917dc8dcf8c78de33418906d11ac976abccb20b091292bff4ea897efcb639ea871cfa95f6de339e4b0a',
  };
  await onlyTheVector('bip340', good, 'digest');
});

test('derives the address of a child', async () => {
  const xpub =
    'xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB';
  const task = 'ethereum-address';
  const child = await perform({ task, xpub, path: '0' });
  const own = await perform({
    task,
    xpub: 'xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH',
    path: '',
  });
  assert.equal(child.value, own.value);
});

test('finalises a PSBT only if its signature is right', async () => {
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
  const good = await perform({ task: 'bitcoin-psbt', psbt: signed(0) });
  assert.equal(good.valid, true);
  assert.equal(Transaction.fromHex(good.value).ins[0].witness.length, 2);
  for (const psbt of [signed(1), unsigned, '70736274ff']) {
    assert.equal((await perform({ task: 'bitcoin-psbt', psbt })).valid, false);
  }
});

test('drafts transactions', async () => {
  const to = '0x52908400098527886E0F7030069857D2E4169EE7';
  const draft = await perform({ task: 'ethereum-draft', chainId: '1', nonce: '7', to, value: '5' });
  assert.match(draft.value, /^02e[0-9a-f]+c0$/);
  const publicKey = '025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357';
  const psbt = await perform({
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

// BIP-86: the account's extended key, and its first receiving address.
const xpub =
  'xpub6BgBgsespWvERF3LHQu6CnqdvfEvtMcQjYrcRzx53QJjSxarj2afYWcLteoGVky7D3UKDP9QyrLprQ3VCECoY49yfdDEHGCtMMj92pReUsQ';

test('derives the address of BIP-86', async () => {
  const { value } = await perform({ task: 'taproot-address', xpub, path: '0/0' });
  assert.equal(value, 'bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr');
  const withScript = await perform({ task: 'taproot-address', xpub, path: '0/0', script: '51' });
  assert.notEqual(withScript.value, value);
});

test('finalises a spend by key path only if its signature is right', async () => {
  // The first private key of BIP-86, and the one of its output key.
  const key = '41f41d69260df4cf277826a9b65a3717e4eeddbeedf637f212ca096576479361';
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const internal = secp256k1.getPublicKey(key);
  const even = internal[0] === 2 ? BigInt(`0x${key}`) : order - BigInt(`0x${key}`);
  const tweak = BigInt(`0x${Buffer.from(schnorr.utils.taggedHash('TapTweak', internal.subarray(1))).toString('hex')}`);
  const output = ((even + tweak) % order).toString(16).padStart(64, '0');
  const draft = await perform({
    task: 'taproot-draft',
    xpub,
    path: '0/0',
    inputs: '2',
    amount: '5000',
    fee: '500',
    to: 'bc1qr583w2swedy2acd7rung055k8t3n7udp7vyzyg',
  });
  const signed = (wrong, secret = output) => {
    const psbt = Psbt.fromHex(draft.value);
    for (const place of [0, 1]) {
      psbt.signInput(place, {
        publicKey: schnorr.getPublicKey(secret),
        signSchnorr: (hash) => {
          hash[0] ^= wrong;
          return schnorr.sign(hash, secret);
        },
      });
    }
    return psbt.toHex();
  };
  const good = await perform({ task: 'bitcoin-psbt', psbt: signed(0) });
  assert.equal(good.valid, true);
  assert.deepEqual(
    Transaction.fromHex(good.value).ins.map(({ witness }) => witness.map(({ length }) => length)),
    [[64], [64]]
  );
  for (const psbt of [signed(1), draft.value]) {
    assert.equal((await perform({ task: 'bitcoin-psbt', psbt })).valid, false);
  }
});

// From the tests of @solana/web3.js.
const signedTransfer =
  '015b84ad01da5efd121b4fcf721ba77f11cab7cc0c45f319cea574b640b9a8eea8c18c56536bfcef50285b2c06a0542be33faaffb984f2522e7cd97f9318fe9d0d' +
  '010001031398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93cafd439fccb66727f289c5c6de3bc4a8fe5dd5d77770bc8ff15c3eeedcb14af3fc0000000000000000000000000000000000000000000000000000000000000000c49ae77603782054f17a9decea43b444eba0edb12c6f1d31c6e0e4a84bf052eb01020200010c020000003100000000000000';

test('verifies the signatures of a Solana transaction', async () => {
  const task = 'solana-transaction';
  assert.deepEqual(await perform({ task, transaction: signedTransfer }), {
    valid: true,
    by: '@solana/transactions 6.0.0',
    value: '2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1',
  });
  for (const transaction of [
    signedTransfer.replace('3100000000000000', '3200000000000000'),
    signedTransfer.replace('5b84', '5b85'),
    // Not signed; cut off
    `01${'00'.repeat(64)}${signedTransfer.slice(130)}`,
    signedTransfer.slice(0, -2),
  ]) {
    assert.equal((await perform({ task, transaction })).valid, false);
  }
});

test('drafts a transfer on Solana', async () => {
  const transfer = {
    task: 'solana-draft',
    from: '2KW2XRd9kwqet15Aha2oK3tYvd3nWbTFH1MBiRAv1BE1',
    to: 'J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99',
    lamports: '49',
    blockhash: 'EETubP5AKHgjPAhzPAFcb8BAY1hMH639CWCFTqi3hq1k',
  };
  const message = signedTransfer.slice(130);
  assert.equal((await perform({ ...transfer, version: 'legacy' })).value, message);
  assert.equal((await perform({ ...transfer, version: '0' })).value, `80${message}00`);
});

test('knows its tasks', async () => {
  await assert.rejects(perform({ task: 'toString' }));
});
