// The charts as they come out of helm, with no cluster: the rules for every pod, and the values that are refused.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { helmTemplate, minimal, one, parseObjects, pem, root, selfSigned, workload } from "./render.mjs";

function render(name, more = {}) {
  const run = helmTemplate(name, { ...minimal[name], ...more });
  assert.equal(run.status, 0, run.stderr);
  return parseObjects(run.stdout);
}

function refused(name, values, why) {
  const run = helmTemplate(name, values);
  assert.notEqual(run.status, 0, `${name} takes ${JSON.stringify(values)}`);
  assert.match(run.stderr, why);
}

const alertRules = () =>
  parse(readFileSync(path.join(root, "deploy/helm/coterie-observability/files/rules.yaml"), "utf8")).groups.flatMap(
    (group) => group.rules,
  );
const megabytes = (text) => Number(text.replace(/Mi$|m$/, ""));

for (const name of Object.keys(minimal)) {
  test(`${name}: pods are restricted, bounded, probed and spread`, () => {
    const objects = render(name);
    for (const pod of [
      workload(objects).spec.template.spec,
      ...objects.filter((o) => o.kind === "Pod").map((o) => o.spec),
    ]) {
      assert.equal(pod.automountServiceAccountToken, false);
      assert.equal(pod.securityContext.runAsNonRoot, true);
      assert.equal(pod.securityContext.seccompProfile.type, "RuntimeDefault");
      assert.ok(!pod.hostNetwork && !pod.hostPID && !pod.hostIPC);
      for (const container of pod.containers) {
        assert.deepEqual(container.securityContext, {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        assert.ok(container.resources.limits.memory && container.resources.requests.cpu);
        assert.match(container.image, /:[^:]+$/);
      }
      for (const volume of pod.volumes) assert.ok(!volume.hostPath);
    }
    const spec = workload(objects).spec.template.spec;
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      assert.equal(spec.containers[0][probe].httpGet.scheme, "HTTPS");
    }
    assert.equal(spec.topologySpreadConstraints.length, 2);
    assert.equal(one(objects, "PodDisruptionBudget").spec.maxUnavailable, 1);
  });

  test(`${name}: one network policy denies what it does not name`, () => {
    const objects = render(name);
    const policy = one(objects, "NetworkPolicy").spec;
    assert.deepEqual(policy.policyTypes, ["Ingress", "Egress"]);
    assert.deepEqual(policy.podSelector.matchLabels, workload(objects).spec.selector.matchLabels);
    for (const rule of policy.ingress) assert.ok(rule.from.length > 0 && rule.ports.length > 0);
    for (const rule of policy.egress) assert.ok(rule.to.length > 0 && rule.ports.length > 0);
  });

  test(`${name}: secrets are existing ones, none is rendered`, () => {
    const objects = render(name);
    assert.equal(objects.filter((object) => object.kind === "Secret").length, 0);
    const names = workload(objects)
      .spec.template.spec.volumes.filter((volume) => volume.secret)
      .map((volume) => volume.secret.secretName);
    assert.ok(names.includes(`${name}-tls`), names.join());
  });

  test(`${name}: unknown and impossible values are refused`, () => {
    refused(name, { ...minimal[name], nonsense: 1 }, /nonsense/);
    refused(name, { ...minimal[name], metrics: { nonsense: 1 } }, /nonsense/);
    refused(name, { ...minimal[name], networkPolicy: { enabled: "yes" } }, /enabled/);
    refused(name, { ...minimal[name], image: { tag: "", digest: "" } }, /image/);
    refused(name, { ...minimal[name], image: { tag: "x", digest: "sha256:1" } }, /digest/);
  });

  test(`${name}: it knows the password of the metrics by an existing Secret`, () => {
    const objects = render(name, { metrics: { secret: "scraping" } });
    const { volumes, containers } = workload(objects).spec.template.spec;
    const { secret } = volumes.find((volume) => volume.name === "metrics");
    const { mountPath } = containers[0].volumeMounts.find((mount) => mount.name === "metrics");
    assert.equal(secret.secretName, "scraping");
    const [file] = secret.items;
    // The files of the script that makes it.
    assert.ok(readFileSync(path.join(root, "deploy/metrics-password"), "utf8").includes(`"$1/${file.key}"`));
    const config = Object.values(one(objects, "ConfigMap").data).join("\n");
    assert.ok(config.includes(`${mountPath}/${file.path}`), `${mountPath}/${file.path} is in no configuration`);
    refused(name, { ...minimal[name], metrics: { secret: "" } }, /secret/);
  });

  test(`${name}: it resolves names at the pods that do that, and at no other`, () => {
    const dns = one(render(name), "NetworkPolicy").spec.egress.filter((rule) =>
      rule.ports.some((port) => port.port === 53),
    );
    assert.equal(dns.length, 1);
    assert.deepEqual(dns[0].to, [
      {
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "kube-system" } },
        podSelector: { matchLabels: { "k8s-app": "kube-dns" } },
      },
    ]);
    refused(name, { ...minimal[name], networkPolicy: { dnsPods: "all" } }, /dnsPods/);
  });

  test(`${name}: a ServiceMonitor only when asked for`, () => {
    assert.equal(render(name).filter((object) => object.kind === "ServiceMonitor").length, 0);
    const monitor = one(
      render(name, { metrics: { serviceMonitor: { enabled: true, labels: { release: "prometheus" } } } }),
      "ServiceMonitor",
    );
    assert.equal(monitor.metadata.labels.release, "prometheus");
    assert.equal(monitor.spec.endpoints[0].scheme, "https");
    const secret = `${name}-metrics`;
    assert.deepEqual(monitor.spec.endpoints[0].basicAuth, {
      username: { name: secret, key: "username" },
      password: { name: secret, key: "password" },
    });
    const service = one(render(name), "Service");
    assert.ok(service.spec.ports.map((port) => port.name).includes(monitor.spec.endpoints[0].port));
    // The alert about a target that is down selects jobs of this name.
    const { expr } = alertRules().find((rule) => rule.alert === "CoterieTargetDown");
    const [, job] = /job=~"([^"]+)"/.exec(expr);
    assert.match(service.metadata.labels[monitor.spec.jobLabel], new RegExp(`^(?:${job})$`));
  });
}

for (const name of ["messaging", "coordinator", "edge"]) {
  test(`${name}: the management port is on no load balancer and no node`, () => {
    for (const type of ["NodePort", "LoadBalancer"]) {
      const services = render(name, { service: { type, annotations: { "example.org/a": "b" } } }).filter(
        (object) => object.kind === "Service",
      );
      const inside = services.filter(
        (service) => service.spec.type === "ClusterIP" || service.spec.clusterIP === "None",
      );
      const [outside, ...others] = services.filter((service) => !inside.includes(service));
      assert.equal(others.length, 0);
      assert.equal(outside.metadata.name, `${name}-external`);
      assert.equal(outside.spec.type, type);
      assert.deepEqual(outside.metadata.annotations, { "example.org/a": "b" });
      const ports = (service) => service.spec.ports.map((port) => port.name);
      assert.deepEqual(
        [...ports(outside), "management"],
        ports(inside.find((service) => service.metadata.name === name)),
      );
      assert.deepEqual(outside.spec.selector, inside[0].spec.selector);
    }
    assert.deepEqual(one(render(name), "Service").spec.type, "ClusterIP");
  });
}

for (const name of ["messaging", "edge"]) {
  test(`${name}: a load balancer leaves clients their addresses`, () => {
    const policy = (service) =>
      render(name, { service })
        .filter((object) => object.kind === "Service")
        .map((object) => object.spec.externalTrafficPolicy);
    assert.deepEqual(policy({ type: "ClusterIP" }), [undefined]);
    assert.deepEqual(policy({ type: "LoadBalancer" }), [undefined, "Local"]);
    assert.deepEqual(policy({ type: "NodePort" }), [undefined, "Cluster"]);
    assert.deepEqual(policy({ type: "NodePort", externalTrafficPolicy: "Local" }), [undefined, "Local"]);
    refused(name, { ...minimal[name], service: { externalTrafficPolicy: "local" } }, /externalTrafficPolicy/);
  });
}

test("the runbooks' and notes' upgrades take the new chart's defaults", () => {
  const texts = ["docs/runbooks", "deploy/helm"].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true })
      .filter((file) => /\.md$|NOTES\.txt$/.test(file) && !/node_modules/.test(file))
      .map((file) => readFileSync(path.join(root, folder, file), "utf8")),
  );
  const upgrades = texts
    .join("\n")
    .split("\n")
    .filter((line) => /helm .*upgrade/.test(line));
  assert.ok(upgrades.length > 5);
  // --reuse-values would keep what an old chart had, the version of the jars for one.
  for (const upgrade of upgrades) assert.match(upgrade, /--reset-then-reuse-values/);
});

for (const name of ["messaging", "coordinator"]) {
  test(`${name}: a database's certificate is verified with the authority of a Secret`, () => {
    const url = `jdbc:postgresql://db.example:5432/${name}`;
    const database = { url: `${url}?sslmode=verify-full`, caSecret: "database-ca" };
    const objects = render(name, { database });
    const spring = (rendered) => parse(one(rendered, "ConfigMap").data["config.yaml"]).spring.datasource.url;
    assert.equal(spring(objects), `${url}?sslmode=verify-full&sslrootcert=/etc/coterie/database-ca/ca.crt`);
    const pod = workload(objects).spec.template.spec;
    assert.equal(pod.volumes.find((volume) => volume.name === "database-ca").secret.secretName, "database-ca");
    assert.equal(
      pod.containers[0].volumeMounts.find((mount) => mount.name === "database-ca").mountPath,
      "/etc/coterie/database-ca",
    );
    assert.equal(spring(render(name, { database: { url } })), url);
    refused(name, { ...minimal[name], database: { url: database.url } }, /database.caSecret/);
  });
}

for (const name of ["messaging", "coordinator", "signer"]) {
  test(`${name}: the heap leaves room for the native core, and further settings do not replace the chart's`, () => {
    const objects = render(name, {
      heap: "200m",
      config: { name: "mallory", replica: "mallory", tls: { certificate: "x" }, limits: { a: 1 } },
    });
    const container = workload(objects).spec.template.spec.containers[0];
    const heap = container.env.find((variable) => variable.name === "JDK_JAVA_OPTIONS").value;
    assert.match(heap, /-Xmx200m/);
    assert.ok(megabytes(container.resources.limits.memory) >= 200 + 320);
    const config = parse(one(objects, "ConfigMap").data["config.yaml"]).coterie[name];
    assert.deepEqual(config.limits, { a: 1 });
    if (name === "signer") assert.equal(config.name, "party-1");
    if (name === "coordinator") assert.equal(config.replica, "coordinator");
    if (name !== "signer") assert.equal(config.tls.certificate, "/etc/coterie/tls/tls.crt");
  });
}

for (const name of ["coordinator", "signer"]) {
  test(`${name}: a trust file restarts it, and a pod that waits for one does not block the upgrade`, () => {
    const annotation = (objects) => workload(objects).spec.template.metadata.annotations["coterie.io/config"];
    const without = render(name);
    const trust = '{"installation":"x","version":1,"members":[],"former":[],"requesters":[]}';
    const pinned = render(name, { trust });
    assert.notEqual(annotation(without), annotation(pinned));
    assert.equal(annotation(without), annotation(render(name)));
    const { data } = one(pinned, "ConfigMap");
    assert.equal(data["trust.json"].trim(), trust);
    assert.equal(one(without, "ConfigMap").data["trust.json"], undefined);
    const { channel } = parse(data["config.yaml"]).coterie[name];
    assert.equal(channel["trust-file"], "/etc/coterie/config/trust.json");
    refused(name, { ...minimal[name], roster: trust }, /roster/);
    assert.equal(workload(pinned).spec.podManagementPolicy, "Parallel");
    assert.equal(workload(pinned).spec.replicas, 1);
  });
}

test("coordinator: each of several replicas has its own name, number and token, and is called by itself", () => {
  const { coordinator } = minimal;
  const { channel } = coordinator;
  const numbers = ["+15550000000", "+15550000007"];
  const objects = render("coordinator", { replicas: 2, channel: { ...channel, numbers } });
  assert.equal(workload(objects).spec.replicas, 2);
  const data = one(objects, "ConfigMap").data;
  const own = (pod) => {
    const { replica, channel } = parse(data[`${pod}.yaml`]).coterie.coordinator;
    return [replica, channel.number, channel["token-file"]];
  };
  // The first one is who it would be alone.
  const { replica, channel: alone } = parse(data["config.yaml"]).coterie.coordinator;
  assert.deepEqual(own("coordinator-0"), [replica, alone.number, alone["token-file"]]);
  assert.deepEqual(own("coordinator-0"), ["coordinator", numbers[0], "/etc/coterie/enrolment/token"]);
  assert.deepEqual(own("coordinator-1"), ["coordinator-1", numbers[1], "/etc/coterie/enrolment/token-1"]);
  assert.equal(data["coordinator-2.yaml"], undefined);
  assert.ok(parse(data["config.yaml"]).spring.config.import.includes("file:/etc/coterie/config/${POD_NAME}.yaml"));
  const container = workload(objects).spec.template.spec.containers[0];
  assert.deepEqual(container.env.find((variable) => variable.name === "POD_NAME").valueFrom, {
    fieldRef: { fieldPath: "metadata.name" },
  });
  assert.equal(container.lifecycle.preStop.sleep.seconds, 15);
  const service = objects.find(
    (object) => object.kind === "Service" && object.metadata.name === "coordinator-replicas",
  );
  assert.equal(service.spec.clusterIP, "None");
  assert.deepEqual(service.spec.selector, workload(objects).spec.selector.matchLabels);
  assert.deepEqual(
    service.spec.ports.map((port) => port.port),
    [9090],
  );

  const single = render("coordinator");
  assert.deepEqual(
    Object.keys(one(single, "ConfigMap").data).filter((name) => /-\d+\.yaml$/.test(name)),
    [],
  );
  assert.equal(workload(single).spec.template.spec.containers[0].lifecycle.preStop.sleep.seconds, 5);
  assert.equal(
    workload(render("coordinator", { preStopSeconds: 0 })).spec.template.spec.containers[0].lifecycle.preStop.sleep
      .seconds,
    0,
  );
  refused("coordinator", { ...coordinator, replicas: 2 }, /channel.numbers has 1 for 2 replicas/);
  refused("coordinator", { ...coordinator, replicas: 0 }, /replicas/);
  refused(
    "coordinator",
    { ...coordinator, replicas: 2, channel: { ...channel, numbers: [numbers[1], numbers[1]] } },
    /numbers.*equal/,
  );
  refused(
    "coordinator",
    { ...coordinator, channel: { ...channel, numbers: [numbers[1]] } },
    /another one than the first/,
  );
  refused("coordinator", { ...coordinator, channel: { trustRoot: "AAAA" } }, /channel.number is missing/);
});

test("messaging: several replicas need Redis; its password and authority are files, and a way out to it is open", () => {
  const { messaging } = minimal;
  refused("messaging", { ...messaging, replicas: 2 }, /redis/);
  refused("messaging", { ...messaging, redis: { uri: "rediss://user:secret@redis:6379" } }, /redis/);
  const networkPolicy = { redis: { namespace: "data", pods: { app: "redis" }, port: 6380 } };
  const redis = {
    uri: "rediss://redis.data.svc:6380",
    username: "coterie",
    secret: "redis-password",
    caSecret: "redis-ca",
  };
  const objects = render("messaging", { replicas: 2, redis, networkPolicy });
  assert.deepEqual(parse(one(objects, "ConfigMap").data["config.yaml"]).coterie.messaging.redis, {
    uri: redis.uri,
    username: "coterie",
    "password-file": "/etc/coterie/redis/password",
    ca: "/etc/coterie/redis-ca/ca.crt",
  });
  const pod = workload(objects).spec.template.spec;
  for (const [volume, secret, folder] of [
    ["redis", "redis-password", "/etc/coterie/redis"],
    ["redis-ca", "redis-ca", "/etc/coterie/redis-ca"],
  ]) {
    assert.equal(pod.volumes.find((each) => each.name === volume).secret.secretName, secret);
    assert.equal(pod.containers[0].volumeMounts.find((each) => each.name === volume).mountPath, folder);
  }
  assert.deepEqual(one(objects, "NetworkPolicy").spec.egress.at(-1), {
    to: [
      {
        podSelector: { matchLabels: { app: "redis" } },
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "data" } },
      },
    ],
    ports: [{ port: 6380, protocol: "TCP" }],
  });
  const alone = render("messaging");
  assert.equal(parse(one(alone, "ConfigMap").data["config.yaml"]).coterie.messaging.redis, undefined);
  assert.equal(one(alone, "NetworkPolicy").spec.egress.length, 2);
});

test("observability: rules, one ConfigMap for each dashboard, and only what is asked for", () => {
  const objects = render("observability", { rulesConfigMap: { enabled: true }, networkPolicy: { enabled: true } });
  const rules = one(objects, "PrometheusRule").spec;
  assert.ok(rules.groups.length > 0);
  const maps = objects.filter((object) => object.kind === "ConfigMap");
  const dashboards = maps.filter((object) => object.metadata.labels.grafana_dashboard === "1");
  assert.equal(dashboards.length, 4);
  for (const dashboard of dashboards) {
    for (const text of Object.values(dashboard.data)) assert.ok(JSON.parse(text).panels.length > 0);
  }
  assert.deepEqual(parse(maps.find((object) => object.data["rules.yaml"]).data["rules.yaml"]), rules);
  assert.deepEqual(one(objects, "NetworkPolicy").spec.policyTypes, ["Ingress"]);
  const bare = render("observability", { prometheusRule: { enabled: false }, dashboards: { enabled: false } });
  assert.deepEqual(bare, []);
  refused("observability", { nonsense: 1 }, /nonsense/);
  refused("observability", { dashboards: { enabled: "yes" } }, /enabled/);
});

test("signer: it gets out to messaging and DNS only, and only metrics get in", () => {
  const policy = one(
    render("signer", { networkPolicy: { messaging: { cidrs: ["203.0.113.0/28"], port: 443 } } }),
    "NetworkPolicy",
  ).spec;
  assert.equal(policy.egress.length, 2);
  assert.deepEqual(policy.egress[1], {
    to: [{ ipBlock: { cidr: "203.0.113.0/28" } }],
    ports: [{ port: 443, protocol: "TCP" }],
  });
  assert.equal(policy.ingress.length, 1);
  assert.deepEqual(policy.ingress[0].ports, [{ port: "management", protocol: "TCP" }]);
});

test("signer: sealed without its Secret, instead of not started", () => {
  const volumes = workload(render("signer")).spec.template.spec.volumes;
  assert.equal(volumes.find((volume) => volume.name === "unseal").secret.optional, true);
});

test("signer: the rights over keys are off unless a rule gives them", () => {
  const rule = (more) =>
    parse(
      one(
        render("signer", { requesters: [{ name: "treasury", publicKey: pem, keys: ["keys/*"], ...more }] }),
        "ConfigMap",
      ).data["config.yaml"],
    ).coterie.signer.requesters[0];
  const rights = {
    mayCreateKeys: "may-create-keys",
    mayImportKeys: "may-import-keys",
    mayRefreshKeys: "may-refresh-keys",
    mayReshareKeys: "may-reshare-keys",
    mayCreateGroups: "may-create-groups",
    mayOpenApprovals: "may-open-approvals",
  };
  const given = (more) => Object.values(rights).filter((right) => rule(more)[right] !== false);
  assert.deepEqual(given({}), []);
  for (const [value, right] of Object.entries(rights)) {
    assert.deepEqual(given({ [value]: true }), [right]);
    assert.equal(rule({ [value]: true })[right], true);
  }
  assert.deepEqual(rule({ payloads: [] }).payloads, []);
  assert.equal(rule({})["public-key-file"], "/etc/coterie/config/requester-treasury.pem");
  assert.equal(rule({}).lapse, undefined);
  assert.equal(rule({ lapse: "never" }).lapse, "never");
  assert.throws(() => rule({ lapse: "sometimes" }), /lapse/);
  assert.equal(rule({}).approvals, undefined);
  assert.deepEqual(rule({ approvals: { group: "approvers", needed: 2 } }).approvals, { group: "approvers", needed: 2 });
  for (const approvals of [{ group: "approvers" }, { group: "groups/approvers", needed: 2 }, { group: "a", needed: 33 }]) {
    assert.throws(() => rule({ approvals }), /approvals/);
  }
  const floor = rule({ minThreshold: 2, minParties: 3, allowedParties: ["party-1", "party-2", "party-3"] });
  assert.deepEqual(
    [floor["min-threshold"], floor["min-parties"], floor["allowed-parties"]],
    [2, 3, ["party-1", "party-2", "party-3"]],
  );
});

test("signer: a requester without a public key has the one of the trust file", () => {
  const { data } = one(render("signer", { requesters: [{ name: "treasury", keys: ["keys/*"] }] }), "ConfigMap");
  assert.equal(parse(data["config.yaml"]).coterie.signer.requesters[0]["public-key-file"], undefined);
  assert.equal(data["requester-treasury.pem"], undefined);
});

test("signer: the root keys of the installation are pinned if the values have their fingerprint", () => {
  const channel = (more) =>
    parse(one(render("signer", more), "ConfigMap").data["config.yaml"]).coterie.signer.channel;
  const roots = Array(16).fill("0a1b").join(" ");
  assert.equal(channel({})["trust-file-roots"], undefined);
  const pinned = channel({ trustFileRoots: roots, config: { channel: { "trust-file-roots": "mallory" } } });
  assert.equal(pinned["trust-file-roots"], roots);
  assert.equal(pinned["trust-file"], "/etc/coterie/config/trust.json");
  refused("signer", { ...minimal.signer, trustFileRoots: roots.slice(5) }, /trustFileRoots/);
});

test("signer: what makes no sense is refused", () => {
  const signer = minimal.signer;
  refused("signer", { ...signer, party: { name: "Party", id: 1 } }, /name/);
  refused("signer", { ...signer, party: { name: "p", id: 0 } }, /id/);
  refused("signer", { ...signer, channel: { ...signer.channel, messaging: "http://messaging" } }, /messaging/);
  refused("signer", { ...signer, channel: { ...signer.channel, number: "1" } }, /number/);
  refused("signer", { ...signer, requesters: [{ name: "treasury", publicKey: pem }] }, /keys/);
  refused("signer", { ...signer, requesters: [{ name: "treasury", publicKey: "x", keys: ["*"] }] }, /publicKey/);
  for (const wrong of [{ keys: ["treasury-*"] }, { keys: ["*"], allowedParties: ["party-*"] }]) {
    refused("signer", { ...signer, requesters: [{ name: "treasury", publicKey: pem, ...wrong }] }, /does not match/);
  }
  refused(
    "signer",
    { ...signer, requesters: [{ name: "treasury", publicKey: pem, keys: ["*"], minThreshold: 0 }] },
    /minThreshold/,
  );
});

/** The Secret and the key there that a file below a mount is. */
function secretOf(objects, file) {
  const { volumes, containers } = workload(objects).spec.template.spec;
  const mount = containers[0].volumeMounts.find((each) => path.dirname(file) === each.mountPath);
  const { secret } = volumes.find((volume) => volume.name === mount?.name) ?? {};
  const key = path.basename(file);
  assert.ok(secret && (!secret.items || secret.items.some((item) => item.path === key)), `${file} is not mounted`);
  return [secret.secretName, key];
}

test("each authority is believed for one purpose", () => {
  const edge = render("edge");
  const envoy = parse(one(edge, "ConfigMap").data["envoy.yaml"]).static_resources;
  const downstream = (name) =>
    envoy.listeners.find((listener) => listener.name === name).filter_chains[0].transport_socket.typed_config;
  const upstream = (name) => envoy.clusters.find((cluster) => cluster.name === name).transport_socket.typed_config;
  const believed = (tls) => secretOf(edge, tls.common_tls_context.validation_context.trusted_ca.filename);
  const shown = (tls) => secretOf(edge, tls.common_tls_context.tls_certificates[0].certificate_chain.filename);
  for (const [name, authority] of [
    ["clients", "clients-ca"],
    ["parties", "parties-ca"],
  ]) {
    assert.equal(downstream(name).require_client_certificate, true, name);
    assert.deepEqual(believed(downstream(name)), [authority, "ca.crt"]);
    assert.deepEqual(shown(downstream(name)), ["edge-tls", "tls.crt"]);
  }
  for (const name of ["coordinator", "messaging"]) assert.deepEqual(believed(upstream(name)), ["edge-tls", "ca.crt"]);
  for (const name of ["coordinator", "messaging"]) assert.deepEqual(shown(upstream(name)), ["edge-client-tls", "tls.crt"]);
  // Messaging sees the edge's own certificate, and no header about a party's.
  const manager = envoy.listeners.find((listener) => listener.name === "parties").filter_chains[0].filters[0];
  assert.equal(manager.typed_config.forward_client_cert_details, undefined);

  const coordinator = render("coordinator");
  const { tls, channel } = parse(one(coordinator, "ConfigMap").data["config.yaml"]).coterie.coordinator;
  assert.deepEqual(secretOf(coordinator, tls["client-ca"]), ["clients-ca", "ca.crt"]);
  assert.deepEqual(secretOf(coordinator, tls.certificate), ["coordinator-tls", "tls.crt"]);
  assert.deepEqual(secretOf(coordinator, channel.ca), ["coordinator-tls", "ca.crt"]);

  const messaging = render("messaging");
  const own = parse(one(messaging, "ConfigMap").data["config.yaml"]).coterie.messaging;
  assert.deepEqual(secretOf(messaging, own["trusted-edge"].authority), ["clients-ca", "ca.crt"]);
  assert.deepEqual(secretOf(messaging, own.tls.certificate), ["messaging-tls", "tls.crt"]);

  const signer = render("signer");
  const config = parse(one(signer, "ConfigMap").data["config.yaml"]);
  const party = config.coterie.signer.channel;
  assert.deepEqual(
    ["ca-file", "certificate-file", "private-key-file"].map((file) => secretOf(signer, party[file])),
    ["ca.crt", "tls.crt", "tls.key"].map((key) => ["signer-channel-tls", key]),
  );
  const { keystore } = config.spring.ssl.bundle.pem.management;
  assert.deepEqual(secretOf(signer, keystore.certificate), ["signer-tls", "tls.crt"]);

  for (const value of ["clientSecret", "clientsCaSecret", "partiesCaSecret"]) {
    refused("edge", { tls: { [value]: "" } }, new RegExp(value));
  }
  for (const chart of ["coordinator", "messaging"]) {
    refused(chart, { ...minimal[chart], tls: { clientsCaSecret: "" } }, /clientsCaSecret/);
  }
  refused("signer", { ...minimal.signer, channel: { ...minimal.signer.channel, tlsSecret: "" } }, /tlsSecret/);
});

test("edge and messaging: where clients are is said by the edge and by nobody else", () => {
  const { listeners } = parse(one(render("edge"), "ConfigMap").data["envoy.yaml"]).static_resources;
  const manager = (name) =>
    listeners.find((listener) => listener.name === name).filter_chains[0].filters[0].typed_config;
  const header = "x-coterie-client-address";
  const parties = manager("parties");
  assert.deepEqual(
    parties.early_header_mutation_extensions.map((extension) => extension.typed_config.mutations),
    [[{ remove: header }]],
  );
  for (const host of parties.route_config.virtual_hosts) {
    assert.deepEqual(host.request_headers_to_add, [
      {
        header: { key: header, value: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%" },
        append_action: "OVERWRITE_IF_EXISTS_OR_ADD",
      },
    ]);
  }
  assert.equal(parties.use_remote_address, true);
  assert.equal(parties.xff_num_trusted_hops, undefined);

  const edgeOf = (values) => {
    const objects = render("messaging", { ...minimal.messaging, ...values });
    const { volumes } = workload(objects).spec.template.spec;
    const mounted = volumes.some((volume) => volume.secret?.secretName === "clients-ca");
    const believed = parse(one(objects, "ConfigMap").data["config.yaml"]).coterie.messaging["trusted-edge"];
    return [believed?.names, mounted];
  };
  assert.deepEqual(edgeOf({}), [["dns:edge"], true]);
  assert.deepEqual(edgeOf({ edges: ["dns:proxy"] }), [["dns:proxy"], true]);
  assert.deepEqual(edgeOf({ edges: [] }), [undefined, false]);
  for (const edges of [["edge"], ["ip:10.0.0.1"], "dns:edge"]) {
    refused("messaging", { ...minimal.messaging, edges }, /edges/);
  }
});

test("edge: names and limits are those of the values, and Envoy takes the file", (context) => {
  const objects = render("edge", {
    coordinator: { host: "coordinator.example" },
    messaging: { host: "messaging.example" },
    limits: { requestsPerSecond: 7, burst: 9 },
  });
  const text = one(objects, "ConfigMap").data["envoy.yaml"];
  assert.ok(!/coterie\.internal/.test(text.replace(/^ *#.*$/gm, "")));
  assert.match(text, /address: coordinator\.example, port_value: 9090/);
  assert.match(text, /max_tokens: 9, tokens_per_fill: 7/);
  const replicas = one(
    render("edge", { coordinator: { host: "coordinator.example", address: "coordinator-replicas" } }),
    "ConfigMap",
  ).data["envoy.yaml"];
  assert.match(replicas, /address: coordinator-replicas, port_value: 9090/);
  assert.match(replicas, /sni: coordinator\.example/);
  assert.match(replicas, /exact: coordinator\.example/);
  const envoy = path.join(root, "build/tools/bin/envoy");
  if (!existsSync(envoy)) {
    context.diagnostic("no Envoy here to validate the file with: .ci/envoy");
    return;
  }
  const folder = mkdtempSync(path.join(tmpdir(), "edge-"));
  try {
    const run = (command, args) => execFileSync(command, args, { stdio: "pipe" });
    selfSigned(folder);
    writeFileSync(`${folder}/users`, "metrics:{SHA}AAAAAAAAAAAAAAAAAAAAAAAAAAA=\n");
    writeFileSync(
      `${folder}/custody.protoset`,
      Buffer.from(one(objects, "ConfigMap").binaryData["custody.protoset"], "base64"),
    );
    writeFileSync(
      `${folder}/envoy.yaml`,
      text.replaceAll(/\/etc\/envoy(-[a-z-]+)?\//g, `${folder}/`),
    );
    run(envoy, ["--mode", "validate", "-c", `${folder}/envoy.yaml`, "--log-level", "error"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("new-token leaves nothing but the token", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "token-"));
  try {
    const line = execFileSync(path.join(root, "deploy/new-token"), ["+15550000001", `${folder}/token`], {
      encoding: "utf8",
    });
    assert.deepEqual(readdirSync(folder), ["token"]);
    const token = Buffer.from(readFileSync(`${folder}/token`, "utf8"), "base64");
    assert.equal(token.length, 24);
    assert.equal(parse(line)[0].tokenSha256, createHash("sha256").update(token).digest("hex"));
    // No other file has it on the way: one that is killed could leave that.
    const script = readFileSync(path.join(root, "deploy/new-token"), "utf8");
    assert.deepEqual(script.match(/>"[^"]+"/g), ['>"$2"']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("metrics-password makes what the Secrets need, and the hash is that of the password", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "metrics-"));
  try {
    execFileSync(path.join(root, "deploy/metrics-password"), [`${folder}/new`]);
    const read = (name) => readFileSync(`${folder}/new/${name}`, "utf8");
    assert.deepEqual(readdirSync(`${folder}/new`).sort(), ["password", "username", "users"]);
    assert.equal(read("username"), "metrics");
    assert.ok(Buffer.from(read("password"), "base64").length === 24);
    const hash = createHash("sha1").update(read("password")).digest("base64");
    assert.equal(read("users"), `metrics:{SHA}${hash}\n`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
