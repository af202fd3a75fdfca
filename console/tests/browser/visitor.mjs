// Somebody with a browser: pages, and what went wrong in them that no test asked for.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

/** How long anything that a page does may take: programs that are built for tests are slow. */
const STEP_MS = 20_000;

export class Visitors {
  #browser;
  #open = [];

  async start(executablePath) {
    this.#browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  }

  /** A browser of its own, as far as cookies go. */
  async come(options = {}) {
    const context = await this.#browser.newContext({ locale: 'en-GB', viewport: { width: 1360, height: 900 }, ignoreHTTPSErrors: true, ...options });
    context.setDefaultTimeout(STEP_MS);
    const visitor = new Visitor(context);
    this.#open.push(visitor);
    return visitor;
  }

  /** Errors in pages since the last time. */
  check() {
    assert.deepEqual(this.#open.flatMap((visitor) => visitor.problems.splice(0)), []);
  }

  async end() {
    await this.#browser?.close();
  }
}

export class Visitor {
  problems = [];
  /** What the test at hand expects of the browser's console: a status of an answer, or a piece of text. */
  expects = new Set();

  constructor(context) {
    this.context = context;
    context.on('page', (page) => {
      page.on('pageerror', (error) => this.problems.push(`${page.url()}: ${error.stack}`));
      page.on('console', (message) => {
        if (message.type() !== 'error') return;
        const text = `${message.text()} ${message.location().url}`;
        const isExpected = [...this.expects].some((one) => text.includes(typeof one === 'number' ? `status of ${one}` : one));
        if (!isExpected) this.problems.push(`${page.url()}: ${text}`);
      });
    });
  }

  async openPage(address) {
    const page = await this.context.newPage();
    if (address) await page.goto(address);
    return page;
  }

  /** Opens a link of `drystone console`, and gives the page with the overview. */
  async logIn(link) {
    this.expects.add(401);
    const page = await this.openPage(link);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    this.expects.delete(401);
    return page;
  }
}

export const heading = (page, name) => page.getByRole('heading', { level: 1, name, exact: true });
export const button = (page, name) => page.getByRole('button', { name, exact: true });
export const dialog = (page) => page.getByRole('dialog');
export const region = (page, name) => page.getByRole('region', { name, exact: true });

/** Presses a button of the open dialog, which then closes. */
export async function confirm(page, name) {
  await button(dialog(page), name).click();
  await dialog(page).waitFor({ state: 'detached' });
}
