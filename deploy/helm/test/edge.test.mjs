// The answers of Envoy itself, with the chart's configuration and no coordinator behind it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import https from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { helmTemplate, one, parseObjects, root, selfSigned } from "./render.mjs";

const envoy = path.join(root, "build/tools/bin/envoy");
const skip = existsSync(envoy) ? false : "no Envoy here: .ci/envoy needs python3 with pip";
const reasons = readFileSync(path.join(root, "docs/reference/errors.md"), "utf8");
let folder;
let process;
let port;
let managementPort;
const password = "a password of some length";

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port: free } = server.address();
      server.close(() => resolve(free));
    });
  });

function ask(method, target, body, headers = {}, at = port) {
  return new Promise((resolve, reject) => {
    const tls = {
      cert: readFileSync(`${folder}/tls.crt`),
      key: readFileSync(`${folder}/tls.key`),
      rejectUnauthorized: false,
    };
    const request = https.request({ host: "127.0.0.1", port: at, method, path: target, headers, ...tls }, (response) => {
      let text = "";
      response
        .on("data", (chunk) => (text += chunk))
        .on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    request.on("error", reject).end(body);
  });
}

/** The answer is a google.rpc.Status with one ErrorInfo of a reason that the reference has. */
function assertError(answer, status, code, reason) {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers["content-type"], "application/json");
  const error = JSON.parse(answer.text);
  assert.equal(error.code, code);
  assert.ok(error.message.length > 0);
  assert.deepEqual(error.details, [
    { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "coterie.io" },
  ]);
  assert.ok(reasons.includes(`| \`${reason}\` |`), `${reason} is not in docs/reference/errors.md`);
}

before(async () => {
  if (skip) return;
  folder = mkdtempSync(path.join(tmpdir(), "edge-"));
  selfSigned(folder);
  const hash = createHash("sha1").update(password).digest("base64");
  writeFileSync(`${folder}/users`, `metrics:{SHA}${hash}\n`);
  const rendered = helmTemplate("edge", {
    coordinator: { host: "localhost" },
    messaging: { host: "localhost" },
    limits: { requestsPerSecond: 1, burst: 8 },
  });
  const map = one(parseObjects(rendered.stdout), "ConfigMap");
  writeFileSync(`${folder}/custody.protoset`, Buffer.from(map.binaryData["custody.protoset"], "base64"));
  let text = map.data["envoy.yaml"]
    .replaceAll("/etc/envoy-tls/", `${folder}/`)
    .replaceAll("/etc/envoy-metrics/", `${folder}/`)
    .replaceAll("/etc/envoy/", `${folder}/`)
    .replaceAll("0.0.0.0", "127.0.0.1");
  port = await freePort();
  managementPort = await freePort();
  for (const [fixed, free] of [
    [8443, port],
    [8444, await freePort()],
    [9443, managementPort],
    [9901, await freePort()],
    [9090, await freePort()],
  ]) {
    text = text.replaceAll(`port_value: ${fixed}`, `port_value: ${free}`);
  }
  writeFileSync(`${folder}/envoy.yaml`, text);
  process = spawn(
    envoy,
    ["-c", `${folder}/envoy.yaml`, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "error"],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  // The access log, which nobody reads here.
  process.stdout.resume();
  for (let waited = 0; ; waited += 100) {
    try {
      await ask("GET", "/ready");
      break;
    } catch (error) {
      if (waited > 60_000) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
});

after(() => {
  process?.kill();
  if (folder) rmSync(folder, { recursive: true });
});

test("edge: its own errors are JSON with a reason, and say when to come back", { skip }, async () => {
  assertError(await ask("GET", "/v2/nothing"), 404, 5, "PATH_UNKNOWN");
  const json = { "content-type": "application/json" };
  assertError(
    await ask("POST", "/v1/keys", JSON.stringify({ signedIntent: { payload: "*not base64*" } }), json),
    400,
    3,
    "REQUEST_MALFORMED",
  );
  assertError(await ask("GET", "/v1/keys?nonsense=1"), 400, 3, "REQUEST_MALFORMED");
  const gone = await ask("GET", "/v1/keys");
  assertError(gone, 503, 14, "COORDINATOR_UNREACHABLE");
  assert.equal(gone.headers["retry-after"], "1");
  let limited;
  for (let i = 0; i < 60 && limited?.status !== 429; i++) limited = await ask("GET", "/v1/keys?nonsense=1");
  assertError(limited, 429, 8, "OVERLOADED");
  assert.equal(limited.headers["retry-after"], "1");
});

test("edge: readiness is for everybody, metrics are for whoever has the password", { skip }, async () => {
  const get = (target, user) =>
    ask("GET", target, undefined, user ? { authorization: `Basic ${btoa(user)}` } : {}, managementPort);
  assert.equal((await get("/ready")).status, 200);
  for (const nobody of [undefined, "metrics:", "metrics:wrong", `root:${password}`]) {
    const refused = await get("/stats/prometheus", nobody);
    assert.equal(refused.status, 401);
    assert.doesNotMatch(refused.text, /envoy_/);
    for (const other of ["/ready/", "/config_dump"]) assert.equal((await get(other, nobody)).status, 401);
  }
  const metrics = await get("/stats/prometheus", `metrics:${password}`);
  assert.equal(metrics.status, 200);
  assert.match(metrics.text, /envoy_http_downstream_rq_total/);
  assert.equal((await get("/config_dump", `metrics:${password}`)).status, 404);
});
