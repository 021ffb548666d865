// The signed provenance of an image, and that nothing else is taken for it. The images here are of one layer, and the
// sources a repository of their own.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { LOCKS, signed, statementOf, verified } from "../provenance.mjs";

const images = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const program = path.join(images, "provenance.mjs");
const folder = mkdtempSync(path.join(tmpdir(), "provenance-"));
after(() => rmSync(folder, { recursive: true }));

function pair() {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return {
    private: privateKey.export({ type: "pkcs8", format: "pem" }),
    public: publicKey.export({ type: "spki", format: "pem" }),
  };
}

const sources = path.join(folder, "sources");
const git = (...command) =>
  execFileSync("git", ["-C", sources, "-c", "user.name=a", "-c", "user.email=a@example.org", ...command], {
    encoding: "utf8",
  }).trim();
mkdirSync(sources);
execFileSync("git", ["init", "-q", sources]);
for (const lock of LOCKS) {
  mkdirSync(path.dirname(path.join(sources, lock)), { recursive: true });
  writeFileSync(path.join(sources, lock), `list of ${lock}\n`);
}
cpSync(program, path.join(sources, "deploy/images/provenance.mjs"), { recursive: true });
writeFileSync(path.join(sources, ".gitignore"), "/build/\n");
git("add", "-A");
git("commit", "-q", "-m", "first");

function image(name, content) {
  const layer = path.join(folder, `${name}-layer`);
  mkdirSync(layer);
  writeFileSync(path.join(layer, "program"), content);
  const config = path.join(folder, `${name}.config`);
  writeFileSync(config, readFileSync(path.join(images, "config.json")));
  const archive = path.join(folder, `${name}.tar`);
  execFileSync(path.join(images, "pack"), ["localhost/test", archive, config, layer]);
  writeFileSync(path.join(folder, `${name}.source`), `${git("rev-parse", "HEAD")}\n`);
  return archive;
}

const key = pair();
const archive = image("signer", "program");
const envelope = signed(statementOf(archive, sources), key.private);

test("a signed image verifies, and names its commit and its lists", () => {
  const statement = verified(envelope, archive, key.public);
  const [source, ...locks] = statement.predicate.buildDefinition.resolvedDependencies;
  assert.equal(source.digest.gitCommit, git("rev-parse", "HEAD"));
  assert.equal(locks.length, LOCKS.length);
  assert.match(statement.subject[1].name, /^localhost\/test:/);
});

test("a statement has nothing that another build of the same commit and image could not have", () => {
  const { predicate } = statementOf(archive, sources);
  assert.deepEqual(Object.keys(predicate).sort(), ["buildDefinition", "runDetails"]);
  assert.deepEqual(Object.keys(predicate.runDetails), ["builder"]);
  assert.deepEqual(Object.keys(predicate.buildDefinition).sort(), [
    "buildType",
    "externalParameters",
    "resolvedDependencies",
  ]);
});

test("an image is signed as one of the commit that it was built of, and of no other", () => {
  const old = image("old", "old program");
  const record = path.join(folder, "old.source");
  const head = git("rev-parse", "HEAD");
  assert.equal(statementOf(old, sources).predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit, head);
  for (const [source, why] of [
    [`${"0".repeat(40)}\n`, /was built of 0{40} and not of/],
    // A source that was deleted and not committed makes nothing newer.
    [`${head}\n D services/Deleted.java\n`, /with changes/],
    ["unknown\n", /built of unknown/],
    ["", /not recorded/],
  ]) {
    writeFileSync(record, source);
    assert.throws(() => statementOf(old, sources), why);
  }
  rmSync(record);
  assert.throws(() => statementOf(old, sources), /not recorded/);
});

test("the lists that fix what an image is made of are named", () => {
  for (const list of [".ci/debian.lock", ".mvn/checksums/checksums.sha256", "services/mpc-core/Cargo.lock"]) {
    assert.ok(LOCKS.includes(list), list);
  }
  for (const list of LOCKS) assert.ok(existsSync(path.join(images, "../..", list)), list);
});

const otherStatement = () => {
  const payload = JSON.parse(Buffer.from(envelope.payload, "base64").toString());
  payload.predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit = "0".repeat(40);
  return { ...envelope, payload: Buffer.from(JSON.stringify(payload)).toString("base64") };
};
for (const [what, envelopeOf, archiveOf, keyOf, why] of [
  ["another image", () => envelope, () => image("other", "another program"), key, /another file/],
  ["another key", () => envelope, () => archive, pair(), /no signature/],
  ["another commit", otherStatement, () => archive, key, /no signature/],
  ["no signature", () => ({ ...envelope, signatures: [] }), () => archive, key, /no signature/],
  ["another type", () => ({ ...envelope, payloadType: "text/plain" }), () => archive, key, /not of type/],
  ["no envelope", () => null, () => archive, key, /not of type/],
  ["another statement of the key", () => signed({ _type: "x" }, key.private), () => archive, key, /no.* SLSA/],
]) {
  test(`${what} is refused`, () => assert.throws(() => verified(envelopeOf(), archiveOf(), keyOf.public), why));
}

test("a key of another kind is refused", () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = privateKey.export({ type: "pkcs8", format: "pem" });
  assert.throws(() => signed({}, pem), /not an Ed25519 key/);
});

test("the command signs what was built and verifies it, and signs no sources that differ from the commit", () => {
  mkdirSync(path.join(sources, "build/images"), { recursive: true });
  cpSync(archive, path.join(sources, "build/images/signer.tar"));
  cpSync(archive.replace(/tar$/, "source"), path.join(sources, "build/images/signer.source"));
  writeFileSync(path.join(folder, "key.pem"), key.private);
  writeFileSync(path.join(folder, "public.pem"), key.public);
  const run = (...command) =>
    execFileSync(process.execPath, [path.join(sources, "deploy/images/provenance.mjs"), ...command], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  run("sign", path.join(folder, "key.pem"), "signer");
  const built = path.join(sources, "build/images/signer");
  const said = run("verify", path.join(folder, "public.pem"), `${built}.tar`, `${built}.intoto.json`);
  assert.match(said, new RegExp(git("rev-parse", "HEAD")));
  writeFileSync(`${built}.tar`, readFileSync(image("later", "later program")));
  assert.throws(() => run("verify", path.join(folder, "public.pem"), `${built}.tar`, `${built}.intoto.json`), /another file/);
  for (const [name, content] of [["Untracked.java", "class Untracked {}\n"], [LOCKS[0], "changed\n"]]) {
    const file = path.join(sources, name);
    const before = existsSync(file) ? readFileSync(file) : undefined;
    writeFileSync(file, content);
    assert.throws(() => run("sign", path.join(folder, "key.pem"), "signer"), /differ from the commit/, name);
    if (before === undefined) rmSync(file);
    else writeFileSync(file, before);
  }
  assert.throws(() => run("sign"), /usage/);
});
