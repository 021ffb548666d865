// The values that Terraform's stacks put out, through the charts: an installation on AWS starts with these.
// `.ci/terraform` leaves the outputs of its tests, which apply the stacks to a provider that makes nothing, in
// build/terraform.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { helmTemplate, minimal, one, parseObjects, root, workload } from "./render.mjs";

const folder = path.join(root, "build/terraform");
const leftOut = path.join(folder, "left-out");
const skip = existsSync(leftOut) ? readFileSync(leftOut, "utf8").trim() : false;
const outputs = (run) => JSON.parse(readFileSync(path.join(folder, `${run}.json`), "utf8"));

/**
 * The objects of a chart from what a stack puts out; the operator adds the rest, but nothing that the stack has said.
 */
function render(name, said) {
  const added = structuredClone(minimal[name]);
  for (const key of ["database", "networkPolicy", "redis", "service"]) delete added[key];
  const merged = { ...added };
  for (const [key, value] of Object.entries(said)) {
    merged[key] =
      key in added && typeof value === "object" && !Array.isArray(value) ? { ...added[key], ...value } : value;
  }
  const run = helmTemplate(name, merged);
  assert.equal(run.status, 0, run.stderr);
  return parseObjects(run.stdout);
}

const egress = (objects) => one(objects, "NetworkPolicy").spec.egress;
const reaches = (objects, cidr, port) =>
  egress(objects).some(
    (rule) => rule.to.some((to) => to.ipBlock?.cidr === cidr) && rule.ports.some((each) => each.port === port),
  );

test("terraform: what a stack puts out for a chart is rendered here", { skip }, () => {
  const values = (run) => Object.keys(outputs(run)).filter((name) => /(^|_)values$/.test(name));
  const rendered = ["coordinator_values", "edge_values", "messaging_values"];
  assert.deepEqual(values("control-plane/feeds_the_charts").sort(), rendered);
  assert.deepEqual(values("party/eu_central"), ["values"]);
});

test("terraform: messaging's values are the chart's", { skip }, () => {
  const said = parse(outputs("control-plane/feeds_the_charts").messaging_values);
  const objects = render("messaging", said);
  const config = parse(one(objects, "ConfigMap").data["config.yaml"]);
  assert.equal(config.coterie.messaging.redis.uri, "rediss://redis.example:6379");
  assert.match(
    config.spring.datasource.url,
    /^jdbc:postgresql:\/\/db\.example:5432\/messaging\?sslmode=verify-full&sslrootcert=/,
  );
  assert.equal(workload(objects).spec.replicas, 2);
  assert.ok(reaches(objects, "10.0.0.0/16", 5432) && reaches(objects, "10.0.0.0/16", 6379));
});

test("terraform: the coordinator's values are the chart's", { skip }, () => {
  const objects = render("coordinator", parse(outputs("control-plane/feeds_the_charts").coordinator_values));
  const { url } = parse(one(objects, "ConfigMap").data["config.yaml"]).spring.datasource;
  const [, file] = /&sslrootcert=(.*)$/.exec(url);
  const mounts = workload(objects).spec.template.spec.containers[0].volumeMounts.map((mount) => mount.mountPath);
  assert.ok(mounts.includes(path.dirname(file)));
  assert.ok(reaches(objects, "10.0.0.0/16", 5432));
});

test(
  "terraform: the edge's load balancer takes parties and backends, and nobody else if they are named",
  { skip },
  () => {
    const objects = render("edge", parse(outputs("control-plane/feeds_the_charts").edge_values));
    const service = objects.find((object) => object.kind === "Service" && object.spec.type === "LoadBalancer");
    assert.deepEqual(
      service.spec.ports.map((port) => port.name),
      ["clients", "parties"],
    );
    const from = (rendered) =>
      one(rendered, "NetworkPolicy")
        .spec.ingress.at(-1)
        .from.map((each) => each.ipBlock.cidr);
    assert.deepEqual(from(objects), ["198.51.100.1/32", "203.0.113.0/24", "10.0.0.0/16"]);
    // The addresses that parties are let out to stay those of the load balancer.
    const addresses = service.metadata.annotations["service.beta.kubernetes.io/aws-load-balancer-eip-allocations"];
    const zones = outputs("control-plane/feeds_the_charts").messaging_cidrs;
    assert.equal(addresses.split(",").length, zones.length);
    const open = render("edge", parse(outputs("control-plane/everybody_may_connect_if_nobody_is_named").edge_values));
    assert.deepEqual(from(open), ["0.0.0.0/0"]);
  },
);

test("terraform: a party is let out to the address that it calls, where the edge serves parties", { skip }, () => {
  const control = outputs("control-plane/feeds_the_charts");
  const objects = render("signer", parse(outputs("party/eu_central").values));
  const { channel } = parse(one(objects, "ConfigMap").data["config.yaml"]).coterie.signer;
  const { messaging } = channel;
  assert.equal(messaging, control.messaging_url);
  // The edge asks for the certificate of parties there.
  assert.ok(channel["certificate-file"] && channel["private-key-file"]);
  const port = Number(new URL(messaging).port || 443);
  assert.ok(reaches(objects, "203.0.113.0/28", port));
  const edge = render("edge", parse(control.edge_values)).find((object) => object.spec?.type === "LoadBalancer");
  assert.equal(edge.spec.ports.find((each) => each.name === "parties").port, port);
});
