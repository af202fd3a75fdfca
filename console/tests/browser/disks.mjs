// A disk from its creation to its end, by the pages.
import assert from 'node:assert/strict';
import { button, confirm, dialog, heading, region } from './visitor.mjs';

const MOVE_MS = 60_000;

export async function disks({ test, demo }, shared) {
  const { page, base } = shared;
  const name = 'web';

  await test('a RAID-5 disk is created, with its forecast first', async () => {
    await page.goto(`${base}/disks`);
    await page.getByRole('link', { name: 'Create disk' }).click();
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByLabel('Size', { exact: true }).fill('192MiB');
    await page.getByLabel('Rules beside the policy').fill('method=parity');
    await page.keyboard.press('Tab');
    const forecast = region(page, 'What this policy gives now');
    await forecast.getByText('1 failed host or fault domain at once, of 4').waitFor();
    await forecast.getByText('1.33 bytes on devices for each byte of the disk').waitFor();
    await forecast.getByText('256 MiB').first().waitFor();
    assert.equal(await forecast.getByRole('row').count(), 5, 'a line for each of the four components, and the head');
    await page.getByText('The cluster takes this request as it stands.').waitFor();
    assert.match(page.url(), new RegExp(`name=${name}`));
    await button(page, 'Create disk').click();
    await heading(page, name).waitFor();
    await page.getByText('Compliant').first().waitFor();
    assert.deepEqual(new Set(demo.ask('disk', 'show', name).components.map(({ host }) => host)), new Set(['a', 'b', 'c', 'd']));
  });

  await test('a name that is taken is refused before it is sent', async () => {
    shared.admin.expects.add(409);
    await page.goto(`${base}/disks/new?name=${name}&size=1GiB`);
    await page.getByRole('alert').getByText(name).first().waitFor();
    shared.admin.expects.delete(409);
  });

  await test('the line for the command line is copied', async () => {
    await page.goto(`${base}/disks/${name}`);
    await button(page, `Copy: drystone disk show ${name}`).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `drystone disk show ${name}`);
  });

  await test('the disk is made larger', async () => {
    await page.goto(`${base}/disks/${name}?tab=settings`);
    await button(page, 'Resize').click();
    await dialog(page).getByLabel('Size', { exact: true }).fill('384MiB');
    await confirm(page, 'Resize');
    await page.getByRole('row', { name: /Size 384 MiB/ }).waitFor();
    assert.equal(demo.ask('disk', 'show', name).size, 384 << 20);
  });

  await test('its policy becomes a mirror once the forecast is there; the move is paused among the tasks, goes on, and is followed to its end', async (t) => {
    demo.write(name, '192M');
    await button(page, 'Change policy').click();
    await dialog(page).getByLabel('Rules beside the policy').fill('method=mirror,stripes=1');
    await page.keyboard.press('Tab');
    await dialog(page).getByText('Needs another layout').waitFor();
    await confirm(page, 'Change');
    const began = performance.now();
    await page.goto(`${base}/tasks`);
    const task = page.getByRole('row', { name: /^Change of layout disk web/ });
    for (const act of ['Pause the move of disk web', 'Resume the move of disk web']) {
      await button(task, act).click();
      await confirm(page, act);
    }
    await button(task, 'Pause the move of disk web').waitFor();
    await page.goto(`${base}/disks/${name}`);
    await region(page, 'Change of layout').waitFor();
    await region(page, 'Change of layout').waitFor({ state: 'detached', timeout: MOVE_MS });
    t.diagnostic(`moved after ${((performance.now() - began) / 1000).toFixed(1)} s`);
    await page.getByText('Compliant').first().waitFor();
    assert.equal(demo.ask('disk', 'show', name).components.length, 2);
  });

  await test('a snapshot is taken and deleted', async () => {
    await page.goto(`${base}/disks/${name}?tab=snapshots`);
    await button(page, 'Take snapshot').click();
    await dialog(page).getByLabel('Name of the snapshot').fill('first');
    await confirm(page, 'Take snapshot');
    await button(page, 'Actions: first').click();
    await button(page, 'Delete').click();
    assert.equal(await button(dialog(page), 'Delete (Type first to confirm)').getAttribute('aria-disabled'), 'true');
    await dialog(page).getByLabel('Type first to confirm').fill('first');
    await confirm(page, 'Delete');
    await page.getByText('The disk has no snapshot.').waitFor();
  });

  await test('several disks are chosen and the table sorts, by the address; they are deleted by a phrase', async () => {
    for (const each of ['old-1', 'old-2']) demo.ask('disk', 'create', each, '64MiB');
    await page.goto(`${base}/disks?name=old`);
    await page.getByRole('button', { name: /^Size/ }).first().click();
    await page.waitForURL(/sort=-size/);
    for (const each of ['old-1', 'old-2']) await page.getByRole('checkbox', { name: `Select ${each}` }).check();
    await button(page, 'Delete').click();
    await dialog(page).getByRole('textbox').fill('delete 2');
    await confirm(page, 'Delete');
    await page.getByText('No disk matches', { exact: false }).waitFor();
    assert.ok(!demo.ask('disk', 'list').some((disk) => disk.name.startsWith('old')));
  });
}
