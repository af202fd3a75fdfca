// The console in a real browser, against real hosts: who logs in, what they do and see, what they may not.
//
//   npm run browser -- --program ../target/debug/drystone [--browser /usr/bin/chromium]
//
// The program has the pages in it (`--features console`). Tests follow one another: one demo serves all of them.
import { test } from 'node:test';
import { cluster, findings, loss, recovery } from './cluster.mjs';
import { Demo, SecuredHost, Stage } from './demo.mjs';
import { disks } from './disks.mjs';
import { enter, leave } from './enter.mjs';
import { look } from './look.mjs';
import { option } from './options.mjs';
import { people } from './people.mjs';
import { security } from './security.mjs';
import { Visitors } from './visitor.mjs';

const stage = new Stage(option('program', 'drystone'));
const [demo, secured, visitors] = [new Demo(stage), new SecuredHost(stage), new Visitors()];

/** A test that fails, too, where a page had an error that it did not expect. */
const checked = (name, run) => test(name, async (t) => {
  await run(t);
  visitors.check();
});
const all = { test: checked, stage, demo, secured, visitors };
const shared = {};
try {
  await Promise.all([demo.start(), secured.start(), visitors.start(option('browser', '/usr/bin/chromium'))]);
  await enter(all, shared);
  await disks(all, shared);
  await cluster(all, shared);
  await loss(all, shared);
  // What takes its time passes while pages are looked at.
  const things = { disk: 'web', host: 'a', policy: 'default' };
  await look(all, shared, things, 'English', 'en', ['light', 'dark']);
  await findings(all, shared);
  await look(all, shared, things, 'German', 'de', ['light']);
  await recovery(all, shared);
  await leave(all, shared);
  await security(all);
  await people(all);
} finally {
  await visitors.end();
  await stage.end();
}
