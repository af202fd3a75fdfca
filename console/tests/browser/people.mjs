// People with passwords: added, changed and removed by an admin, and what they do themselves.
import assert from 'node:assert/strict';
import { assertAccessible } from './look.mjs';
import { button, confirm, dialog, heading, region } from './visitor.mjs';

const NAME = 'pat';
const FIRST = 'correct horse battery';
const OWN = 'a password of my own';
const LAST = 'staple of the admin';

export async function people({ test, secured, visitors }) {
  let [base, page, pat, view] = [];

  /** Signs in with a password; the page is left where that leads. */
  async function signIn(visitor, password) {
    visitor.expects.add(401);
    const opened = await visitor.openPage(`${base}/login`);
    await opened.getByLabel('Name', { exact: true }).fill(NAME);
    await opened.getByLabel('Password', { exact: true }).fill(password);
    await button(opened, 'Sign in').click();
    return opened;
  }

  async function isIn(opened) {
    await heading(opened, 'Overview').waitFor();
  }

  async function isOut(opened) {
    await opened.getByText('With a link', { exact: true }).waitFor();
  }

  async function typeTwice(password, again = password) {
    await dialog(page).getByLabel('New password', { exact: true }).fill(password);
    await dialog(page).getByLabel('New password again').fill(again);
    await page.keyboard.press('Tab');
  }

  const row = () => region(page, 'People').getByRole('row', { name: new RegExp(`^${NAME} Password`) }).first();

  async function choose(act) {
    await button(page, `Actions: ${NAME}, Password`).click();
    await button(page, act).click();
  }

  await test('a person with a password is added once the password is long enough and typed twice alike', async () => {
    secured.addPerson('dan', 'admin');
    const dan = await visitors.come();
    const link = secured.link('dan');
    base = new URL(link).origin;
    page = await dan.logIn(link);
    assert.equal(await button(page, 'Change password').count(), 0, 'who came by a link has no password to change');
    await page.goto(`${base}/people`);
    await region(page, 'People').getByRole('row', { name: /^dan Certificate Admin/ }).first().waitFor();
    await button(page, 'Add person').click();
    await dialog(page).getByLabel('Name', { exact: true }).fill(NAME);
    await dialog(page).getByLabel('Role', { exact: true }).selectOption('Viewer');
    await typeTwice('short');
    await dialog(page).getByText('A password has 12 characters or more', { exact: true }).waitFor();
    await typeTwice(FIRST, OWN);
    await dialog(page).getByText('The two new passwords differ', { exact: true }).waitFor();
    await assertAccessible(page);
    assert.equal(await dialog(page).getByRole('button', { name: 'Add person' }).getAttribute('aria-disabled'), 'true');
    await typeTwice(FIRST);
    await confirm(page, 'Add person');
    await row().getByText('Viewer').waitFor();
  });

  await test('that person signs in, and another role ends the session', async () => {
    pat = await visitors.come();
    view = await signIn(pat, FIRST);
    await isIn(view);
    await choose('Change role');
    await dialog(page).getByLabel('Role', { exact: true }).selectOption('Operator');
    await confirm(page, 'Change role');
    await row().getByText('Operator').waitFor();
    await isOut(view);
  });

  let password = FIRST;
  await test('who signed in with a password changes it; this session goes on, and the other one ends', async (t) => {
    view = await signIn(pat, FIRST);
    await isIn(view);
    const second = await visitors.come();
    const other = await signIn(second, FIRST);
    await isIn(other);
    await button(view, 'Change password').click();
    const change = async (former) => {
      await dialog(view).getByLabel('Current password').fill(former);
      await dialog(view).getByLabel('New password', { exact: true }).fill(OWN);
      await dialog(view).getByLabel('New password again').fill(OWN);
    };
    await change('not the password');
    await assertAccessible(view);
    pat.expects.add(403);
    await button(dialog(view), 'Change password').click();
    await dialog(view).getByRole('alert').waitFor();
    pat.expects.delete(403);
    await change(FIRST);
    await confirm(view, 'Change password');
    await isOut(other);
    await view.getByRole('link', { name: 'Disks', exact: true }).click();
    await heading(view, 'Disks').waitFor();
    await view.getByText('Live', { exact: true }).waitFor();
    password = OWN;
  });

  await test('an admin sets another password: the former one is refused, and the new one is taken', async () => {
    view = await signIn(pat, password);
    await isIn(view);
    await choose('Set password');
    await typeTwice(LAST);
    await confirm(page, 'Set password');
    await isOut(view);
    pat.expects.add(403);
    const refused = await signIn(pat, password);
    await refused.getByRole('alert').waitFor();
    pat.expects.delete(403);
    view = await signIn(pat, LAST);
    await isIn(view);
  });

  await test('a person who is removed is gone from the list and out of the console', async () => {
    await choose('Remove');
    await dialog(page).getByLabel(`Type ${NAME} to confirm`).fill(NAME);
    await confirm(page, 'Remove');
    await row().waitFor({ state: 'detached' });
    await isOut(view);
  });
}
