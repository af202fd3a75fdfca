// What the pages of a large cluster cost: hosts and disks as many as the options say, real ones, all on this machine.
//
//   npm run load -- --program ../target/release/drystone [--hosts 64] [--disks 1000] [--tabs 5] [--browser /usr/bin/chromium]
//
// Measures the time until a page is usable over a slow link, how smoothly its table scrolls, and the processor that open tabs cost the
// host that they ask. Fails where a limit is exceeded. Disks are created while a few hosts run. In a cluster hosts have processors of their
// own, and the browser has one, too: here, where there are many, all hosts but the one that is asked yield to both.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { Demo, eventually, sleep, Stage } from './browser/demo.mjs';
import { option } from './browser/options.mjs';
import { Visitors } from './browser/visitor.mjs';

const HOSTS = Number(option('hosts', '64'));
const DISKS = Number(option('disks', '1000'));
const TABS = Number(option('tabs', '5'));
/** Round trip of the link that pages are opened over. */
const LATENCY_MS = 100;
/** How often each is opened so, by a browser that runs already. An odd number. */
const FIRST_USES = 5;
const SCROLL_SECONDS = 10;
const CPU_SECONDS = 30;
/** Until hosts that have started know of one another. */
const SETTLE_MS = 20_000;
const LIMITS = { usableMs: 1_000, frameMs: 1_000, cpuPercent: 0.5 };
/** Requests at once while disks are created. */
const AT_ONCE = 8;
const TICKS_PER_SECOND = 100;

/** Hosts that run while disks are created. */
const FEW_HOSTS = Math.min(HOSTS, 4);

const stage = new Stage(option('program', 'drystone'));
const demo = new Demo(stage, HOSTS);
const visitors = new Visitors();
const exceeded = [];
const report = (what, value, unit, limit) => {
  const isOver = limit !== undefined && value > limit;
  console.log(`${what}: ${value.toFixed(unit === '%' ? 2 : 0)} ${unit}${limit === undefined ? '' : ` (limit ${limit} ${unit}${isOver ? ': EXCEEDED' : ''})`}`);
  if (isOver) exceeded.push(what);
};

/** Below the ports that connections get by themselves (ip_local_port_range): thousands of these are open before the last host starts. */
const FIRST_PORT = 20_000;

/** Hosts with as little memory as they start with: a demo's usual ones would not fit. A demo takes configurations that are there. */
function configure() {
  for (const [index, name] of names().entries()) {
    const folder = join(demo.folder, name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'host.toml'), `name = "${name}"
data_dir = "d"
[listen]
nbd = ["127.0.0.1:${FIRST_PORT + index}", "unix:nbd.sock"]
[cluster]
directory = "unix:${demo.folder}/demo.sock"
[memory]
buffers = "128MiB"
tables = "32MiB"
[[group]]
log = "log.img"
capacity = ["capacity.img"]
log_size = "128MiB"
file_size = "64GiB"
create = "if-blank"
`);
  }
}

function names() {
  const letter = (index) => String.fromCharCode(97 + (index % 26));
  return Array.from({ length: HOSTS }, (_, index) => (index < 26 ? letter(index) : letter(Math.floor(index / 26) - 1) + letter(index)));
}

function create(name) {
  const body = JSON.stringify({ name, size: 10 * 1024 ** 3, unless_there: true });
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath: `${demo.folder}/a/d/api.sock`, path: '/api/v1/disks', method: 'POST', headers: { host: 'localhost', 'content-type': 'application/json' } }, (answer) => {
      let text = '';
      answer.on('data', (part) => (text += part));
      answer.on('end', () => (answer.statusCode < 300 ? resolve() : reject(new Error(`${name}: ${text}`))));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** The process of a host. */
function hostProcess(name) {
  const wanted = join(demo.folder, name, 'host.toml');
  return readdirSync('/proc').find((id) => {
    if (!/^\d+$/.test(id)) return false;
    try {
      return readFileSync(`/proc/${id}/cmdline`, 'utf8').split('\0').includes(wanted);
    } catch {
      return false;
    }
  });
}

/** Lets a process, with all its threads, run only when no other wants to. */
function yieldProcess(id) {
  for (const thread of readdirSync(`/proc/${id}/task`)) setPriority(Number(thread), constants.priority.PRIORITY_LOW);
}

function cpuSeconds(id) {
  const fields = readFileSync(`/proc/${id}/stat`, 'utf8').replace(/^.*\) /, '').split(' ');
  // utime and stime (proc_pid_stat(5)), behind the name of the program.
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

async function cpuPercent(id) {
  const before = cpuSeconds(id);
  await sleep(CPU_SECONDS * 1_000);
  return ((cpuSeconds(id) - before) / CPU_SECONDS) * 100;
}

/**
 * Milliseconds from when a page is asked for until a link that is part of its content can be seen. A browser that has nothing of the pages yet,
 * with the session of the other one. The page looks for itself, at each change: who waits from outside finds out up to half a second later.
 */
async function firstUse(visitor, origin, path, content) {
  const fresh = await visitors.come();
  await fresh.context.addCookies(await visitor.context.cookies());
  const page = await fresh.openPage();
  await page.addInitScript((content) => {
    const seen = new MutationObserver(() => {
      if (!document.querySelector(`main a[href="${content}"]`)?.checkVisibility()) return;
      seen.disconnect();
      // Drawn by the frame after the next callback.
      requestAnimationFrame(() => requestAnimationFrame(() => (window.usableAt = performance.now())));
    });
    seen.observe(document, { childList: true, subtree: true });
  }, content);
  const session = await fresh.context.newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', { offline: false, latency: LATENCY_MS, downloadThroughput: -1, uploadThroughput: -1 });
  await page.goto(origin + path);
  const usable = await (await page.waitForFunction(() => window.usableAt)).jsonValue();
  await fresh.context.close();
  return usable;
}

/** Scrolls a table down and up; the frames that it took. */
async function scroll(page) {
  return page.evaluate(async (seconds) => {
    const table = document.querySelector('main table')?.parentElement;
    const box = table && table.scrollHeight > table.clientHeight + 1 ? table : document.scrollingElement;
    const frames = [];
    const began = performance.now();
    let last = began;
    while (last - began < seconds * 1_000) {
      const now = await new Promise(requestAnimationFrame);
      frames.push(now - last);
      last = now;
      const share = ((now - began) / 1_000) % 2;
      box.scrollTop = (share < 1 ? share : 2 - share) * (box.scrollHeight - box.clientHeight);
    }
    return frames.slice(1);
  }, SCROLL_SECONDS);
}

try {
  configure();
  await visitors.start(option('browser', '/usr/bin/chromium'));
  const few = new Demo(stage, FEW_HOSTS);
  await few.start();
  const disks = Array.from({ length: DISKS }, (_, index) => `disk-${String(index).padStart(4, '0')}`);
  const began = performance.now();
  const waiting = [...disks];
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let name = waiting.shift(); name; name = waiting.shift()) {
      // The directory of a demo on a busy machine may not answer in time; a repeated creation finds what the first one created.
      const wanted = name;
      await eventually(wanted, () => create(wanted).then(() => true));
    }
  }));
  console.log(`${DISKS} disks created in ${((performance.now() - began) / 1_000).toFixed(0)} s`);
  await few.stop();
  await demo.start();
  if (HOSTS > FEW_HOSTS) names().filter((name) => name !== 'a').forEach((name) => yieldProcess(hostProcess(name)));
  await sleep(SETTLE_MS);
  console.log(`${HOSTS} hosts run`);

  const visitor = await visitors.come();
  const page = await visitor.logIn(demo.link());
  const { origin } = new URL(page.url());
  // One page is open at a time: this one would draw its charts meanwhile.
  await page.goto('about:blank');
  for (const [path, content] of [['/', '/hosts/a'], ['/disks', '/disks/disk-0000'], ['/hosts', '/hosts/a']]) {
    const uses = [];
    for (let turn = 0; turn < FIRST_USES; turn++) uses.push(await firstUse(visitor, origin, path, content));
    uses.sort((a, b) => a - b);
    report(`${path}: usable over ${LATENCY_MS} ms (${uses.map((each) => each.toFixed(0)).join(', ')}), median`, uses[(FIRST_USES - 1) / 2], 'ms', LIMITS.usableMs);
  }
  for (const [path, first] of [['/disks', 'disk-0000'], ['/hosts', 'a']]) {
    await page.goto(origin + path);
    await page.getByRole('link', { name: first, exact: true }).waitFor();
    await sleep(2_000);
    const frames = await scroll(page);
    report(`${path}: longest of ${frames.length} frames in ${SCROLL_SECONDS} s`, Math.max(...frames), 'ms', LIMITS.frameMs);
    report(`${path}: frames above 100 ms`, frames.filter((frame) => frame > 100).length, 'frames');
  }
  await page.close();
  const id = hostProcess('a');
  await sleep(5_000);
  const idle = await cpuPercent(id);
  report('host without a tab', idle, '%');
  for (const path of ['/', '/disks']) {
    const pages = await Promise.all(Array.from({ length: TABS }, () => visitor.openPage(origin + path)));
    await sleep(10_000);
    const asked = new Map();
    pages[0].on('request', (request) => {
      const { pathname } = new URL(request.url());
      asked.set(pathname, (asked.get(pathname) ?? 0) + 1);
    });
    report(`host for each of ${TABS} tabs at ${path}`, (await cpuPercent(id) - idle) / TABS, '%', LIMITS.cpuPercent);
    console.log(`  a tab asked in ${CPU_SECONDS} s: ${[...asked].map(([pathname, count]) => `${pathname} ${count}`).join(', ') || 'nothing'}`);
    await Promise.all(pages.map((each) => each.close()));
    await sleep(3_000);
  }
  visitors.check();
} finally {
  await visitors.end();
  await stage.end();
}
if (exceeded.length > 0) {
  console.error(`limits exceeded: ${exceeded.join(', ')}`);
  process.exit(1);
}
