// Moves the script that starts the application out of index.html into a file with a hashed name.
//
// The servers' Content-Security-Policy allows scripts from files alone, and SvelteKit writes that script into the page.
// The build fails if anything inline is left, so that a new release of SvelteKit cannot bring it back unseen.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

const page = 'build/index.html';
const inline = /<script>([\s\S]*?)<\/script>/g;

let html = readFileSync(page, 'utf8');
let moved = 0;
html = html.replace(inline, (_, script) => {
  const text = script.trim();
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 10);
  const path = `/_app/immutable/bootstrap.${hash}.js`;
  writeFileSync(`build${path}`, `${text}\n`);
  moved += 1;
  return `<script src="${path}"></script>`;
});
if (moved !== 1) throw new Error(`expected one inline script in ${page}, found ${moved}`);
const left = html.match(/<style|\sstyle=|<script(?![^>]*\ssrc=)|\son\w+=/i);
if (left) throw new Error(`${page} has inline code that the servers' policy refuses: ${left[0]}`);
writeFileSync(page, html);
