// Verifies what Coterie makes with implementations that share no code with it. Reads one JSON object a line from
// standard input, answers each with a line {"valid":true|false,"by":"...","value":"..."}. "task" says what is to be
// done; bytes are hex. `value` is what was computed, if anything: the address of a signer, a final transaction, a
// transaction to be signed.
import { createInterface } from 'node:readline';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { argv } from 'node:process';
import { webcrypto } from 'node:crypto';
import { bls12_381 } from '@noble/curves/bls12-381';
import { ed25519 } from '@noble/curves/ed25519';
import { schnorr, secp256k1 } from '@noble/curves/secp256k1';
import { address, getPublicKeyFromAddress } from '@solana/addresses';
import { verifySignature } from '@solana/keys';
import {
  appendTransactionMessageInstruction,
  compileTransactionMessage,
  createTransactionMessage,
  getCompiledTransactionMessageEncoder,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/transaction-messages';
import { assertIsFullySignedTransaction, getTransactionDecoder } from '@solana/transactions';
import { Transaction as BitcoinTransaction, Psbt, initEccLib, payments } from 'bitcoinjs-lib';
import {
  HDNodeWallet,
  Signature,
  Transaction,
  parseUnits,
  verifyMessage,
  verifyTypedData,
} from 'ethers';
import * as tinySecp256k1 from 'tiny-secp256k1';

initEccLib(tinySecp256k1);
// Node.js 18 has it, but does not show it to everybody.
globalThis.crypto ??= webcrypto;

const SIGNATURE_SUITE = 'BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_';
const PROOF_SUITE = 'BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_';
const bls = bls12_381.longSignatures;

const named = (name) => {
  const file = new URL(`./node_modules/${name}/package.json`, import.meta.url);
  return `${name} ${JSON.parse(readFileSync(file)).version}`;
};
const NOBLE = named('@noble/curves');
const ETHERS = named('ethers');
const BITCOINJS = named('bitcoinjs-lib');
const SOLANA = named('@solana/transactions');

const bytes = (hex) => {
  if (typeof hex !== 'string' || !/^([0-9a-f]{2})*$/.test(hex)) throw new Error('not hex');
  return Uint8Array.from(Buffer.from(hex, 'hex'));
};

// r, s and the parity as ethers wants them.
const parts = (signature, recoveryId) =>
  Signature.from({
    r: `0x${signature.slice(0, 64)}`,
    s: `0x${signature.slice(64)}`,
    yParity: recoveryId,
  });

// False for a wrong signature as for anything that is not a canonical point of the right subgroup.
function blsCheck(signature, message, suite, publicKey) {
  try {
    return bls.verify(signature, bls.hash(message, suite), publicKey);
  } catch {
    return false;
  }
}

const isSignature = (publicKey, digest, signature) =>
  secp256k1.verify(signature, digest, publicKey, { lowS: true, prehash: false });

// For bitcoinjs-lib, which asks about both: keys of Taproot have 32 bytes.
const isBitcoinSignature = (publicKey, digest, signature) =>
  publicKey.length === 32
    ? tinySecp256k1.verifySchnorr(digest, publicKey, signature)
    : isSignature(publicKey, digest, signature);

// The output of a descendant of an extended public key, its x coordinate being Taproot's internal key; with at most one
// script.
function taprootOutput({ xpub, path, script = '' }) {
  const root = HDNodeWallet.fromExtendedKey(xpub);
  const { publicKey } = path === '' ? root : root.derivePath(path);
  const scriptTree = script === '' ? undefined : { output: bytes(script) };
  return payments.p2tr({ internalPubkey: bytes(publicKey.slice(4)), scriptTree });
}

const SYSTEM_PROGRAM = address('11111111111111111111111111111111');
const WRITABLE = 1;
const WRITABLE_SIGNER = 3;

// Instruction 2 of the system program.
function transferOfLamports(from, to, lamports) {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(2, 0);
  data.writeBigUInt64LE(BigInt(lamports), 4);
  return {
    programAddress: SYSTEM_PROGRAM,
    accounts: [
      { address: from, role: WRITABLE_SIGNER },
      { address: to, role: WRITABLE },
    ],
    data: Uint8Array.from(data),
  };
}

// Each returns [by, valid] or [by, valid, value], or a promise of it; an exception makes the answer "not valid".
const tasks = {
  // Ethereum's proof-of-possession suite; `proof` is the proof of possession of the public key.
  bls: ({ publicKey, message, signature, proof }) => {
    const key = bytes(publicKey);
    return [
      NOBLE,
      blsCheck(bytes(signature), bytes(message), SIGNATURE_SUITE, key) &&
        (proof === undefined || blsCheck(bytes(proof), key, PROOF_SUITE, key)),
    ];
  },
  ecdsa: ({ publicKey, digest, signature }) => [
    NOBLE,
    isSignature(bytes(publicKey), bytes(digest), bytes(signature)),
  ],
  // As RFC 8032 says, and not as lax as ZIP-215: no second encodings.
  ed25519: ({ publicKey, message, signature }) => [
    NOBLE,
    ed25519.verify(bytes(signature), bytes(message), bytes(publicKey), { zip215: false }),
  ],
  bip340: ({ publicKey, digest, signature }) => [
    NOBLE,
    schnorr.verify(bytes(signature), bytes(digest), bytes(publicKey)),
  ],
  // The Ethereum address of a descendant of an extended public key.
  'ethereum-address': ({ xpub, path }) => {
    const root = HDNodeWallet.fromExtendedKey(xpub);
    return [ETHERS, true, (path === '' ? root : root.derivePath(path)).address];
  },
  // The signer and a raw transaction, ready to be sent.
  'ethereum-transaction': ({ transaction }) => {
    const decoded = Transaction.from(`0x${transaction}`);
    return [ETHERS, decoded.isSigned(), decoded.from];
  },
  'ethereum-message': ({ message, signature, recoveryId }) => [
    ETHERS,
    true,
    verifyMessage(bytes(message), parts(signature, recoveryId)),
  ],
  // `typedData` is the JSON of eth_signTypedData_v4, as hex of its UTF-8.
  'ethereum-typed-data': ({ typedData, signature, recoveryId }) => {
    const { domain, types, message } = JSON.parse(Buffer.from(typedData, 'hex').toString('utf8'));
    const { EIP712Domain, ...others } = types;
    return [ETHERS, true, verifyTypedData(domain, others, message, parts(signature, recoveryId))];
  },
  // A wallet has this before it asks for a signature: a transfer on an Ethereum chain, in wei.
  'ethereum-draft': ({ chainId, nonce, to, value }) => [
    ETHERS,
    true,
    Transaction.from({
      type: 2,
      chainId,
      nonce,
      to,
      value,
      gasLimit: 21_000,
      maxFeePerGas: parseUnits('30', 'gwei'),
      maxPriorityFeePerGas: parseUnits('1', 'gwei'),
    }).unsignedSerialized.slice(2),
  ],
  // The same for Bitcoin: spends P2WPKH outputs of a key, `amount` satoshi each, and pays all but the fee.
  'bitcoin-draft': ({ publicKey, inputs, amount, to, fee }) => {
    const draft = new Psbt();
    const script = payments.p2wpkh({ pubkey: bytes(publicKey) }).output;
    for (let i = 0; i < Number(inputs); i++) {
      const witnessUtxo = { script, value: BigInt(amount) };
      // The transaction of each output proves its amount: a signature covers that of its own input only.
      const previous = new BitcoinTransaction();
      previous.addInput(new Uint8Array(32).fill(i + 1), i);
      previous.addOutput(script, BigInt(amount));
      const nonWitnessUtxo = previous.toBuffer();
      draft.addInput({ hash: previous.getId(), index: 0, witnessUtxo, nonWitnessUtxo });
    }
    const value = BigInt(inputs) * BigInt(amount) - BigInt(fee);
    return [BITCOINJS, true, draft.addOutput({ address: to, value }).toHex()];
  },
  // The final transaction, once every input's signature has been verified.
  'bitcoin-psbt': ({ psbt }) => {
    const decoded = Psbt.fromHex(psbt);
    const valid = decoded.validateSignaturesOfAllInputs(isBitcoinSignature);
    return [BITCOINJS, valid, decoded.finalizeAllInputs().extractTransaction().toHex()];
  },
  // The main net address of a descendant of an extended public key, for a spend by key path or by `script`.
  'taproot-address': (question) => [BITCOINJS, true, taprootOutput(question).address],
  // A wallet has this before it asks for signatures: as 'bitcoin-draft', of outputs of that address.
  'taproot-draft': ({ inputs, amount, to, fee, ...question }) => {
    const draft = new Psbt();
    const { output, internalPubkey, hash } = taprootOutput(question);
    for (let i = 0; i < Number(inputs); i++) {
      draft.addInput({
        hash: `${i + 1}`.padStart(64, '0'),
        index: i,
        witnessUtxo: { script: output, value: BigInt(amount) },
        tapInternalKey: internalPubkey,
        ...(hash && { tapMerkleRoot: hash }),
      });
    }
    const value = BigInt(inputs) * BigInt(amount) - BigInt(fee);
    return [BITCOINJS, true, draft.addOutput({ address: to, value }).toHex()];
  },
  // A wallet has this before it asks for a signature: the message of a transfer on Solana, legacy or version 0.
  'solana-draft': ({ version, from, to, lamports, blockhash }) => {
    const draft = compileTransactionMessage(
      appendTransactionMessageInstruction(
        transferOfLamports(address(from), address(to), lamports),
        setTransactionMessageLifetimeUsingBlockhash(
          { blockhash, lastValidBlockHeight: 0n },
          setTransactionMessageFeePayer(
            address(from),
            createTransactionMessage({ version: version === 'legacy' ? version : Number(version) })
          )
        )
      )
    );
    const message = getCompiledTransactionMessageEncoder().encode(draft);
    return [SOLANA, true, Buffer.from(message).toString('hex')];
  },
  // A transaction ready to be sent, every signature of which has been verified; the value is its fee payer.
  'solana-transaction': async ({ transaction }) => {
    const decoded = getTransactionDecoder().decode(bytes(transaction));
    assertIsFullySignedTransaction(decoded);
    const signatures = Object.entries(decoded.signatures);
    for (const [signer, signature] of signatures) {
      const key = await getPublicKeyFromAddress(signer);
      if (!(await verifySignature(key, signature, decoded.messageBytes))) return [SOLANA, false];
    }
    return [SOLANA, true, signatures[0][0]];
  },
};

export async function perform({ task, ...question }) {
  if (!Object.hasOwn(tasks, task)) throw new Error(`no task ${task}`);
  try {
    const [by, valid, value = ''] = await tasks[task](question);
    return { valid, by, value };
  } catch (error) {
    return { valid: false, by: 'nobody', value: '', error: error.message };
  }
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { error, ...answer } = await perform(JSON.parse(line));
    if (error !== undefined) console.error(`verifier: ${error}`);
    console.log(JSON.stringify(answer));
  }
}
