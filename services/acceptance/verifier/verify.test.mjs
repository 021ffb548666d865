// The verifier is itself checked against published vectors (Ethereum's BLS tests, sign/ and verify/), good and bad.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { verify } from './verify.mjs';

const publicKey =
  'a491d1b0ecd9bb917989f0e74f0dea0422eac4a873e5e2644f368dffb9a6e20fd6e10c1b77654d067c0618f6e5a7f79a';
const message = '00'.repeat(32);
const signature =
  'b6ed936746e01f8ecf281f020953fbf1f01debd5657c4a383940b020b26507f6076334f91e2366c96e9ab279fb5158090352ea1c5b0c9274504f4f0e7053af24802e51e4568d164fe986834f41e55c8e850ce1f98458c0cfc9ab380b55285a55';

test('accepts the published signature', () => {
  assert.equal(verify({ publicKey, message, signature }), true);
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
    assert.equal(verify(bad), false, JSON.stringify(bad));
  }
});
