// Runs the unit tests: each is bundled to plain JavaScript first, since Node 18 reads no TypeScript.
import { build } from 'esbuild';
import { readdirSync } from 'node:fs';
import { spawnSync } from 'node:child_process';

const names = readdirSync('tests').filter((name) => name.endsWith('.test.ts'));
const outdir = 'node_modules/.cache/tests';
await build({
  entryPoints: names.map((name) => `tests/${name}`),
  outdir,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node18',
  outExtension: { '.js': '.mjs' },
  alias: { $lib: './src/lib' },
});
const files = names.map((name) => `${outdir}/${name.replace(/\.ts$/, '.mjs')}`);
process.exit(spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' }).status ?? 1);
