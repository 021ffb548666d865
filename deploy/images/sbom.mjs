// node deploy/images/sbom.mjs SERVICE MAVEN-BOM: the bill of materials (CycloneDX 1.6, JSON) of a service's image whose
// layers deploy/images/build has laid out in build/images; written to standard output.
//
// The list has what lies in the image, with the hash it has there: Maven's list (cyclonedx-maven-plugin) says what a
// jar is and needs, cargo what the core is linked of, dpkg's records what the base has. A jar or library that none of
// them knows is an error, and so is a jar that Maven lists and the image lacks. No time and no serial number: the same
// image gives the same file.
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const PROJECT_LICENSE = [{ license: { id: "AGPL-3.0-only" } }];
const HOME = "/opt/coterie/";
const CORE = "libcoterie_mpc.so";

/**
 * @param {object} from
 *   service: name;
 *   files: [{path: in the image, sha256}], everything below /opt/coterie that is code;
 *   origins: {native library: name of the jar it was taken from};
 *   maven: the service's list as a CycloneDX object;
 *   crates: of readCrates; packages: of parsePackage; os: {ID, VERSION_ID, PRETTY_NAME}; java: {IMPLEMENTOR,
 *   JAVA_RUNTIME_VERSION, JAVA_VERSION}
 * @returns {object} the bill of materials
 */
export function billOfMaterials({ service, files, origins, maven, crates, packages, os, java }) {
  const occurrences = new Map(); // jar's name -> files of the image
  const put = (jar, file) => occurrences.set(jar, [...(occurrences.get(jar) ?? []), file]);
  for (const file of files) {
    const name = path.posix.basename(file.path);
    if (name.endsWith(".jar")) put(name, file);
    else if (name in origins) put(origins[name], file);
    else throw new Error(`nobody knows where ${file.path} comes from`);
  }
  const components = [];
  const dependencies = new Map();
  const depend = (ref, on) => dependencies.set(ref, [...new Set([...(dependencies.get(ref) ?? []), ...on])].sort());

  const listed = [maven.metadata.component, ...maven.components];
  for (const entry of listed) {
    const jar = jarName(entry);
    const found = occurrences.get(jar);
    if (!found) throw new Error(`${jar} is in Maven's list and not in the image`);
    occurrences.delete(jar);
    const own = entry.group === "io.coterie";
    components.push({
      type: entry === maven.metadata.component ? "application" : "library",
      "bom-ref": entry["bom-ref"],
      group: entry.group,
      name: entry.name,
      version: entry.version,
      hashes: [sha256(found.find((file) => file.path.endsWith(".jar")))],
      licenses: own ? PROJECT_LICENSE : entry.licenses,
      purl: entry.purl,
      evidence: at(found),
    });
    if (own && found.some((file) => file.path.endsWith(CORE))) depend(entry["bom-ref"], [crates[0].ref]);
  }
  if (occurrences.size) throw new Error(`not in Maven's list: ${[...occurrences.keys()].join(", ")}`);
  const known = new Set(components.map((component) => component["bom-ref"]));
  for (const { ref, dependsOn } of maven.dependencies ?? []) {
    if (known.has(ref))
      depend(
        ref,
        (dependsOn ?? []).filter((other) => known.has(other)),
      );
  }

  if (files.some((file) => file.path.endsWith(CORE))) {
    for (const crate of crates) {
      components.push({
        type: "library",
        "bom-ref": crate.ref,
        group: crate.checksum ? undefined : "coterie-mpc-core",
        name: crate.name,
        version: crate.version,
        hashes: crate.checksum ? [{ alg: "SHA-256", content: crate.checksum }] : undefined,
        licenses: crate.license ? [{ expression: crate.license }] : undefined,
        // The workspace's own crates have names that others have on crates.io.
        purl: crate.checksum ? `pkg:cargo/${crate.name}@${encode(crate.version)}` : undefined,
      });
      depend(crate.ref, crate.dependsOn);
    }
  }

  const runtime = `openjdk@${java.JAVA_RUNTIME_VERSION}`;
  components.push({
    type: "platform",
    "bom-ref": runtime,
    supplier: java.IMPLEMENTOR ? { name: java.IMPLEMENTOR } : undefined,
    name: "openjdk",
    version: java.JAVA_RUNTIME_VERSION,
    licenses: [{ expression: "GPL-2.0-only WITH Classpath-exception-2.0" }],
    cpe: `cpe:2.3:a:oracle:openjdk:${java.JAVA_VERSION}:*:*:*:*:*:*:*`,
    purl: `pkg:generic/openjdk@${encode(java.JAVA_RUNTIME_VERSION)}`,
    evidence: { occurrences: [{ location: "/opt/java" }] },
  });

  const distribution = `${os.ID}-${os.VERSION_ID}`;
  components.push({
    type: "operating-system",
    "bom-ref": distribution,
    name: os.ID,
    version: os.VERSION_ID,
    description: os.PRETTY_NAME,
  });
  for (const unit of packages) {
    const of = `arch=${unit.Architecture}&distro=${distribution}`;
    const ref = `pkg:deb/${os.ID}/${encode(unit.Package)}@${encode(unit.Version)}?${of}`;
    const source = unit.Source?.replace(/ .*/, "");
    components.push({
      type: "library",
      "bom-ref": ref,
      supplier: unit.Maintainer ? { name: unit.Maintainer.replace(/ *<.*/, "") } : undefined,
      name: unit.Package,
      version: unit.Version,
      purl: source && source !== unit.Package ? `${ref}&upstream=${encode(source)}` : ref,
    });
    depend(distribution, [ref]);
  }
  components.sort((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1));
  const root = `coterie-${service}`;
  depend(root, [maven.metadata.component["bom-ref"], runtime, distribution]);
  for (const component of components) depend(component["bom-ref"], []);
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        type: "container",
        "bom-ref": root,
        name: root,
        version: maven.metadata.component.version,
        licenses: PROJECT_LICENSE,
      },
    },
    components,
    dependencies: [...dependencies]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([ref, dependsOn]) => ({ ref, dependsOn })),
  };
}

const encode = (text) => encodeURIComponent(text);
const sha256 = (file) => ({ alg: "SHA-256", content: file.sha256 });
const at = (files) => ({
  occurrences: files.map((file) => ({ location: file.path })).sort((a, b) => (a.location < b.location ? -1 : 1)),
});

/** The file that Maven calls a component, from its package URL. */
export function jarName({ name, version, purl }) {
  const classifier = /[?&]classifier=([^&]*)/.exec(purl ?? "");
  return `${name}-${version}${classifier ? `-${decodeURIComponent(classifier[1])}` : ""}.jar`;
}

/**
 * The crates that a crate is linked of, itself first.
 *
 * @param {string} tree of `cargo tree --prefix depth --format '|{p}|{l}'`
 * @param {string} lock content of Cargo.lock
 */
export function readCrates(tree, lock) {
  const checksums = new Map(
    [...lock.matchAll(/name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]*"\nchecksum = "([0-9a-f]{64})"/g)].map(
      ([, name, version, sum]) => [`${name}@${version}`, sum],
    ),
  );
  const crates = new Map();
  const line = [];
  for (const text of tree.trim().split("\n")) {
    const parts = /^(\d+)\|(\S+) v(\S+)[^|]*\|(.*?)(?: \(\*\))?$/.exec(text);
    if (!parts) throw new Error(`cargo tree says "${text}"`);
    const [, depth, name, version, license] = parts;
    const key = `${name}@${version}`;
    if (!crates.has(key)) {
      crates.set(key, {
        ref: `cargo:${key}`,
        name,
        version,
        license: license.replaceAll("/", " OR "),
        checksum: checksums.get(key),
        dependsOn: [],
      });
    }
    line[Number(depth)] = crates.get(key);
    const user = line[Number(depth) - 1];
    if (Number(depth) > 0 && !user.dependsOn.includes(`cargo:${key}`)) user.dependsOn.push(`cargo:${key}`);
  }
  return [...crates.values()];
}

/** The fields of a Debian control file that are one line each. */
export function parsePackage(text) {
  return Object.fromEntries([...text.matchAll(/^([A-Za-z-]+): (.*)$/gm)].map(([, key, value]) => [key, value]));
}

/** Lines KEY=value or KEY="value". */
export function parseAssignments(text) {
  return Object.fromEntries([...text.matchAll(/^([A-Z_]+)="?([^"\n]*)"?$/gm)].map(([, key, value]) => [key, value]));
}

function* walk(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(file);
    else yield file;
  }
}

function main(service, mavenFile) {
  const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
  const images = path.join(root, "build/images");
  const read = (...parts) => readFileSync(path.join(...parts), "utf8");
  const files = [];
  for (const layer of ["native", "libraries", "application"]) {
    for (const file of walk(path.join(images, service, layer))) {
      const place = `/${path.relative(path.join(images, service, layer), file)}`;
      if ([`${HOME}java.args`, `${HOME}sbom.cdx.json`].includes(place)) continue;
      files.push({ path: place, sha256: createHash("sha256").update(readFileSync(file)).digest("hex") });
    }
  }
  const core = path.join(root, "services/mpc-core");
  const tree = [
    "tree",
    "--manifest-path",
    path.join(core, "Cargo.toml"),
    "--locked",
    "--package",
    "abi",
    "--edges",
    "normal,no-proc-macro",
  ];
  const status = path.join(images, "base/var/lib/dpkg/status.d");
  const release = ["etc/os-release", "usr/lib/os-release"]
    .map((file) => path.join(images, "base", file))
    .find(existsSync);
  const bill = billOfMaterials({
    service,
    files,
    origins: Object.fromEntries(
      read(images, service, "native.origins")
        .trim()
        .split("\n")
        .map((line) => line.split(" ")),
    ),
    maven: JSON.parse(read(mavenFile)),
    crates: readCrates(
      execFileSync("cargo", [...tree, "--prefix", "depth", "--format", "|{p}|{l}"], { encoding: "utf8" }),
      read(core, "Cargo.lock"),
    ),
    packages: readdirSync(status).map((file) => parsePackage(read(status, file))),
    os: parseAssignments(read(release)),
    java: parseAssignments(read(process.env.JAVA_HOME, "release")),
  });
  process.stdout.write(`${JSON.stringify(bill, null, 1)}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.length !== 4) {
    process.stderr.write("arguments: SERVICE MAVEN-BOM\n");
    process.exit(2);
  }
  try {
    main(...process.argv.slice(2));
  } catch (problem) {
    process.stderr.write(`the bill of materials of ${process.argv[2]}: ${problem.message}\n`);
    process.exit(1);
  }
}
