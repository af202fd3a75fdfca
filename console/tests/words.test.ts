import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schemas } from '../src/lib/api/client';
import { diskState } from '../src/lib/disk/state';
import { foldFindings, healthLine, subjectLink } from '../src/lib/health';
import { de } from '../src/lib/texts/de';
import { en } from '../src/lib/texts/en';
import { newPasswordProblem } from '../src/lib/ui/password';

const finding = (severity: Schemas['SeverityWord']) => ({ severity }) as Schemas['FindingView'];

test('health is one sentence that counts what was found', () => {
  assert.equal(healthLine({ is_well: true, findings: [] }), 'The cluster is healthy: nothing needs attention.');
  assert.equal(healthLine({ is_well: true, findings: [finding('notice')] }), 'The cluster has 1 notice.');
  assert.equal(
    healthLine({ is_well: false, findings: [finding('critical'), finding('warning'), finding('warning')] }),
    'The cluster has 1 critical finding, 2 warnings.',
  );
  assert.equal(de.overview.health(2, 0, 1), 'Der Cluster hat 2 kritische Befunde, 1 Hinweis.');
});

test('many findings of one kind are folded behind the first, few stand for themselves', () => {
  const of = (code: string, count: number) => Array.from({ length: count }, (_, index) => ({ code, severity: 'warning' as const, subject: `disk ${index}` }));
  const folded = foldFindings([...of('host.away', 1), ...of('disk.reduced', 9), ...of('space.low', 3)]);
  assert.deepEqual(folded.map(({ first, more }) => [first.code, more.length]), [['host.away', 0], ['disk.reduced', 8], ['space.low', 0], ['space.low', 0], ['space.low', 0]]);
});

test('a subject with a page is a link to it', () => {
  assert.equal(subjectLink('disk web'), '/disks/web');
  assert.equal(subjectLink('disk a/b c'), '/disks/a%2Fb%20c');
  assert.equal(subjectLink('host b'), '/hosts/b');
  assert.equal(subjectLink('device /dev/sdb of host a'), null);
  assert.equal(subjectLink('cluster'), null);
});

test('the worst of a disk is what its state says', () => {
  const word = (disk: Partial<Schemas['DiskSummary']>) => {
    const { tone, word } = diskState({ state: 'active', ...disk });
    return `${tone}: ${word}`;
  };
  assert.equal(word({}), 'good: Available');
  assert.equal(word({ under_way: 'copying' }), 'busy: Available, copying');
  assert.equal(word({ not_whole: ['copy on b'], under_way: 'copying' }), 'warn: Reduced');
  assert.equal(word({ unavailable: 'no copy', not_whole: ['copy on b'] }), 'bad: Inaccessible');
  assert.equal(word({ state: 'creating' }), 'busy: Creating');
  assert.equal(word({ trouble: 'waits for a limit' }), 'warn: Available');
});

/** All texts by their path, with functions called on what they would be given. */
function texts(value: unknown, path = ''): [string, unknown][] {
  if (typeof value !== 'object' || value === null) return [[path, value]];
  return Object.entries(value).flatMap(([key, inner]) => texts(inner, `${path}.${key}`));
}

test('every text of one language is in the other, and none is empty', () => {
  const german = new Map(texts(de));
  for (const [path, text] of texts(en)) {
    assert.equal(typeof german.get(path), typeof text, path);
    if (typeof text === 'string') assert.ok(text.length > 0 && String(german.get(path)).length > 0, path);
  }
  assert.equal(german.size, texts(en).length);
});

test('a new password is long enough, counted by characters, and typed twice alike', () => {
  assert.equal(newPasswordProblem('elevenchars', 'elevenchars'), 'A password has 12 characters or more');
  // Six characters that JavaScript counts as twelve.
  assert.equal(newPasswordProblem('🔑🔑🔑🔑🔑🔑', '🔑🔑🔑🔑🔑🔑'), 'A password has 12 characters or more');
  assert.equal(newPasswordProblem('twelve chars', 'twelve Chars'), 'The two new passwords differ');
  assert.equal(newPasswordProblem('twelve chars', 'twelve chars'), '');
});
