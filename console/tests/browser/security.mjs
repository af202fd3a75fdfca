// What a browser, and who pretends to be one, may do: headers, origins, sessions that ended, and people with few rights.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:https';
import { join } from 'node:path';
import { button, heading } from './visitor.mjs';

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'x-frame-options': 'DENY',
};
const OWN = { 'sec-fetch-site': 'same-origin' };
const JSON_BODY = { 'content-type': 'application/json' };

/** A request as no browser makes it, with the headers that are given and no others. */
function send(address, { method = 'GET', headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(address, { method, headers, rejectUnauthorized: false }, (answer) => {
      let text = '';
      answer.on('data', (part) => (text += part));
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** A page of somebody else, at another port of the same host: for browsers it is of the same site. */
async function otherPage(folder, html) {
  const [key, certificate] = [join(folder, 'other.key'), join(folder, 'other.pem')];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=other', '-keyout', key, '-out', certificate], { stdio: 'ignore' });
  const server = createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (_, answer) => answer.end(html));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { address: `https://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

export async function security({ test, stage, secured, visitors }) {
  const ann = await visitors.come();
  let [base, api, page, cookie] = [];

  await test('a person with a certificate logs in, and the session\'s cookie is out of reach for scripts and other sites', async () => {
    secured.addPerson('ann', 'admin');
    const link = secured.link('ann');
    base = new URL(link).origin;
    api = `${base}/api/v1`;
    page = await ann.logIn(link);
    await page.getByText('ann', { exact: false }).first().waitFor();
    assert.equal(await page.evaluate(() => document.cookie), '');
    const [found, ...more] = await ann.context.cookies();
    assert.deepEqual(more, []);
    assert.equal(found.name, `__Host-drystone-${new URL(base).port}`);
    assert.deepEqual([found.httpOnly, found.secure, found.sameSite, found.path], [true, true, 'Strict', '/']);
    cookie = { cookie: `${found.name}=${found.value}` };
  });

  await test('pages, answers of the API and refusals all carry the security headers', async () => {
    const script = /src="(\/_app\/[^"]+\.js)"/.exec((await send(base)).text)?.[1];
    assert.ok(script, 'the page names a script');
    for (const [address, headers, status] of [
      [`${base}/`, {}, 200], [`${base}/disks/any/path`, {}, 200], [base + script, {}, 200], [`${base}/mark.svg`, {}, 200],
      [`${api}/disks`, { ...OWN, ...cookie }, 200], [`${api}/disks`, OWN, 401], [`${api}/disks`, {}, 403], [`${api}/nothing`, { ...OWN, ...cookie }, 404],
    ]) {
      const answer = await send(address, { headers });
      assert.equal(answer.status, status, address);
      for (const [name, value] of Object.entries(HEADERS)) assert.equal(answer.headers[name], value, `${name} of ${address}`);
      if (address.startsWith(api)) assert.equal(answer.headers['cache-control'], 'no-store', address);
    }
  });

  await test('the policy holds in the browser: scripts in the page and requests elsewhere are refused', async () => {
    // Each is an error in the console, which is what is wanted here.
    const { problems } = ann;
    const [ran, refused] = await page.evaluate(async () => {
      const script = document.createElement('script');
      script.textContent = 'window.ran = true';
      document.body.append(script);
      const refused = await fetch('https://127.0.0.1:9/').then(() => false, () => true);
      return [window.ran === true, refused];
    });
    assert.deepEqual([ran, refused], [false, true]);
    assert.equal(problems.splice(0).filter((text) => /Content Security Policy/.test(text)).length >= 2, true);
  });

  await test('a stolen cookie alone counts for nothing: requests without the headers of our own pages are refused', async () => {
    const disk = JSON.stringify({ name: 'forged', size: 1 << 30 });
    for (const headers of [
      {}, { origin: 'https://evil.example' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'none' },
      { ...OWN, origin: 'https://evil.example' },
    ]) {
      for (const method of ['GET', 'POST']) {
        const answer = await send(`${api}/disks`, { method, headers: { ...cookie, ...JSON_BODY, ...headers }, ...(method === 'POST' ? { body: disk } : {}) });
        assert.equal(answer.status, 403, `${method} ${JSON.stringify(headers)}: ${answer.text}`);
      }
    }
    const form = await send(`${api}/disks`, { method: 'POST', headers: { ...cookie, ...OWN, 'content-type': 'text/plain' }, body: disk });
    assert.equal(form.status, 403, form.text);
    const own = await send(`${api}/disks`, { headers: { ...cookie, ...OWN } });
    assert.deepEqual([own.status, JSON.parse(own.text)], [200, []]);
  });

  await test('a page of another origin reads nothing, changes nothing, and shows nothing of the console in a frame', async () => {
    const other = await otherPage(stage.folder, '<!doctype html><title>other</title><body>');
    ann.expects.add(403);
    const evil = await ann.openPage(other.address);
    const tried = await evil.evaluate(async (address) => {
      const body = JSON.stringify({ name: 'forged', size: 1 << 30 });
      const read = await fetch(`${address}/disks`, { credentials: 'include' }).then(() => 'read', () => 'refused');
      const sent = await fetch(`${address}/disks`, { method: 'POST', credentials: 'include', mode: 'no-cors', body }).then(({ type }) => type, () => 'refused');
      const json = await fetch(`${address}/disks`, { method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json' }, body }).then(() => 'sent', () => 'refused');
      return [read, sent, json];
    }, api);
    assert.equal(tried[0], 'refused');
    assert.ok(['opaque', 'refused'].includes(tried[1]), tried[1]);
    assert.equal(tried[2], 'refused');
    await evil.evaluate((address) => {
      const frame = document.createElement('iframe');
      frame.src = address;
      document.body.append(frame);
      return new Promise((resolve) => (frame.onload = resolve));
    }, base);
    const framed = evil.frames().find((frame) => frame !== evil.mainFrame());
    assert.ok(!framed.url().startsWith(base), framed.url());
    const [answer] = await Promise.all([
      evil.waitForNavigation(),
      evil.evaluate((address) => {
        const form = Object.assign(document.createElement('form'), { method: 'post', enctype: 'text/plain', action: `${address}/disks` });
        form.append(Object.assign(document.createElement('input'), { name: '{"name":"forged","size":1073741824,"x":"', value: '"}' }));
        document.body.append(form);
        form.submit();
      }, api),
    ]);
    assert.equal(answer.status(), 403);
    await evil.close();
    other.close();
    ann.problems.splice(0);
    ann.expects.delete(403);
    const left = await send(`${api}/disks`, { headers: { ...cookie, ...OWN } });
    assert.deepEqual(JSON.parse(left.text), []);
  });

  await test('a viewer is offered no change, and is refused one', async () => {
    secured.addPerson('vic', 'viewer');
    const vic = await visitors.come();
    const view = await vic.logIn(secured.link('vic'));
    for (const [path, title, verb, right] of [
      ['/disks/new?name=forged&size=1GiB', 'Create disk', 'Create disk', 'change disks'],
      ['/devices', 'Devices', 'Add devices', 'change the cluster'],
      ['/hosts/s', 's', 'Start maintenance', 'change the cluster'],
    ]) {
      await view.goto(base + path);
      await heading(view, title).waitFor();
      const off = view.getByRole('button', { name: `${verb} (You may not ${right})`, exact: true });
      await off.waitFor();
      assert.equal(await off.getAttribute('aria-disabled'), 'true');
    }
    vic.expects.add(403);
    const refused = await view.evaluate(async () => {
      const answer = await fetch('/api/v1/disks', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name: 'forged', size: 1 << 30 }) });
      return { status: answer.status, ...(await answer.json()) };
    });
    assert.deepEqual([refused.status, refused.code], [403, 'denied'], JSON.stringify(refused));
    await vic.context.close();
  });

  await test('the session of a person who is removed ends at once, in the open page, too', async (t) => {
    await page.goto(`${base}/disks`);
    await heading(page, 'Disks').waitFor();
    ann.expects.add(401);
    secured.removePerson('ann');
    const removed = performance.now();
    await page.getByText('Sign in to continue.').waitFor();
    t.diagnostic(`the page asked to sign in after ${((performance.now() - removed) / 1000).toFixed(1)} s`);
    assert.equal((await send(`${api}/disks`, { headers: { ...cookie, ...OWN } })).status, 401);
    assert.throws(() => secured.link('ann'), /denied/);
  });

  await test('a session that signed out is over, also for who kept its cookie', async () => {
    secured.addPerson('bob', 'operator');
    const bob = await visitors.come();
    const view = await bob.logIn(secured.link('bob'));
    const [kept] = await bob.context.cookies();
    const headers = { ...OWN, cookie: `${kept.name}=${kept.value}` };
    assert.equal((await send(`${api}/me`, { headers })).status, 200);
    await button(view, 'Sign out').click();
    await view.getByText('With a link', { exact: true }).waitFor();
    assert.equal((await send(`${api}/me`, { headers })).status, 401);
    assert.equal((await send(`${api}/me`, { headers: { ...OWN, cookie: `${kept.name}=${'0'.repeat(64)}` } })).status, 401);
  });
}
