// k6: has signatures made with one key at a steady rate, then at a growing one, and verifies each here. Requests come
// at their time whether or not earlier ones are answered, so that a slow system shows as latency and not as fewer
// requests.
//
// `make load K6=1` says how it is run. In the environment: PROFILE, a profile of `coterie`, and PROTOSET, the
// descriptors of proto/, both absolute; KEY, name of a key whose messages or digests the requester may have signed;
// RATE, requests a second; DURATION, seconds of each part; RAMP, requests a second at the end of the second part, which
// is left out without it; TIMEOUT, seconds for one request; VUS, requests that can wait at once without delay for
// others.
import grpc from 'k6/net/grpc';
import { check, fail, sleep } from 'k6';
import { Counter, Rate, Trend } from 'k6/metrics';
import { Requester, installation, profile, requestId, requesterKey, verify } from './custody.js';

const RETRY_PAUSE = 0.1;
const LEAST_VUS = 5;
// Each has a JavaScript engine of its own with the libraries in it.
const MOST_VUS = 200;

function setting(name, fallback) {
  const value = __ENV[name] || fallback;
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

function number(name, fallback) {
  const value = Number(setting(name, fallback));
  if (!(value > 0)) throw new Error(`${name} is not a number above 0`);
  return value;
}

const rate = number('RATE', '10');
const duration = number('DURATION', '60');
const ramp = __ENV.RAMP ? number('RAMP') : 0;
const timeout = number('TIMEOUT', '30');
const profileFile = setting('PROFILE');
const settings = profile(open(profileFile), profileFile.replace(/\/[^/]*$/, ''));
const protoset = setting('PROTOSET');
const name = `keys/${setting('KEY', 'demo')}`;
const tls = { cacerts: open(settings.ca), cert: open(settings.cert), key: open(settings.key) };
const requester = new Requester(
  new Uint8Array(open(protoset, 'b')),
  settings.requester,
  requesterKey(open(settings.requesterKey)),
  installation(open(settings.trust))
);
const client = new grpc.Client();
client.loadProtoset(protoset);
let connected = false;

const valid = new Rate('signatures_valid');
const retries = new Counter('signing_retries');
const signing = new Trend('signing_time', true);
const verifying = new Trend('verifying_time', true);

// In an hour, because the executors count in whole numbers.
const hourly = (perSecond) => Math.max(1, Math.round(perSecond * 3600));
const common = (most) => ({
  exec: 'sign',
  timeUnit: '1h',
  preAllocatedVUs: Math.min(MOST_VUS, Math.ceil(number('VUS', `${Math.max(LEAST_VUS, most)}`))),
  maxVUs: MOST_VUS,
  gracefulStop: `${Math.ceil(timeout) + 5}s`,
});

const scenarios = {
  steady: {
    ...common(rate),
    executor: 'constant-arrival-rate',
    rate: hourly(rate),
    duration: `${duration}s`,
  },
};
if (ramp) {
  scenarios.ramp = {
    ...common(Math.max(rate, ramp)),
    executor: 'ramping-arrival-rate',
    startTime: `${duration}s`,
    startRate: hourly(rate),
    stages: [{ target: hourly(ramp), duration: `${duration}s` }],
  };
}

export const options = {
  scenarios,
  setupTimeout: '60s',
  summaryTrendStats: ['min', 'med', 'p(95)', 'p(99)', 'max'],
  thresholds: {
    // Every request has a signature, every signature is valid, and every request was sent at its time.
    signatures_valid: ['rate==1'],
    checks: ['rate==1'],
    iterations: ['count>0'],
    dropped_iterations: ['count==0'],
  },
};

function invoke(method, message, seconds) {
  if (!connected) {
    client.connect(settings.endpoint, { tls, timeout: `${seconds}s` });
    connected = true;
  }
  return client.invoke(`coterie.custody.v1.${method}`, message, { timeout: `${seconds}s` });
}

/** A status in words. k6 shows no message of those that come with details, as the coordinator's do. */
const words = (status, error) => {
  const name = Object.keys(grpc).find((key) => key.startsWith('Status') && grpc[key] === status);
  return `${name} ${(error && error.message) || ''}`;
};

/** One request, asked again under its id while the answer is "not now", until its deadline. */
function answer(request, deadline) {
  for (;;) {
    const left = (deadline - Date.now()) / 1000;
    if (left <= 0) return { problem: 'deadline' };
    const { status, message, error } = invoke('SigningService/Sign', request, left);
    if (status === grpc.StatusOK) {
      return message.state === 'SIGNED' ? { signature: message.signature } : { problem: message.state };
    }
    const again = status === grpc.StatusUnavailable || status === grpc.StatusAborted;
    if (!again || left < 2 * RETRY_PAUSE) return { problem: words(status, error) };
    retries.add(1);
    sleep(RETRY_PAUSE);
  }
}

/** The key, which must be there, and a verification that can say no, with which every signature is checked. */
export function setup() {
  const { status, message, error } = invoke('KeyService/GetKey', { name }, timeout);
  if (status !== grpc.StatusOK) fail(`${name}: ${words(status, error)}`);
  if (message.state !== 'ACTIVE') fail(`${name} is ${message.state}`);
  const key = { name, scheme: message.scheme, publicKey: message.publicKey, fingerprint: message.fingerprint,
    reshareEpoch: message.reshareEpoch };
  const first = requester.request(key, requestId(Date.now()), Date.now() + timeout * 1000);
  const other = requester.request(key, requestId(Date.now()), Date.now() + timeout * 1000);
  const { signature, problem } = answer(first.message, Date.now() + timeout * 1000);
  if (problem !== undefined) fail(`not signed: ${problem}`);
  if (!verify(key.scheme, key.publicKey, first.content, signature)) fail('the first signature is not valid');
  if (verify(key.scheme, key.publicKey, other.content, signature)) fail('the verification takes any signature');
  return key;
}

/** One iteration: a request for a signature that no other asks for, and its verification. */
export function sign(key) {
  const deadline = Date.now() + timeout * 1000;
  const { content, message } = requester.request(key, requestId(Date.now()), deadline + 1000);
  const begin = Date.now();
  let signed;
  try {
    signed = answer(message, deadline);
  } catch (error) {
    signed = { problem: `${error}` };
  }
  const answered = Date.now();
  const good = signed.signature !== undefined && verify(key.scheme, key.publicKey, content, signed.signature);
  if (signed.problem === undefined) {
    signing.add(answered - begin);
    verifying.add(Date.now() - answered);
  } else {
    console.error(`not signed: ${signed.problem}`);
  }
  check(signed, {
    'a signature was given': ({ signature }) => signature !== undefined,
    'it is valid': () => good,
  });
  valid.add(good);
}
