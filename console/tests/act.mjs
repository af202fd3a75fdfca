// Does by the pages what an administrator does, on a running cluster of several hosts: creates a disk, changes it, takes
// and deletes a snapshot, deletes the disk. Things are found by role and label, as people find them.
//
//   npm run act -- --api unix:/run/drystone/api.sock
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { serve } from './serve.mjs';

const option = (name, fallback) => {
  const index = process.argv.indexOf(`--${name}`);
  return index < 0 ? fallback : process.argv[index + 1];
};
const api = option('api', '');
const server = api ? await serve(api, 0) : null;
const base = server ? `http://127.0.0.1:${server.address().port}` : option('base', 'http://127.0.0.1:9411');
const name = `console-act-${process.pid}`;

const browser = await chromium.launch({ executablePath: option('browser', '/usr/bin/chromium'), args: ['--no-sandbox'] });
const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1360, height: 900 }, ignoreHTTPSErrors: true });
await context.grantPermissions(['clipboard-read', 'clipboard-write']);
const page = await context.newPage();
const problems = [];
page.on('pageerror', (error) => problems.push(String(error.stack)));
const button = (label) => page.getByRole('button', { name: label, exact: true });
const dialog = () => page.getByRole('dialog');
const inDialog = (label) => dialog().getByRole('button', { name: label, exact: true });

async function step(what, act) {
  process.stdout.write(`${what} … `);
  await act();
  assert.deepEqual(problems, []);
  console.log('ok');
}

try {
  await step('the keyboard reaches the content first', async () => {
    await page.goto(base);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to content');
  });
  await step('a disk is explained and created', async () => {
    await page.goto(`${base}/disks`);
    await page.getByRole('link', { name: 'Create disk' }).click();
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByLabel('Size', { exact: true }).fill('64MiB');
    await page.getByText('The cluster takes this request as it stands.').waitFor();
    assert.match(page.url(), new RegExp(`name=${name}`));
    await button('Create disk').click();
    await page.getByRole('heading', { level: 1, name }).waitFor();
    await page.getByText('Available').first().waitFor();
  });
  await step('a name that is taken is refused before it is sent', async () => {
    await page.goto(`${base}/disks/new?name=${name}&size=1GiB`);
    await page.getByRole('alert').getByText(name).first().waitFor();
  });
  await step('the command line of the page is copied', async () => {
    await page.goto(`${base}/disks/${name}`);
    await button(`Copy: drystone disk show ${name}`).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `drystone disk show ${name}`);
  });
  await step('the disk is made larger', async () => {
    await page.goto(`${base}/disks/${name}?tab=settings`);
    await button('Resize').click();
    await dialog().getByLabel('Size', { exact: true }).fill('128MiB');
    await inDialog('Resize').click();
    await dialog().waitFor({ state: 'detached' });
    await page.getByRole('row', { name: /Size 128 MiB/ }).waitFor();
  });
  await step('a policy is changed once its forecast is there', async () => {
    await button('Change policy').click();
    await dialog().getByLabel('Rules beside the policy').fill('iops_limit=500');
    await page.keyboard.press('Tab');
    await dialog().getByText('To be copied', { exact: true }).first().waitFor();
    await inDialog('Change').click();
    await dialog().waitFor({ state: 'detached' });
    await page.getByRole('row', { name: /iops_limit 500/ }).waitFor();
  });
  await step('a snapshot is taken and deleted', async () => {
    await page.getByRole('link', { name: 'Snapshots' }).click();
    await button('Take snapshot').click();
    await dialog().getByLabel('Name of the snapshot').fill('first');
    await inDialog('Take snapshot').click();
    await dialog().waitFor({ state: 'detached' });
    await button('Actions: first').click();
    await button('Delete').click();
    assert.equal(await inDialog('Delete (Type first to confirm)').getAttribute('aria-disabled'), 'true');
    await dialog().getByLabel('Type first to confirm').fill('first');
    await inDialog('Delete').click();
    await page.getByText('The disk has no snapshot.').waitFor();
  });
  await step('maintenance and evacuation tell what they would do, and Escape leaves them', async () => {
    await page.goto(`${base}/hosts`);
    await page.getByRole('region', { name: 'Hosts' }).getByRole('link').last().click();
    await button('Start maintenance').click();
    await dialog().getByText('Copied first', { exact: false }).waitFor();
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
  });
  await step('several disks are chosen and the table sorts, by the address', async () => {
    await page.goto(`${base}/disks?name=${name}`);
    await button('Sort by Size').or(page.getByRole('button', { name: /^Size/ })).first().click();
    await page.waitForURL(/sort=-size/);
    await page.getByRole('checkbox', { name: `Select ${name}` }).check();
    await button('Delete').click();
    await dialog().getByRole('textbox').fill('delete 1');
    await inDialog('Delete').click();
    await dialog().waitFor({ state: 'detached' });
    await page.getByText('No disk matches', { exact: false }).waitFor();
  });
  await step('an address that is no page says so', async () => {
    await page.goto(`${base}/nothing-here`);
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
  });
} finally {
  if (problems.length > 0) console.error(problems.join('\n'));
  await browser.close();
  server?.close();
  server?.closeAllConnections();
}
