// Verifies BLS12-381 signatures (Ethereum's proof-of-possession suite) with @noble/curves, which shares no code with the
// platform. Reads one JSON object a line from standard input: {"publicKey","message","signature"[,"proof"]}, all hex;
// "proof" is the proof of possession of the public key. Answers each with a line {"valid":true|false,"by":"..."}.
import { createInterface } from 'node:readline';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { argv } from 'node:process';
import { bls12_381 } from '@noble/curves/bls12-381';

const SIGNATURE_SUITE = 'BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_';
const PROOF_SUITE = 'BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_';
const bls = bls12_381.longSignatures;
const version = JSON.parse(
  readFileSync(new URL('./node_modules/@noble/curves/package.json', import.meta.url))
).version;

const bytes = (hex) => {
  if (typeof hex !== 'string' || !/^([0-9a-f]{2})*$/.test(hex)) throw new Error('not hex');
  return Uint8Array.from(Buffer.from(hex, 'hex'));
};

// False for a wrong signature as for anything that is not a canonical point of the right subgroup.
function check(signature, message, suite, publicKey) {
  try {
    return bls.verify(signature, bls.hash(message, suite), publicKey);
  } catch {
    return false;
  }
}

export function verify({ publicKey, message, signature, proof }) {
  const key = bytes(publicKey);
  return (
    check(bytes(signature), bytes(message), SIGNATURE_SUITE, key) &&
    (proof === undefined || check(bytes(proof), key, PROOF_SUITE, key))
  );
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  for await (const line of createInterface({ input: process.stdin })) {
    let valid = false;
    try {
      valid = verify(JSON.parse(line));
    } catch (error) {
      console.error(`verifier: ${error.message}`);
    }
    console.log(JSON.stringify({ valid, by: `@noble/curves ${version}` }));
  }
}
