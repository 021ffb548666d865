// The scripts that pack and describe the images, and the Dockerfile; nothing here builds an image. The build of an
// image fails by itself if the image is too large, its class cache does not fit its files, or its bill of materials
// lacks a jar.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import Ajv from "ajv";
import addFormats from "ajv-formats";
import addMoreFormats from "ajv-formats-draft2019";
import dockerfile from "dockerfile-ast";
import { validate } from "dockerfile-utils";
import { billOfMaterials, jarName, parsePackage, readCrates } from "../sbom.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const images = path.resolve(here, "..");
const root = path.resolve(here, "../../..");
const read = (...parts) => readFileSync(path.join(...parts), "utf8");
const config = JSON.parse(read(images, "config.json"));

function inFolder(use) {
  const folder = mkdtempSync(path.join(tmpdir(), "images-"));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Packs layers of one file each; `derived` is the content of a layer after `--`. */
function pack(folder, name, application, derived) {
  const layer = (what, content) => {
    const place = path.join(folder, name, what);
    mkdirSync(place, { recursive: true });
    if (content !== undefined) writeFileSync(path.join(place, what), content);
    return place;
  };
  writeFileSync(path.join(folder, "config"), JSON.stringify(config));
  const out = path.join(folder, `${name}.tar`);
  const layers = [layer("base", "base"), layer("application", application), "--", layer("cache", derived)];
  const tag = execFileSync(path.join(images, "pack"), ["localhost/test", out, path.join(folder, "config"), ...layers], {
    encoding: "utf8",
  }).trim();
  return { tag, bytes: readFileSync(out), out };
}

test("the same layers give the same file and tag", () =>
  inFolder((folder) => {
    const one = pack(folder, "one", "program", "cache");
    const other = pack(folder, "other", "program", "cache");
    assert.match(one.tag, /^localhost\/test:[0-9a-f]{12}$/);
    assert.equal(one.tag, other.tag);
    assert.ok(one.bytes.equals(other.bytes));
  }));

test("the tag follows the program, and of the class cache only whether there is one", () =>
  inFolder((folder) => {
    const one = pack(folder, "one", "program", "cache");
    const recordedAgain = pack(folder, "again", "program", "other bytes");
    assert.equal(recordedAgain.tag, one.tag);
    assert.ok(!recordedAgain.bytes.equals(one.bytes));
    assert.notEqual(pack(folder, "without", "program").tag, one.tag);
    assert.notEqual(pack(folder, "changed", "another program", "cache").tag, one.tag);
  }));

test("the cache's layer is in the image, last", () =>
  inFolder((folder) => {
    const { out } = pack(folder, "one", "program", "cache");
    const [manifest] = JSON.parse(execFileSync("tar", ["-xOf", out, "./manifest.json"], { encoding: "utf8" }));
    const content = manifest.Layers.map((layer) =>
      execFileSync("tar", ["-t"], { input: execFileSync("tar", ["-xOf", out, `./${layer}`]), encoding: "utf8" })
        .trim()
        .split("\n")
        .at(-1),
    );
    assert.deepEqual(content, ["./base", "./application", "./cache"]);
  }));

const require = createRequire(import.meta.url);
const schemas = path.join(path.dirname(require.resolve("@cyclonedx/cyclonedx-library/package.json")), "res/schema");
const ajv = new Ajv({ strict: false, validateFormats: true, addUsedSchema: false });
addFormats(ajv);
addMoreFormats(ajv);
for (const name of ["spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json"]) {
  const { $id, ...schema } = JSON.parse(read(schemas, name));
  ajv.addSchema(schema, `http://cyclonedx.org/schema/${name}`);
}
const valid = ajv.compile(JSON.parse(read(schemas, "bom-1.6.SNAPSHOT.schema.json")));
function assertValid(bill) {
  assert.ok(valid(bill), JSON.stringify(valid.errors, null, 1));
  const refs = bill.components.map((component) => component["bom-ref"]);
  assert.equal(new Set(refs).size, refs.length);
  const known = new Set([...refs, bill.metadata.component["bom-ref"]]);
  for (const { ref, dependsOn } of bill.dependencies)
    for (const one of [ref, ...dependsOn]) assert.ok(known.has(one), one);
}

const maven = (group, name, version, more = {}) => ({
  type: "library",
  "bom-ref": `pkg:maven/${group}/${name}@${version}?type=jar`,
  group,
  name,
  version,
  purl: `pkg:maven/${group}/${name}@${version}?type=jar`,
  ...more,
});
const file = (place) => ({ path: `/opt/coterie/${place}`, sha256: "ab".repeat(32) });
function known() {
  const service = maven("io.coterie", "signer", "1.0", { licenses: [] });
  const core = maven("io.coterie", "mpc-native", "1.0");
  const spring = maven("org.springframework", "spring-core", "7.0.8", {
    licenses: [{ license: { id: "Apache-2.0" } }],
  });
  return {
    service: "signer",
    files: [
      file("app/signer-1.0.jar"),
      file("app/mpc-native-1.0.jar"),
      file("lib/spring-core-7.0.8.jar"),
      file("native/libcoterie_mpc.so"),
    ],
    origins: { "libcoterie_mpc.so": "mpc-native-1.0.jar" },
    maven: {
      metadata: { component: service },
      components: [spring, core],
      dependencies: [{ ref: service["bom-ref"], dependsOn: [spring["bom-ref"], core["bom-ref"]] }],
    },
    crates: readCrates(
      "0|abi v0.1.0 (/src/abi)|AGPL-3.0-only\n1|engine v0.1.0 (/src/engine)|AGPL-3.0-only\n" +
        "2|blst v0.3.17|MIT/Apache-2.0\n1|blst v0.3.17|MIT/Apache-2.0 (*)\n",
      `[[package]]\nname = "blst"\nversion = "0.3.17"\nsource = "registry"\nchecksum = "${"cd".repeat(32)}"\n`,
    ),
    packages: [
      parsePackage(
        "Package: libgcc-s1\nSource: gcc-12 (12.2.0)\nVersion: 12.2.0-14+deb12u1\nArchitecture: amd64\n" +
          "Maintainer: Debian GCC Maintainers <gcc@example>\nDescription: one\n more\n",
      ),
    ],
    os: { ID: "debian", VERSION_ID: "12", PRETTY_NAME: "Debian GNU/Linux 12" },
    java: { IMPLEMENTOR: "Eclipse Adoptium", JAVA_RUNTIME_VERSION: "25.0.3+9-LTS", JAVA_VERSION: "25.0.3" },
  };
}

test("a bill of materials is valid, and says where each thing lies and what it needs", () => {
  const bill = billOfMaterials(known());
  assertValid(bill);
  const component = (name) => bill.components.find((one) => one.name === name);
  const needs = (ref) => bill.dependencies.find((one) => one.ref === ref).dependsOn;
  assert.deepEqual(component("mpc-native").evidence.occurrences, [
    { location: "/opt/coterie/app/mpc-native-1.0.jar" },
    { location: "/opt/coterie/native/libcoterie_mpc.so" },
  ]);
  assert.deepEqual(needs(component("mpc-native")["bom-ref"]), ["cargo:abi@0.1.0"]);
  assert.deepEqual(needs("cargo:abi@0.1.0"), ["cargo:blst@0.3.17", "cargo:engine@0.1.0"]);
  assert.equal(component("blst").purl, "pkg:cargo/blst@0.3.17");
  assert.equal(component("blst").hashes[0].content, "cd".repeat(32));
  assert.deepEqual(component("blst").licenses, [{ expression: "MIT OR Apache-2.0" }]);
  assert.equal(component("engine").purl, undefined);
  assert.equal(
    component("libgcc-s1").purl,
    "pkg:deb/debian/libgcc-s1@12.2.0-14%2Bdeb12u1?arch=amd64&distro=debian-12&upstream=gcc-12",
  );
  assert.deepEqual(bill, billOfMaterials(known()));
});

test("what the image has and nobody knows, or Maven has and the image lacks, is an error", () => {
  const more = known();
  more.files.push(file("lib/stowaway-1.jar"));
  assert.throws(() => billOfMaterials(more), /stowaway-1\.jar/);
  const library = known();
  library.files.push(file("native/libstowaway.so"));
  assert.throws(() => billOfMaterials(library), /libstowaway\.so/);
  const fewer = known();
  fewer.files = fewer.files.filter((one) => !one.path.includes("spring"));
  assert.throws(() => billOfMaterials(fewer), /spring-core-7\.0\.8\.jar/);
});

test("a jar's name has its classifier", () => {
  assert.equal(
    jarName({ name: "netty", version: "4.2", purl: "pkg:maven/io.netty/netty@4.2?classifier=linux-x86_64&type=jar" }),
    "netty-4.2-linux-x86_64.jar",
  );
});

for (const service of ["messaging", "coordinator", "signer"]) {
  const built = path.join(root, `build/images/${service}.cdx.json`);
  test(
    `the bill of materials of ${service}, as it was built, is valid`,
    { skip: !existsSync(built) && "no image was built" },
    () => {
      assertValid(JSON.parse(read(built)));
    },
  );
}

const stages = (text) => {
  const all = [];
  for (const line of dockerfile.DockerfileParser.parse(text).getInstructions()) {
    if (line.getKeyword() === "FROM") all.push([]);
    else all.at(-1)?.push(line);
  }
  return all;
};

test("the Dockerfile gives what the script packs: the same layers and the same configuration", () => {
  const text = read(images, "Dockerfile");
  assert.deepEqual(validate(text), []);
  const last = stages(text).at(-1);
  const ofKind = (keyword) =>
    last.filter((line) => line.getKeyword() === keyword).map((line) => line.getRawArgumentsContent());
  assert.deepEqual(ofKind("USER"), [config.User]);
  assert.deepEqual(ofKind("WORKDIR"), [config.WorkingDir]);
  assert.deepEqual(ofKind("ENV").join(" ").split(" "), config.Env);
  assert.deepEqual(JSON.parse(ofKind("ENTRYPOINT")[0]), config.Entrypoint);
  const labels = Object.entries(config.Labels).map(
    ([key, value]) => `${key}=${value.replace("SERVICE", "${SERVICE}")}`,
  );
  assert.deepEqual(ofKind("LABEL").join(" ").split(" "), labels);
  const packed = /^ *finish "\$service" (.*)$/m
    .exec(read(images, "build"))[1]
    .replace("-- ", "")
    .replaceAll('"', "")
    .replaceAll("$images/", "")
    .replaceAll("$folder", "${SERVICE}")
    .split(" ");
  const copies = last.filter((line) => line.getKeyword() === "COPY").map((line) => line.getTextContent());
  const copied = copies.map((line) => /^COPY --from=build \/src\/build\/images\/(.*)\/ \/$/.exec(line)?.[1] ?? line);
  assert.deepEqual(copied, packed);
  assert.equal(last.filter((line) => line.getKeyword() === "RUN").length, 0);
});
