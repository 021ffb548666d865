// Against the encoder and decoder that node has and k6 has not.
import { test } from 'node:test';
import assert from 'node:assert/strict';

const { TextEncoder: Encoder, TextDecoder: Decoder } = globalThis;
delete globalThis.TextEncoder;
delete globalThis.TextDecoder;
await import('./text-encoding.js');

test('encodes and decodes as others do', () => {
  assert.notEqual(globalThis.TextEncoder, Encoder);
  assert.notEqual(globalThis.TextDecoder, Decoder);
  for (const text of ['', 'BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_', '\0\x7f\x80ÿ', 'Größe €\ufeff', '𝔘𝔗𝔉']) {
    const bytes = new Encoder().encode(text);
    assert.deepEqual(new globalThis.TextEncoder().encode(text), bytes);
    assert.equal(new globalThis.TextDecoder().decode(bytes), text);
  }
});

test('refuses what is not UTF-8', () => {
  for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80]]) {
    assert.throws(() => new globalThis.TextDecoder().decode(Uint8Array.from(bytes)), URIError);
  }
  assert.throws(() => new globalThis.TextEncoder().encode('\ud800'), URIError);
});
