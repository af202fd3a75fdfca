// Writes the pictures of the guide's page on the console, from a demo with guests at work.
//
//   npm run pictures -- --program ../target/release/drystone [--browser /usr/bin/chromium] [--out ../docs/guide/pictures]
//
// A window of a fixed size, light, in English; a picture that is larger than the limit fails.
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { Demo, eventually, sleep, Stage } from './browser/demo.mjs';
import { option } from './browser/options.mjs';
import { dialog, Visitors } from './browser/visitor.mjs';

const WINDOW = { width: 1280, height: 800 };
const BYTES_MAX = 120_000;
const QUALITY = 88;
/** Until charts show more than their beginning. */
const LOAD_SECONDS = 75;
const GUESTS = [
  { name: 'database', size: '4GiB', policy: 'default', job: ['--rw=randrw', '--rwmixread=70', '--bs=8k', '--iodepth=4', '--rate_iops=600,260'] },
  { name: 'mail', size: '5GiB', policy: 'method=parity', job: ['--rw=randread', '--bs=16k', '--iodepth=2', '--rate_iops=250'] },
  { name: 'web', size: '3GiB', policy: 'default', job: ['--rw=randread', '--bs=4k', '--iodepth=2', '--rate_iops=400'] },
  { name: 'backup', size: '4GiB', policy: 'default,stripes=2', job: ['--rw=write', '--bs=256k', '--iodepth=1', '--rate=12m'] },
];

const out = option('out', '../docs/guide/pictures');
mkdirSync(out, { recursive: true });
const stage = new Stage(option('program', 'drystone'));
const demo = new Demo(stage);
const visitors = new Visitors();

try {
  await Promise.all([demo.start(), visitors.start(option('browser', '/usr/bin/chromium'))]);
  const visitor = await visitors.come({ viewport: WINDOW, colorScheme: 'light' });
  for (const { name, size, policy } of GUESTS) demo.ask('disk', 'create', name, size, '--policy', policy);
  demo.ask('policy', 'create', 'gold', 'failures_to_tolerate=1', 'stripes=2');
  demo.ask('disk', 'snapshot', 'create', 'database', '--name', 'before-upgrade');
  for (const { name, job } of GUESTS) demo.load(name, ...job, '--size=256m', '--time_based', '--runtime=600');
  const page = await visitor.logIn(demo.link());
  const { origin } = new URL(page.url());
  const session = await visitor.context.newCDPSession(page);

  const picture = async (name) => {
    const path = `${out}/${name}.webp`;
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
    writeFileSync(path, Buffer.from(data, 'base64'));
    const { size } = statSync(path);
    console.log(`${path}: ${(size / 1000).toFixed(0)} kB`);
    if (size > BYTES_MAX) throw new Error(`${path} has ${size} bytes, and ${BYTES_MAX} are allowed`);
  };
  const show = async (path, settled) => {
    await page.goto(origin + path);
    await page.getByText(settled, { exact: false }).first().waitFor();
  };

  await page.goto(`${origin}/performance?range=300`);
  await sleep(LOAD_SECONDS * 1_000);
  await picture('performance');
  // The charts of the overview are of the same seconds where the page stays.
  await page.getByRole('link', { name: 'Overview', exact: true }).click();
  await page.getByText('Nothing is being copied').waitFor();
  await sleep(2_000);
  await picture('overview');
  await show('/start', 'Attach the first guest');
  await sleep(1_000);
  await picture('first-steps');
  await show('/disks/database', 'Why it stands so');
  await sleep(1_000);
  await picture('disk');
  await show('/disks/new?name=archive&size=2GiB&policy=default&rules=method%3Dparity', 'The cluster takes this request as it stands.');
  await picture('create');
  demo.order('kill', 'd');
  await eventually('a finding about the host', () => demo.findings().some(({ subject }) => subject === 'host d'));
  await show('/health', 'host d');
  await sleep(1_000);
  await picture('health');
  visitors.check();
} finally {
  await visitors.end();
  await stage.end();
}
