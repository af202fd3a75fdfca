// Opens every page of a running server, light and dark, and looks for what no unit test sees: errors in the console,
// exceptions, requests that the policy refuses, and what axe finds serious. Writes a screenshot of each.
//
//   npm run look -- --api unix:/run/drystone/api.sock --out look [--only disks]
//   npm run look -- --base https://host:8443 --out look
import { chromium } from 'playwright-core';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { serve } from './serve.mjs';

const option = (name, fallback) => {
  const index = process.argv.indexOf(`--${name}`);
  return index < 0 ? fallback : process.argv[index + 1];
};
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const out = option('out', 'look');
const only = option('only', '');
const api = option('api', '');
const server = api ? await serve(api, 0) : null;
const base = server ? `http://127.0.0.1:${server.address().port}` : option('base', 'http://127.0.0.1:9411');
mkdirSync(out, { recursive: true });

/** The pages; those of one thing take the first that the server has, or the one that the options name. */
async function pages() {
  const list = async (path) => {
    const answer = await fetch(`${base}/api/v1/${path}`);
    return answer.ok ? await answer.json() : [];
  };
  const name = (things) => encodeURIComponent(things[0]?.name ?? '');
  const disk = option('disk', name((await list('disks')).filter((one) => one.client_count > 0)) || name(await list('disks')));
  const host = name(await list('hosts'));
  const policy = name((await list('policies')).filter((one) => !one.built_in)) || 'default';
  const all = {
    login: '/login',
    overview: '/',
    health: '/health',
    tasks: '/tasks',
    events: '/tasks?tab=events',
    disks: '/disks',
    create: '/disks/new?policy=default&size=10GiB&name=look',
    policies: '/policies',
    'policy-new': '/policies/new',
    policy: `/policies/${policy}`,
    capacity: '/capacity',
    performance: '/performance',
    hosts: '/hosts',
    host: `/hosts/${host}`,
    devices: '/devices',
    resync: '/resync',
    people: '/people',
    settings: '/settings',
    start: '/start',
  };
  if (disk) {
    all.disk = `/disks/${disk}`;
    for (const tab of ['load', 'histograms', 'snapshots', 'attach', 'settings', 'events']) all[`disk-${tab}`] = `/disks/${disk}?tab=${tab}`;
  }
  return Object.entries(all).filter(([page]) => only === '' || only.split(',').includes(page));
}

const browser = await chromium.launch({ executablePath: option('browser', '/usr/bin/chromium'), args: ['--no-sandbox'] });
const found = [];
const width = Number(option('width', '1360'));
for (const scheme of option('schemes', 'light,dark').split(',')) {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 }, locale: option('locale', 'en-GB'), ignoreHTTPSErrors: true, bypassCSP: false });
  for (const [name, path] of await pages()) {
    const page = await context.newPage();
    page.on('console', (message) => {
      // A path that this release of the API does not have yet is asked for once, and done without.
      const isAbsent = message.text().includes('404') && /\/api\/v1\/(stream|tasks|series)/.test(message.location().url);
      if (message.type() === 'error' && !isAbsent) found.push(`${name} (${scheme}): console: ${message.text()} ${message.location().url}`);
    });
    page.on('pageerror', (error) => found.push(`${name} (${scheme}): exception: ${error.stack}`));
    await page.goto(base + path, { waitUntil: 'load' });
    await page.waitForSelector('h1', { timeout: 60_000 }).catch(() => found.push(`${name} (${scheme}): no heading`));
    await page.waitForTimeout(Number(option('wait', '1800')));
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (overflow > 0) found.push(`${name} (${scheme}): wider than the window by ${overflow} pixels`);
    await page.screenshot({ path: `${out}/${name}-${scheme}.png`, fullPage: true });
    // In the page's own world the policy would refuse a script that is put in; evaluate is the debugger's.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
    for (const { id, impact, nodes } of violations) {
      if (impact !== 'serious' && impact !== 'critical') continue;
      found.push(`${name} (${scheme}): axe ${impact} ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')} ${nodes[0]?.any[0]?.message ?? ''}`);
    }
    await page.close();
  }
  await context.close();
}
await browser.close();
server?.close();
server?.closeAllConnections();
for (const line of found) console.error(line);
console.log(found.length === 0 ? `all pages look well; screenshots are in ${out}` : `${found.length} findings`);
process.exit(found.length === 0 ? 0 : 1);
