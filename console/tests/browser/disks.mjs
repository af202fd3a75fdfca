// A disk from its creation to its end, by the pages.
import assert from 'node:assert/strict';
import { assertAccessible } from './look.mjs';
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

  await test('labels are given at creation, changed by a dialog, and find their disk by the address', async () => {
    await page.goto(`${base}/disks/new?name=labelled&size=64MiB`);
    await button(page, 'Add label').click();
    await page.getByLabel('Value of label 1').fill('db');
    await page.getByText('A label needs a key', { exact: true }).waitFor();
    await page.getByLabel('Key of label 1').fill('team');
    await page.getByText('The cluster takes this request as it stands.').waitFor();
    await button(page, 'Create disk').click();
    await heading(page, 'labelled').waitFor();
    assert.deepEqual(demo.ask('disk', 'show', 'labelled').labels, { team: 'db' });
    await page.getByRole('link', { name: 'team=db' }).click();
    await page.waitForURL(/label=team%3Ddb/);
    const table = region(page, 'Disks');
    await table.getByRole('link', { name: 'labelled', exact: true }).waitFor();
    await table.getByRole('link', { name, exact: true }).waitFor({ state: 'detached' });
    await page.getByLabel('Show labels').uncheck();
    await page.waitForURL(/labels=hidden/);
    assert.equal(await table.getByRole('columnheader', { name: 'Labels' }).count(), 0);

    await page.goto(`${base}/disks/labelled?tab=settings`);
    await button(page, 'Change labels').click();
    await button(dialog(page), 'Remove: team').click();
    await button(dialog(page), 'Add label').click();
    await dialog(page).getByLabel('Key of label 1').fill('env');
    await dialog(page).getByLabel('Value of label 1').fill('a, b');
    await dialog(page).getByText("drystone disk label labelled team- 'env=a, b'").waitFor();
    await assertAccessible(page);
    await confirm(page, 'Change labels');
    await page.getByRole('link', { name: 'env=a, b' }).waitFor();
    assert.deepEqual(demo.ask('disk', 'show', 'labelled').labels, { env: 'a, b' });

    await page.goto(`${base}/disks`);
    await page.getByLabel('Label', { exact: true }).fill('env');
    await page.keyboard.press('Enter');
    await button(page, 'Copy: drystone disk list --label env').waitFor();
    await table.getByRole('link', { name, exact: true }).waitFor({ state: 'detached' });
    await page.getByLabel('Label', { exact: true }).fill('team');
    await page.keyboard.press('Enter');
    await page.getByText('No disk matches', { exact: false }).waitFor();
    demo.ask('disk', 'delete', 'labelled', '--confirm', 'labelled');
  });

  await test('a label that is none is refused in the words of the API', async () => {
    shared.admin.expects.add(400);
    await page.goto(`${base}/disks/${name}?tab=settings`);
    await button(page, 'Change labels').click();
    await dialog(page).getByLabel('Key of label 1').fill('two words');
    await button(dialog(page), 'Change labels').click();
    await dialog(page).getByRole('alert').getByText('is not the key of a label').waitFor();
    await page.keyboard.press('Escape');
    shared.admin.expects.delete(400);
  });

  await test('a disk that a guest has is handed over to one further host, and the handover ended', async () => {
    demo.ask('disk', 'create', 'moving', '64MiB');
    demo.attach('moving');
    await page.goto(`${base}/disks/moving?tab=attach`);
    const clients = region(page, 'Attached clients');
    await clients.getByText('(1 client)').waitFor();
    assert.ok(!demo.mayAttach('moving', 'b'), 'without a handover');
    await button(clients, 'Hand over').click();
    await dialog(page).getByText('The disk stays attached at a.', { exact: false }).waitFor();
    const host = dialog(page).getByLabel('Host', { exact: true });
    assert.deepEqual(await host.getByRole('option').allTextContents(), ['b', 'c', 'd']);
    await host.selectOption('b');
    await dialog(page).getByLabel('Time', { exact: true }).selectOption('1 h');
    await assertAccessible(page);
    await confirm(page, 'Hand over');
    await clients.getByText('Handover: b may attach the disk as well until', { exact: false }).waitFor();
    assert.deepEqual(['b', 'c'].map((host) => demo.mayAttach('moving', host)), [true, false]);
    await button(clients, 'End handover').click();
    await confirm(page, 'End handover');
    await button(clients, 'Hand over').waitFor();
    assert.ok(!demo.mayAttach('moving', 'b'), 'after the handover');
    await page.goto(`${base}/disks`);
    demo.ask('disk', 'delete', 'moving', '--confirm', 'moving', '--detach-clients');
  });

  await test('who hands over a disk that no host has is told that nothing is needed', async () => {
    await page.goto(`${base}/disks/${name}?tab=attach`);
    await button(page, 'Hand over').click();
    await confirm(page, 'Hand over');
    await region(page, 'Attached clients').getByText('no other host has it', { exact: false }).waitFor();
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
