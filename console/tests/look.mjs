// Writes a screenshot of every page of a running host, light and dark, for people to look at.
//
//   npm run look -- --api unix:/run/drystone/api.sock --out look [--only disks,disk] [--width 1360] [--locale de]
import { mkdirSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { open, pages } from './browser/look.mjs';
import { option } from './browser/options.mjs';
import { serve } from './serve.mjs';

/** For charts, which draw a moment after their figures are there. */
const DRAWN_MS = 1_200;

const out = option('out', 'look');
const only = option('only', '');
const server = await serve(option('api', 'unix:/run/drystone/api.sock'), 0);
const base = `http://127.0.0.1:${server.address().port}`;
mkdirSync(out, { recursive: true });

/** The name of the first thing of a kind, those with clients before others. */
async function first(path, fallback) {
  const things = await (await fetch(`${base}/api/v1/${path}`)).json();
  return encodeURIComponent((things.find((one) => one.client_count > 0 || one.built_in === false) ?? things[0])?.name ?? fallback);
}

const things = { disk: await first('disks', 'none'), host: await first('hosts', 'none'), policy: await first('policies', 'default') };
const chosen = Object.entries(pages(things)).filter(([name]) => only === '' || only.split(',').includes(name));
const browser = await chromium.launch({ executablePath: option('browser', '/usr/bin/chromium'), args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: Number(option('width', '1360')), height: 900 }, locale: option('locale', 'en-GB') });
const page = await context.newPage();
for (const [name, path] of chosen) {
  await open(page, base + path);
  await page.waitForTimeout(DRAWN_MS);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.waitForTimeout(100);
    await page.screenshot({ path: `${out}/${name}-${colorScheme}.png`, fullPage: true });
  }
}
await browser.close();
server.close();
server.closeAllConnections();
console.log(`${chosen.length} pages are in ${out}`);
