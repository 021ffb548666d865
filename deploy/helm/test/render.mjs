// Shared by the tests of the charts: the smallest values that each chart takes, and helm's objects out of them.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
const charts = path.join(root, "build/charts");
const helm = process.env.HELM || "helm";
export const pem = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
const image = { tag: "0123456789ab" };
export const minimal = {
  messaging: { image, database: { url: "jdbc:postgresql://db/messaging" } },
  coordinator: {
    image,
    database: { url: "jdbc:postgresql://db/coordinator" },
    channel: { number: "+15550000000", trustRoot: "AAAA" },
    requesters: [{ name: "treasury", publicKey: pem }],
    clients: [{ name: "backend", certificates: ["dns:backend"], submitFor: ["treasury"], readKeys: ["*"] }],
  },
  signer: {
    image,
    party: { name: "party-1", id: 1 },
    channel: { messaging: "https://messaging.coterie.svc:8443", number: "+15550000001", trustRoot: "AAAA" },
    requesters: [{ name: "treasury", publicKey: pem, keys: ["keys/*"], mayCreateKeys: true }],
  },
  edge: {},
};

/** A key and a certificate for itself, as a chart's Secret has them: tls.key, tls.crt, ca.crt. */
export function selfSigned(folder) {
  const subject = ["-nodes", "-subj", "/CN=edge"];
  const files = ["-keyout", `${folder}/tls.key`, "-out", `${folder}/tls.crt`];
  execFileSync(
    "openssl",
    ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", ...subject, ...files],
    { stdio: "pipe" },
  );
  copyFileSync(`${folder}/tls.crt`, `${folder}/ca.crt`);
}

export function helmTemplate(name, values) {
  const folder = mkdtempSync(path.join(tmpdir(), "charts-"));
  try {
    const file = path.join(folder, "values.json");
    writeFileSync(file, JSON.stringify(values));
    return spawnSync(
      helm,
      ["template", name, `${charts}/coterie-${name}-0.1.0.tgz`, "--namespace", "ns", "--values", file],
      { encoding: "utf8" },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const parseObjects = (text) =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter(Boolean);

export const one = (objects, kind) => {
  const found = objects.filter((object) => object.kind === kind);
  assert.equal(found.length, 1, `${found.length} of ${kind}`);
  return found[0];
};
export const workload = (objects) => objects.find((object) => ["Deployment", "StatefulSet"].includes(object.kind));
