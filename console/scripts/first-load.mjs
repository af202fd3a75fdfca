// Measures what a browser fetches before it shows the overview, compressed with brotli, and fails above the budget.
//
// These are the files that index.html names, the overview's own, and all that they import statically. Files that are
// loaded when somebody looks (other pages, charts behind `import()`) do not count.
import { brotliCompressSync } from 'node:zlib';
import { readFileSync, readdirSync, existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const BUDGET = 150_000;
const root = 'build';
const page = readFileSync(join(root, 'index.html'), 'utf8');
const seen = new Map();

function take(path) {
  const file = normalize(path);
  if (seen.has(file) || !existsSync(join(root, file))) return;
  const text = readFileSync(join(root, file));
  seen.set(file, brotliCompressSync(text).length);
  if (!file.endsWith('.js')) return;
  for (const [, target] of text.toString().matchAll(/(?:from|import)\s*["'](\.{1,2}\/[^"']+)["']/g)) {
    take(join(dirname(file), target));
  }
}

for (const [, target] of page.matchAll(/(?:href|src)="(\/[^"]+)"/g)) take(target.slice(1));
for (const [, target] of page.matchAll(/import\("(\/[^"]+)"\)/g)) take(target.slice(1));
// The bootstrap imports the start and the application dynamically; nodes 0, 1 and 2 are layout, error page and overview.
for (const folder of ['entry', 'nodes']) {
  for (const name of readdirSync(join(root, '_app/immutable', folder))) {
    if (folder === 'entry' || /^[012]\./.test(name)) take(join('_app/immutable', folder, name));
  }
}
for (const name of readdirSync(join(root, '_app/immutable/assets'))) {
  if (/^[02]\..*css$/.test(name)) take(join('_app/immutable/assets', name));
}
seen.set('index.html', brotliCompressSync(page).length);
const total = [...seen.values()].reduce((sum, size) => sum + size, 0);
const largest = [...seen].sort((a, b) => b[1] - a[1]).slice(0, 5);
for (const [file, size] of largest) console.log(`${String(size).padStart(8)}  ${file}`);
console.log(`first load: ${(total / 1000).toFixed(1)} kB brotli in ${seen.size} files, of ${BUDGET / 1000} kB allowed`);
if (total > BUDGET) process.exit(1);
