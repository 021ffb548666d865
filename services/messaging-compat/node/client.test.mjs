// Signal's own client for Node.js, of the version in package.json, against the messaging service. NpmClientTest starts
// the service and gives its port, its CA, its trust root and a one-time token for each number in the environment.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Aci, ErrorCode } from '@signalapp/libsignal-client';
import { Account, combined, service } from './client.mjs';

const [alice, bob, carol, dora] = [...service.tokens.keys()].map((number) => new Account(number));
const all = [alice, bob, carol, dora];

function code(expected) {
  return (error) => assert.equal(error.code, expected, `${error}`) ?? true;
}

/** An answer that the client knows no name for. */
function status(expected) {
  return (error) => assert.match(`${error}`, new RegExp(`unexpected response status ${expected} `)) ?? true;
}

function token(account) {
  return service.tokens.get(account.number);
}

before(async () => {
  for (const account of all) {
    const registered = await account.register(token(account));
    assert.equal(registered.number, account.number);
    assert.equal(registered.reregistration, false);
    await account.connect();
    assert.equal((await account.uploadOneTimeKeys()).status, 200);
  }
});

after(() => Promise.all(all.map((account) => account.close())));

test('a used token and a wrong one register nobody', async () => {
  const refused = code(ErrorCode.RegistrationRecoveryVerificationFailed);
  await assert.rejects(new Account(alice.number).register(token(alice)), refused);
  await assert.rejects(new Account(bob.number).register(new Uint8Array(randomBytes(24))), refused);
});

test('an account knows itself and its device', async () => {
  const { status, body } = await alice.call('GET', '/v1/accounts/whoami');
  assert.deepEqual([status, body.uuid], [200, alice.aci.getServiceIdString()]);
  const { devices } = (await alice.call('GET', '/v1/devices')).body;
  assert.deepEqual(devices.map((device) => [device.id, device.registrationId]), [[1, alice.registrationId]]);
});

test('one-time keys are counted, handed out once each, and to nobody without the access key', async () => {
  assert.deepEqual(await bob.keyCount(), { count: Account.PREKEYS, pqCount: Account.PREKEYS });
  const ids = new Set();
  for (let i = 0; i < Account.PREKEYS; i++) {
    const [bundle] = await alice.open(bob);
    assert.equal(bundle.registrationId(), bob.registrationId);
    ids.add(bundle.preKeyId());
  }
  assert.equal(ids.size, Account.PREKEYS);
  const [last] = await alice.open(bob);
  assert.equal(last.preKeyId(), null);
  assert.equal(last.kyberPreKeyId(), 1);
  assert.deepEqual(await bob.keyCount(), { count: 0, pqCount: 0 });
  await assert.rejects(alice.open(bob, carol.accessKey), code(ErrorCode.RequestUnauthorized));
  await bob.uploadOneTimeKeys();
});

test('a message by name is answered by a sealed one', async () => {
  await alice.open(bob);
  await alice.sendByName(bob, 'by name');
  const named = await bob.next();
  assert.equal(named.source, alice.aci.getServiceIdString());
  assert.deepEqual(await bob.read(named), { text: 'by name', from: alice.aci.getServiceIdString() });
  await bob.sendSealed(alice, 'sealed');
  const sealed = await alice.next();
  assert.equal(sealed.source, undefined);
  assert.deepEqual(await alice.read(sealed), { text: 'sealed', from: bob.aci.getServiceIdString() });
});

test('a sealed message needs the access key of its recipient', async () => {
  await carol.open(dora);
  await assert.rejects(
    carol.sendSealed(dora, 'no', { accessKey: alice.accessKey }),
    code(ErrorCode.RequestUnauthorized),
  );
  await carol.sendSealed(dora, 'yes', { onlineOnly: true });
  assert.equal((await dora.read(await dora.next())).text, 'yes');
});

test('one sealed message reaches many, with their combined access key alone', async () => {
  const peers = [alice, bob, dora];
  for (const peer of peers) {
    await carol.open(peer);
  }
  const payload = await carol.sealedToMany(peers, 'to many');
  assert.equal((await carol.sendToMany(peers, payload, combined([alice, bob]))).status, 401);
  assert.deepEqual(await carol.sendToMany(peers, payload), { status: 200, body: { uuids404: [] } });
  for (const peer of peers) {
    const received = await peer.next();
    assert.equal(received.source, undefined);
    assert.deepEqual(await peer.read(received), { text: 'to many', from: carol.aci.getServiceIdString() });
  }
});

test('a story is refused, where it needs no key, and reaches nobody', async () => {
  await dora.open(carol);
  const payload = await dora.sealedToMany([carol], 'story');
  await assert.rejects(
    dora.anonymous.sendMultiRecipientMessage({
      payload, timestamp: Date.now(), auth: 'story', onlineOnly: false, urgent: false,
    }),
    status(403),
  );
  await dora.sendSealed(carol, 'the first to come');
  assert.equal((await carol.read(await carol.next())).text, 'the first to come');
});

/** A registration id that is not the account's. */
function otherRegistrationId(account) {
  return (account.registrationId % 0x3fff) + 1;
}

test('devices that are not what the sender thinks are named', async () => {
  await alice.open(carol);
  const mismatch = (expected) => (error) => {
    assert.equal(error.code, ErrorCode.MismatchedDevices, `${error}`);
    const [{ account, missingDevices, extraDevices, staleDevices }] = error.entries;
    assert.equal(account.getServiceIdString(), carol.aci.getServiceIdString());
    assert.deepEqual({ missingDevices, extraDevices, staleDevices }, expected);
    return true;
  };
  const other = otherRegistrationId(carol);
  const stale = mismatch({ missingDevices: [], extraDevices: [], staleDevices: [1] });
  await assert.rejects(alice.sendSealed(carol, 'stale', { registrationId: other }), stale);
  await assert.rejects(alice.sendByName(carol, 'stale', { registrationId: other }), stale);
  await assert.rejects(
    alice.sendSealed(carol, 'second', { deviceId: 2 }),
    mismatch({ missingDevices: [1], extraDevices: [2], staleDevices: [] }),
  );
});

test('devices of one of many that are not what the sender thinks are named, and nobody is reached', async () => {
  const both = [alice, dora];
  await bob.open(alice);
  const refusal = async (address, text) => {
    const payload = await bob.sealedToMany(both, text, [alice.address, address]);
    const { status, body } = await bob.sendToMany(both, payload);
    assert.deepEqual(body.map((entry) => entry.uuid), [dora.aci.getServiceIdString()]);
    return [status, body[0].devices];
  };
  const stale = await bob.believe(dora, 1, otherRegistrationId(dora));
  assert.deepEqual(await refusal(stale, 'stale'), [410, { staleDevices: [1] }]);
  const second = await bob.believe(dora, 2, dora.registrationId);
  assert.deepEqual(await refusal(second, 'second'), [409, { missingDevices: [1], extraDevices: [2] }]);
  for (const peer of both) {
    await bob.open(peer);
    await bob.sendSealed(peer, 'the first to come');
    assert.equal((await peer.read(await peer.next())).text, 'the first to come');
  }
});

test('a message to an account that never was is told by name and not without', async () => {
  const nobody = Aci.fromUuid(crypto.randomUUID());
  await alice.open(bob);
  await assert.rejects(alice.sendByName(bob, 'no', { destination: nobody }), code(ErrorCode.ServiceIdNotFound));
  const unauthorized = code(ErrorCode.RequestUnauthorized);
  await assert.rejects(alice.sendSealed(bob, 'no', { destination: nobody }), unauthorized);
  const request = { target: nobody, device: 'all', auth: { accessKey: bob.accessKey } };
  await assert.rejects(alice.anonymous.getPreKeys(request), unauthorized);
});

test('what is too large or comes too often is refused', async () => {
  await alice.open(dora);
  await assert.rejects(alice.sendSealed(dora, 'x'.repeat(100_000)), status(413));
  await alice.sendSealed(dora, 'x'.repeat(60_000));
  assert.equal((await dora.read(await dora.next())).text.length, 60_000);
  const impatient = async () => {
    for (let i = 0; i < 30; i++) {
      await new Account('+15558888888').register(new Uint8Array(randomBytes(24))).catch((error) => {
        if (error.code === ErrorCode.RateLimitedError) {
          throw error;
        }
      });
    }
  };
  await assert.rejects(impatient, (error) => error.code === ErrorCode.RateLimitedError && error.retryAfterSecs > 0);
});

test('a full queue refuses what is for it and keeps nothing from others', async () => {
  await carol.open(dora);
  await carol.open(bob);
  await dora.disconnect();
  for (let i = 0; i < service.stored; i++) {
    await carol.sendSealed(dora, `stored ${i}`);
  }
  const saysWhen = (error) => error.code === ErrorCode.RateLimitedError && error.retryAfterSecs > 0;
  await assert.rejects(carol.sendSealed(dora, 'more'), saysWhen);
  const payload = await carol.sealedToMany([bob, dora], 'to both');
  assert.deepEqual(await carol.sendToMany([bob, dora], payload), {
    status: 200,
    body: { uuids404: [], uuids429: [dora.aci.getServiceIdString()] },
  });
  assert.equal((await bob.read(await bob.next())).text, 'to both');
  assert.equal((await carol.sendToMany([dora], await carol.sealedToMany([dora], 'to one'))).status, 429);
  await dora.connect();
  for (let i = 0; i < service.stored; i++) {
    assert.equal((await dora.read(await dora.next())).text, `stored ${i}`);
  }
});

test('a message that was not acknowledged comes again, and one that was does not', async () => {
  await carol.open(bob);
  await bob.disconnect();
  await carol.sendSealed(bob, 'stored');
  await bob.connect(() => false);
  const first = await bob.next();
  await bob.disconnect();
  await bob.connect();
  const again = await bob.next();
  assert.equal(again.guid, first.guid);
  assert.equal((await bob.read(again)).text, 'stored');
  // Whether the acknowledgement was heard shows only once the service has handled what came after it.
  await bob.keyCount();
  await bob.disconnect();
  await bob.connect();
  await carol.sendSealed(bob, 'next');
  assert.equal((await bob.read(await bob.next())).text, 'next');
});

test('an account deletes itself', async () => {
  assert.equal((await dora.call('DELETE', '/v1/accounts/me')).status, 204);
  await assert.rejects(carol.open(dora), code(ErrorCode.RequestUnauthorized));
});
