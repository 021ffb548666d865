// node deploy/images/provenance.mjs sign KEY.pem NAME...: signs what build/images/NAME.tar was built from. Writes
// build/images/NAME.intoto.json, a DSSE envelope (Ed25519) around an in-toto statement with a SLSA provenance.
// node deploy/images/provenance.mjs verify PUBLIC.pem NAME.tar NAME.intoto.json: whether the key has signed that this
// very file is an image, and what it was built from; exit status 1 if not.
//
// The statement names the file and the image inside it (by the digest that registries give it and charts can pin), the
// commit, and the lists that fix every dependency. It has no time: the same commit and image give the same statement. A
// build of files that no commit has is not signed, nor an image that was built of another commit: NAME.source beside it
// says of which, as the build left it.
import { execFileSync } from "node:child_process";
import { createHash, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const PAYLOAD_TYPE = "application/vnd.in-toto+json";
const STATEMENT = "https://in-toto.io/Statement/v1";
const PREDICATE = "https://slsa.dev/provenance/v1";
const BUILD_TYPE = "https://github.com/coterie/coterie/deploy/images/build";
const SOURCE = "git+https://github.com/coterie/coterie";
/** Together they fix versions and hashes of all that images are made of; those of pom.xml are in the checksums. */
export const LOCKS = [
  ".ci/debian.lock",
  ".mvn/checksums/checksums.sha256",
  "deploy/envoy/requirements.txt",
  "pom.xml",
  "services/mpc-core/Cargo.lock",
  "services/mpc-core/rust-toolchain.toml",
];

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** The bytes that DSSE signs: the type and the payload, each with its length. */
function preAuthentication(payload) {
  return Buffer.concat([Buffer.from(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `), payload]);
}

const keyId = (key) => sha256(createPublicKey(key).export({ type: "spki", format: "der" }));

function ed25519(key) {
  if (key.asymmetricKeyType !== "ed25519") throw new Error("the key is not an Ed25519 key");
  return key;
}

/** The image in a file that `deploy/images/pack` wrote: its name, and the digest that registries and charts know. */
function imageOf(archive) {
  const index = JSON.parse(execFileSync("tar", ["-xOf", archive, "./index.json"], { encoding: "utf8" }));
  const [manifest, ...others] = index.manifests;
  if (manifest === undefined || others.length > 0) throw new Error(`${archive} does not hold one image`);
  return {
    name: manifest.annotations["io.containerd.image.name"],
    digest: manifest.digest.replace(/^sha256:/, ""),
  };
}

/**
 * @param {string} archive the file of the image, with the record of its sources beside it
 * @param {string} root folder of the sources, a git repository without changes
 * @returns {object} the in-toto statement
 */
export function statementOf(archive, root) {
  const git = (...command) => execFileSync("git", ["-C", root, ...command], { encoding: "utf8" }).trim();
  if (git("status", "--porcelain") !== "") {
    throw new Error("the sources differ from the commit: commit them, build the images again, and sign those");
  }
  const commit = git("rev-parse", "HEAD");
  const record = archive.replace(/\.tar$/, ".source");
  const [of, ...changed] = existsSync(record) ? readFileSync(record, "utf8").trim().split("\n") : [""];
  if (of !== commit || changed.length > 0) {
    const other = changed.length > 0 ? `${of} with changes` : of || "sources that were not recorded";
    throw new Error(`${archive} was built of ${other} and not of ${commit}: make clean, and build the images again`);
  }
  const image = imageOf(archive);
  return {
    _type: STATEMENT,
    subject: [
      { name: path.basename(archive), digest: { sha256: sha256(readFileSync(archive)) } },
      { name: image.name, digest: { sha256: image.digest } },
    ],
    predicateType: PREDICATE,
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: { image: path.basename(archive, ".tar") },
        resolvedDependencies: [
          { uri: SOURCE, digest: { gitCommit: commit } },
          ...LOCKS.map((lock) => ({ uri: `${SOURCE}#${lock}`, digest: { sha256: sha256(git("show", `HEAD:${lock}`)) } })),
        ],
      },
      runDetails: { builder: { id: BUILD_TYPE } },
    },
  };
}

/** @returns {object} the DSSE envelope of a statement */
export function signed(statement, privatePem) {
  const key = ed25519(createPrivateKey(privatePem));
  const payload = Buffer.from(JSON.stringify(statement));
  const sig = sign(null, preAuthentication(payload), key).toString("base64");
  return { payloadType: PAYLOAD_TYPE, payload: payload.toString("base64"), signatures: [{ keyid: keyId(key), sig }] };
}

/**
 * @returns {object} the statement, once its signature and its subjects are those of the file
 * @throws {Error} that names the difference
 */
export function verified(envelope, archive, publicPem) {
  const key = ed25519(createPublicKey(publicPem));
  if (envelope?.payloadType !== PAYLOAD_TYPE) throw new Error(`the envelope is not of type ${PAYLOAD_TYPE}`);
  const payload = Buffer.from(String(envelope.payload), "base64");
  const genuine = (envelope.signatures ?? []).some((one) =>
    verify(null, preAuthentication(payload), key, Buffer.from(String(one.sig), "base64")),
  );
  if (!genuine) throw new Error("no signature of the envelope is of this key");
  const statement = JSON.parse(payload.toString("utf8"));
  if (statement._type !== STATEMENT || statement.predicateType !== PREDICATE) {
    throw new Error("the statement is not a SLSA provenance");
  }
  const image = imageOf(archive);
  const expected = [sha256(readFileSync(archive)), image.digest];
  const said = (statement.subject ?? []).map((subject) => subject.digest?.sha256);
  if (said.length !== expected.length || said.some((digest, at) => digest !== expected[at])) {
    throw new Error(`the statement is about another file than ${archive}`);
  }
  return statement;
}

function main([command, key, ...rest]) {
  const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
  if (command === "sign" && rest.length > 0) {
    for (const name of rest) {
      const archive = path.join(root, "build/images", `${name}.tar`);
      const envelope = signed(statementOf(archive, root), readFileSync(key));
      writeFileSync(archive.replace(/\.tar$/, ".intoto.json"), `${JSON.stringify(envelope)}\n`);
      console.log(`  signed build/images/${name}.tar`);
    }
  } else if (command === "verify" && rest.length === 2) {
    const statement = verified(JSON.parse(readFileSync(rest[1], "utf8")), rest[0], readFileSync(key));
    const [source] = statement.predicate.buildDefinition.resolvedDependencies;
    console.log(`${statement.subject[1].name} was built of commit ${source.digest.gitCommit}, says the key`);
  } else {
    throw new Error("usage: provenance.mjs sign KEY.pem NAME... | verify PUBLIC.pem NAME.tar NAME.intoto.json");
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
