import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { en } from '../src/lib/texts/en';

function files(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? files(join(folder, entry.name)) : [join(folder, entry.name)]));
}

const sources = files('src').filter((path) => /\.(svelte|ts)$/.test(path) && !path.endsWith('schema.d.ts'));

test('no text is there that nobody shows', () => {
  const text = sources.filter((path) => !path.includes('texts')).map((path) => readFileSync(path, 'utf8')).join('\n');
  for (const [area, texts] of Object.entries(en)) {
    for (const key of Object.keys(texts)) assert.match(text, new RegExp(`t\\.${area}\\.${key}\\b`), `t.${area}.${key}`);
  }
});

test('files are short enough to be read, and pages have no inline style that the servers refuse', () => {
  for (const path of sources) {
    const text = readFileSync(path, 'utf8');
    assert.ok(text.split('\n').length <= 400, `${path} is longer than 400 lines`);
    assert.doesNotMatch(text, /<[a-z][^>]*\sstyle="/, path);
  }
});
