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

/** Makes an archive with one package, and an apt-get that copies it. */
const archive = (folder) => {
  mkdirSync(join(folder, "package/DEBIAN"), { recursive: true });
  writeFileSync(
    join(folder, "package/DEBIAN/control"),
    "Package: a\nVersion: 1.0-1\nArchitecture: all\nMaintainer: m <m@example.org>\nDescription: d\n",
  );
  execFileSync("dpkg-deb", ["-b", join(folder, "package"), join(folder, "a_1.0-1_all.deb")], { stdio: "pipe" });
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "bin/apt-get"), `#!/bin/sh\ncp ${folder}/a_1.0-1_all.deb .\n`, { mode: 0o755 });
};

test("Debian's packages are taken by version and hash", () => {
  const folder = mkdtempSync(join(tmpdir(), "debian-"));
  try {
    // The script stands beside a lock of its own.
    archive(folder);
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
    // One that lies there already is looked at as if it had just come: with its hash it stays, else it is fetched anew.
    download(`a 1.0-1 all ${hash}\n`);
    writeFileSync(join(folder, "bin/apt-get"), "#!/bin/sh\necho asked >&2; exit 1\n", { mode: 0o755 });
    assert.equal(download(`a 1.0-1 all ${hash}\n`).status, 0);
    for (const lock of [`a 1.0-1 all ${"0".repeat(64)}\n`, `a 1.0-0 all ${hash}\n`]) {
      writeFileSync(join(folder, "out/a_1.0-1_all.deb"), readFileSync(join(folder, "a_1.0-1_all.deb")));
      const old = download(lock);
      assert.notEqual(old.status, 0);
      assert.match(old.stderr, /asked/);
      assert.equal(old.kept, false);
    }
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

test("images tell of a package that the lock does not have, and take one from an earlier build by the lock too", () => {
  const script = readFileSync(join(root, "deploy/images/build"), "utf8");
  const [takes] = /^debian\(\) \{.*?^\}$/ms.exec(script);
  const folder = mkdtempSync(join(tmpdir(), "images-"));
  try {
    mkdirSync(join(folder, ".ci"));
    archive(folder);
    copyFileSync(join(root, ".ci/debian-download"), join(folder, ".ci/debian-download"));
    writeFileSync(join(folder, ".ci/debian.lock"), "");
    const take = (more) =>
      spawnSync("bash", ["-c", `set -euo pipefail; need() { :; }; images=$PWD\n${takes}\ndebian out a`], {
        cwd: folder,
        env: { ...process.env, ...more, PATH: `${folder}/bin:${process.env.PATH}` },
        encoding: "utf8",
      });
    for (let build = 0; build < 2; build++) {
      const told = take({});
      assert.equal(told.status, 0, told.stderr);
      assert.match(told.stderr, /a 1\.0-1 is not in \.ci\/debian\.lock/);
    }
    assert.notEqual(take({ DEBIAN_LOCKED: "1" }).status, 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
  // The base of an earlier build counts only for the same lock, and make shows what its log would hide.
  assert.match(script, /^ {2}stamp="\$\{packages\[\*\]\} \$\(locked\)"$/m);
  const makefile = readFileSync(join(root, "Makefile"), "utf8");
  assert.match(makefile, /^UNLOCKED = is not in \\\.ci\/debian\\\.lock\$\$$/m);
  for (const [, shown] of makefile.matchAll(/STEP_SHOW='([^']*)'[^@]*?deploy\/images\/build/g))
    assert.match(shown, /\$\(UNLOCKED\)$/);
});

test("a package that the lock does not have is named by each build, also where an earlier one took it", () => {
  const script = readFileSync(join(root, "deploy/images/build"), "utf8");
  const [functions] = /^say\(\) .*?^(?=runtime\(\) )/ms.exec(script);
  const folder = mkdtempSync(join(tmpdir(), "base-"));
  try {
    for (const part of [".ci", "bin"]) mkdirSync(join(folder, part));
    const lines = [];
    for (const name of ["base-files", "libc6", "libgcc-s1", "libstdc++6", "coreutils"]) {
      const about = `Package: ${name}\nVersion: 1.0-1\nArchitecture: all\nMaintainer: m <m@example.org>\nDescription: d\n`;
      for (const part of ["DEBIAN", "bin", "etc"]) mkdirSync(join(folder, name, part), { recursive: true });
      writeFileSync(join(folder, name, "DEBIAN/control"), about);
      writeFileSync(join(folder, name, "bin/cat"), "");
      const deb = join(folder, `${name}_1.0-1_all.deb`);
      execFileSync("dpkg-deb", ["-b", join(folder, name), deb], { stdio: "pipe" });
      const hash = createHash("sha256").update(readFileSync(deb)).digest("hex");
      lines.push(`${name} ${name === "libc6" ? "1.0-0" : "1.0-1"} all ${hash}\n`);
    }
    writeFileSync(join(folder, "bin/apt-get"), `#!/bin/sh\ncp ${folder}/$3_1.0-1_all.deb .\n`, { mode: 0o755 });
    copyFileSync(join(root, ".ci/debian-download"), join(folder, ".ci/debian-download"));
    writeFileSync(join(folder, ".ci/debian.lock"), lines.join(""));
    const command = `set -euo pipefail; uid=1 images=$PWD/images\n${functions}\nbase`;
    const env = { ...process.env, PATH: `${folder}/bin:${process.env.PATH}`, DEBIAN_LOCKED: "" };
    for (let build = 0; build < 2; build++) {
      const told = spawnSync("bash", ["-c", command], { cwd: folder, env, encoding: "utf8" });
      assert.equal(told.status, 0, told.stderr);
      assert.equal(told.stderr, "libc6 1.0-1 is not in .ci/debian.lock\n", `build ${build}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("Go's modules are taken by hash, whatever a proxy or a checksum database says", () => {
  for (const [name, module] of [
    ["helm", "helm.sh/helm/v4"],
    ["k6", "go.k6.io/k6"],
  ]) {
    const required = readFileSync(join(root, ".ci/go", name, "go.mod"), "utf8");
    assert.doesNotMatch(required, /^replace/m);
    const version = new RegExp(`^\\t${module} (v\\S+)`, "m").exec(required)[1];
    const hashes = readFileSync(join(root, ".ci/go", name, "go.sum"), "utf8").trim().split("\n");
    for (const line of hashes) assert.match(line, /^\S+ v\S+ h1:[A-Za-z0-9+/]{43}=$/);
    assert.ok(hashes.some((line) => line.startsWith(`${module} ${version} h1:`)));
    const script = readFileSync(join(root, ".ci", name), "utf8");
    assert.match(script, new RegExp(`^.*\\.ci/go-build ${name} ${module}`, "m"));
  }
  // A caller's settings count for nothing.
  const folder = mkdtempSync(join(tmpdir(), "go-"));
  try {
    for (const part of [".ci/go/tool", "bin"]) mkdirSync(join(folder, part), { recursive: true });
    copyFileSync(join(root, ".ci/go-build"), join(folder, ".ci/go-build"));
    writeFileSync(join(folder, "bin/go"), '#!/bin/sh\necho "$GOFLAGS $GOTOOLCHAIN $*" >"$GO_SAID"\n', { mode: 0o755 });
    const said = join(folder, "said");
    const mine = { GO_SAID: said, GOFLAGS: "-mod=mod", GOTOOLCHAIN: "auto" };
    const env = { ...process.env, ...mine, PATH: `${folder}/bin:${process.env.PATH}` };
    spawnSync(join(folder, ".ci/go-build"), ["tool", "example.org/tool", "out"], { env, encoding: "utf8" });
    assert.match(readFileSync(said, "utf8"), /^-mod=readonly local build -C \.ci\/go\/tool /);
  } finally {
    rmSync(folder, { recursive: true });
  }
  for (const script of readdirSync(join(root, ".ci"), { withFileTypes: true }).filter((entry) => entry.isFile()))
    assert.doesNotMatch(readFileSync(join(root, ".ci", script.name), "utf8"), /\bgo (install|run)\b/, script.name);
});

test("no image is built by a Maven without hashes", () => {
  const script = readFileSync(join(root, "deploy/images/build"), "utf8");
  const [, run] = /\|\| (\S+\$?\{MAVEN[^}]*\}) /.exec(script);
  assert.notEqual(spawnSync("bash", ["-c", `unset MAVEN; : ${run}`], { encoding: "utf8" }).status, 0);
  const dockerfile = readFileSync(join(root, "deploy/images/Dockerfile"), "utf8");
  const commands = dockerfile.split("\n").filter((line) => /^RUN /.test(line) && !/command -v/.test(line));
  for (const line of commands) assert.doesNotMatch(line, /\bmvn\b|deploy\/images\/build/);
  assert.match(dockerfile, /^RUN make image-layers "SERVICE=\$SERVICE"$/m);
  assert.match(
    readFileSync(join(root, "Makefile"), "utf8"),
    /^image-layers: .*\n\t.*MAVEN='\$\(MAVEN\)'.*\\\n\t +deploy\/images\/build --stage /m,
  );
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
