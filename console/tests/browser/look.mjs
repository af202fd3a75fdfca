// Every page as people see it: axe finds nothing serious, light and dark, in English and German; and no page is wider than its
// window, in half of which it is at 200 %.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** A desktop's window, and the same at 200 %. */
const WIDTHS = [1360, 680];
const HEIGHT = 900;
/** Pages that are looked at at once. */
const AT_ONCE = 2;

/** The pages, with one thing of each kind. */
export function pages({ disk, host, policy }) {
  const tabs = ['load', 'histograms', 'snapshots', 'attach', 'settings', 'events'].map((tab) => [`disk-${tab}`, `/disks/${disk}?tab=${tab}`]);
  return Object.fromEntries([
    ['login', '/login'], ['overview', '/'], ['health', '/health'], ['tasks', '/tasks'], ['events', '/tasks?tab=events'], ['disks', '/disks'],
    ['create', '/disks/new?policy=default&size=10GiB&name=look'], ['policies', '/policies'], ['policy-new', '/policies/new'],
    ['policy', `/policies/${policy}`], ['capacity', '/capacity'], ['performance', '/performance'], ['surfaces', `/performance/surfaces?disks=${disk}`], ['hosts', '/hosts'], ['host', `/hosts/${host}`],
    ['devices', '/devices'], ['resync', '/resync'], ['people', '/people'], ['settings', '/settings'], ['start', '/start'], ['disk', `/disks/${disk}`], ...tabs,
  ]);
}

/** Goes to a page, within the console where it is open already, and waits until all that the page asked for is there. */
export async function open(page, address) {
  const { origin, pathname, search } = new URL(address);
  if (new URL(page.url()).origin !== origin) {
    await page.goto(address, { waitUntil: 'load' });
  } else {
    await page.evaluate((href) => {
      const link = Object.assign(document.createElement('a'), { href });
      document.body.append(link);
      link.click();
      link.remove();
    }, pathname + search);
    await page.waitForURL((url) => url.pathname === pathname);
    // The address changes right before the page is drawn.
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  }
  await page.locator('h1').first().waitFor();
  await page.waitForFunction(() => ![...document.querySelectorAll('[role=status]')].some((one) => /…$/.test(one.textContent)));
}

/** What axe finds serious, by all rules or by the named ones. */
async function findings(page, rules) {
  const { violations } = await page.evaluate((rules) => window.axe.run({ resultTypes: ['violations'], ...(rules.length > 0 ? { runOnly: rules } : {}) }), rules);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')} ${nodes[0]?.any[0]?.message ?? ''}`);
}

/** Looks at what is on a page now, such as an open dialog, in both appearances. */
export async function assertAccessible(page) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
  for (const [colorScheme, rules] of [['light', []], ['dark', ['color-contrast']]]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await findings(page, rules), [], colorScheme);
  }
  await page.emulateMedia({ colorScheme: null });
}

/** Looks at some pages, one after the other. */
async function lookAt(context, base, pages, schemes, found) {
  const page = await context.newPage();
  for (const [name, path] of pages) {
    await page.setViewportSize({ width: WIDTHS[0], height: HEIGHT });
    await open(page, base + path);
    // In the page's own world the policy would refuse a script that is put in; evaluate is the debugger's.
    if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
    await page.emulateMedia({ colorScheme: schemes[0] });
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme });
      // Of another appearance the colours alone are others.
      for (const line of await findings(page, colorScheme === schemes[0] ? [] : ['color-contrast'])) found.push(`${name}, ${colorScheme}: ${line}`);
    }
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: HEIGHT });
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (beyond > 0) found.push(`${name}: ${beyond} pixels wider than a window of ${width}`);
    }
  }
  await page.close();
}

/** The language is kept by the browser for all its pages. */
export async function look({ test }, { admin, page, base }, things, language, locale, schemes) {
  await test(`no page has a serious finding of axe or is wider than its window, in ${language}, ${schemes.join(' and ')}`, async (t) => {
    await page.evaluate((locale) => localStorage.setItem('drystone-language', locale), locale);
    const all = Object.entries(pages(things));
    const found = [];
    await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => lookAt(admin.context, base, all.filter((_, at) => at % AT_ONCE === index), schemes, found)));
    await page.evaluate(() => localStorage.setItem('drystone-language', 'en'));
    t.diagnostic(`${all.length} pages`);
    assert.deepEqual(found, []);
  });
}
