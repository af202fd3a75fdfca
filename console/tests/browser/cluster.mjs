// Devices, maintenance, and a host that dies.
import assert from 'node:assert/strict';
import { button, confirm, dialog, heading, region } from './visitor.mjs';

const GIB = 1 << 30;
/** A host that the pages are not asked from. */
const OTHER = 'b';
/** How soon the overview has to tell of a killed host: 3 s by the requirements, and more for a program built for tests on a busy machine. */
const TOLD_MS = 10_000;
const REPAIR_MS = 90_000;
/** Until a host that is not heard of counts as away, and no longer as suspect. */
const AWAY_MS = 60_000;
/** Until one that came back counts as well. */
const BACK_MS = 60_000;
/** Long enough that the page is open before the repair begins. */
const REPAIR_DELAY = '15s';

export async function cluster({ test, demo, stage }, shared) {
  const { page, base } = shared;

  await test('a blank device of another host is found, claimed by its row, and taken into use', async (t) => {
    let device;
    try {
      device = stage.loopDevice('claimed.img', 2 * GIB);
    } catch (error) {
      // A test machine without loop devices, or without root, has no other blank device to offer.
      t.skip(`no loop device: ${String(error.stderr ?? error.message).trim()}`);
      return;
    }
    await page.goto(`${base}/devices`);
    // Each host of the demo sees the devices of the same machine.
    const row = region(page, 'Unclaimed devices').getByRole('row').filter({ hasText: device, has: page.getByRole('cell', { name: OTHER, exact: true }) });
    await row.getByText('Free').waitFor();
    await row.getByRole('checkbox', { name: `Select ${device}` }).check();
    await button(region(page, 'Unclaimed devices'), 'Add devices').click();
    await dialog(page).getByLabel('Size of the log region').fill('512MiB');
    await confirm(page, 'Add devices');
    await region(page, 'Devices in use').getByText(device).waitFor();
    await row.waitFor({ state: 'detached' });
    const mine = demo.askAt(OTHER, 'device', 'list').find(({ path }) => path === device);
    assert.equal(mine?.role, 'log+capacity');
  });

  await test('a host goes into maintenance after the pre-check, and comes back', async () => {
    await page.goto(`${base}/hosts`);
    await region(page, 'Hosts').getByRole('link', { name: 'd', exact: true }).click();
    await heading(page, 'd').waitFor();
    await button(page, 'Start maintenance').click();
    await dialog(page).getByText('Copied first', { exact: false }).waitFor();
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'detached' });
    assert.equal(demo.ask('host', 'list').find(({ name }) => name === 'd').maintenance ?? null, null, 'Escape began nothing');
    await button(page, 'Start maintenance').click();
    await dialog(page).getByText('Possible', { exact: true }).waitFor();
    await confirm(page, 'Start maintenance');
    await page.getByText('In maintenance', { exact: true }).waitFor();
    await button(page, 'End maintenance').click();
    await confirm(page, 'End maintenance');
    await button(page, 'Start maintenance').waitFor();
    await page.getByText('In maintenance', { exact: true }).waitFor({ state: 'detached' });
  });
}

/** A host dies, and what it had is repaired. */
export async function loss({ test, demo }, shared) {
  const { page, base } = shared;
  let victim;
  await test('the overview tells within seconds that a host was killed', async (t) => {
    victim = demo.ask('disk', 'show', 'web').components.map(({ host }) => host).find((host) => host !== 'a');
    demo.ask('cluster', 'set', 'repair-delay', REPAIR_DELAY);
    await page.goto(base);
    await page.getByText('Live', { exact: true }).waitFor();
    const tile = (state) => region(page, 'Hosts').getByRole('link', { name: new RegExp(`^${victim} (${state})`) });
    await tile('Online').waitFor();
    demo.order('kill', victim);
    const killed = performance.now();
    await tile('Offline|Suspect').waitFor({ timeout: TOLD_MS });
    t.diagnostic(`told after ${((performance.now() - killed) / 1000).toFixed(1)} s`);
    shared.killed = killed;
  });

  await test('the repair is followed to its end on the resync page', async (t) => {
    await page.goto(`${base}/resync`);
    // In memory the copy itself takes less than a second, and may be over before the page asks again.
    await region(page, 'Resync').getByText(/^(Catching up after an absence|Rebuild after a loss)$/).first().waitFor({ timeout: REPAIR_MS });
    await page.getByText('All components are up to date').waitFor({ timeout: REPAIR_MS });
    t.diagnostic(`repaired ${((performance.now() - shared.killed) / 1000).toFixed(1)} s after the host was killed, with a repair delay of ${REPAIR_DELAY}`);
    await page.goto(`${base}/disks/web`);
    await page.getByText('Compliant').first().waitFor();
    const hosts = demo.ask('disk', 'show', 'web').components.map(({ host }) => host);
    assert.ok(hosts.length === 2 && !hosts.includes(victim), hosts.join());
  });
  shared.victim = victim;
}

/** Once the host has been away for long enough to be a finding of its own. */
export async function findings({ test, demo }, shared) {
  const { page, base, victim } = shared;
  await test('a finding is silenced, and the silence ended', async () => {
    await page.goto(`${base}/health`);
    const label = `Silence: host.away, host ${victim}`;
    await button(page, label).click({ timeout: AWAY_MS });
    await dialog(page).getByLabel('Reason').fill('it is being replaced');
    await confirm(page, 'Silence');
    await region(page, 'Silenced findings').getByText('it is being replaced').waitFor();
    assert.equal(await button(page, label).count(), 0);
    await button(region(page, 'Silences'), 'End the silence').click();
    await confirm(page, 'End the silence');
    await button(page, label).waitFor();
  });

  await test('a host is started again', async () => {
    demo.order('start', victim);
    await page.goto(base);
    await region(page, 'Hosts').getByRole('link', { name: new RegExp(`^${victim} Suspect`) }).waitFor();
  });
}

/** Once it has been there for long enough. */
export async function recovery({ test }, shared) {
  const { page, base, victim } = shared;
  await test('the host that was started again is online on the overview', async () => {
    await page.goto(base);
    await region(page, 'Hosts').getByRole('link', { name: new RegExp(`^${victim} Online`) }).waitFor({ timeout: BACK_MS });
  });
}
