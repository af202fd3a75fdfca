// Links, sessions, and the stream.
import assert from 'node:assert/strict';
import { button, heading } from './visitor.mjs';

export async function enter({ test, demo, visitors }, shared) {
  const link = demo.link();
  const base = new URL(link).origin;

  await test('without a session every page asks to sign in', async () => {
    const stranger = await visitors.come();
    stranger.expects.add(401);
    for (const path of ['/', '/disks', '/hosts/a', '/people']) {
      const page = await stranger.openPage(base + path);
      await heading(page, 'Drystone').waitFor();
      await page.getByText('With a link', { exact: true }).waitFor();
      await page.close();
    }
  });

  await test('a link of `drystone console` opens the console at the host\'s own address, and leaves no code behind', async () => {
    shared.admin = await visitors.come();
    await shared.admin.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    shared.page = await shared.admin.logIn(link);
    assert.ok(!shared.page.url().includes(new URL(link).hash), shared.page.url());
    shared.base = base;
  });

  await test('a link is good once', async () => {
    const second = await visitors.come();
    second.expects.add(403);
    const page = await second.openPage(link);
    await page.getByRole('alert').getByText('used already').waitFor();
    second.expects.add(401);
    await page.goto(`${base}/disks`);
    await page.getByText('Sign in to continue.').waitFor();
  });

  await test('the stream tells of changes: a disk that the command line creates appears by itself', async (t) => {
    const { page } = shared;
    await page.getByText('Live', { exact: true }).waitFor();
    await page.goto(`${base}/disks`);
    await page.getByText('Live', { exact: true }).waitFor();
    demo.ask('disk', 'create', 'from-the-shell', '64MiB');
    const made = performance.now();
    await page.getByRole('link', { name: 'from-the-shell' }).waitFor();
    t.diagnostic(`shown ${((performance.now() - made) / 1000).toFixed(1)} s after the command had ended`);
    demo.ask('disk', 'delete', 'from-the-shell', '--confirm', 'from-the-shell');
    await page.getByRole('link', { name: 'from-the-shell' }).waitFor({ state: 'detached' });
  });

  await test('the keyboard reaches the content first, then the menu, and a page by it', async () => {
    const { page } = shared;
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim());
    await page.goto(base);
    await heading(page, 'Overview').waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await focused(), 'Skip to content');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'content');
    await page.goto(base);
    await heading(page, 'Overview').waitFor();
    for (let count = 0; count < 30 && (await focused()) !== 'Disks'; count += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await heading(page, 'Disks').waitFor();
    for (let count = 0; count < 40 && (await focused()) !== 'Create disk'; count += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await heading(page, 'Create disk').waitFor();
  });

  await test('an address that is no page says so', async () => {
    shared.admin.expects.add('Not found: /nothing-here');
    await shared.page.goto(`${base}/nothing-here`);
    await heading(shared.page, 'There is no such page').waitFor();
  });
}

/** At the end, since it ends the session of all others. */
export async function leave({ test }, shared) {
  await test('who signs out in one tab is out in all others', async (t) => {
    const { admin, base } = shared;
    const other = await admin.openPage(`${base}/disks`);
    await heading(other, 'Disks').waitFor();
    admin.expects.add(401);
    await shared.page.goto(base);
    await button(shared.page, 'Sign out').click();
    await shared.page.getByText('With a link', { exact: true }).waitFor();
    const out = performance.now();
    await other.getByText('Sign in to continue.').waitFor();
    t.diagnostic(`the other tab asked to sign in after ${((performance.now() - out) / 1000).toFixed(1)} s`);
    await shared.page.goto(`${base}/disks`);
    await shared.page.getByText('Sign in to continue.').waitFor();
  });
}
