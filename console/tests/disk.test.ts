import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schemas } from '../src/lib/api/client';
import { ApiFailure } from '../src/lib/api/failure';
import { libvirtText, parseTarget, qemuText } from '../src/lib/disk/attach';
import { labelArguments, labelChange, labelFilter, labelProblem, labelRows, labelsOf, readLabels, writeLabels } from '../src/lib/disk/labels';
import { layoutTree } from '../src/lib/disk/tree';
import { rulesText } from '../src/lib/policy/rules';

test('the lines of a layout become a tree with its components', () => {
  const lines = ['stripe of 2 columns', '  mirror of 2 copies', '    component aa11 of 1 GiB on d:/x: active', '    component bb22 of 1 GiB on a:/x: active', '  mirror of 2 copies', '    component cc33 of 1 GiB'];
  const [root, ...more] = layoutTree(lines, [{ id: 'aa11', index: 0, device: 'x', size: 1 } as Schemas['ComponentView']]);
  assert.equal(more.length, 0);
  assert.deepEqual(root?.children.map((node) => node.children.length), [2, 1]);
  assert.equal(root?.children[0]?.children[0]?.component?.id, 'aa11');
  // A component that the answer does not have stays as the line that it is.
  assert.equal(root?.children[0]?.children[1]?.component, null);
});

test('members of rows with parity are joined with their components, too', () => {
  const component = { id: 'aa11', index: 0, device: 'x', size: 1 } as Schemas['ComponentView'];
  const [root] = layoutTree(['RAID-5 3+1, 3 GiB', '  member 0: component aa11 of 1 GiB on b:/x: active', '  member 1: component bb22 of 1 GiB'], [component]);
  assert.deepEqual(root?.children.map((node) => [node.member, node.component?.id]), [['member 0', 'aa11'], ['member 1', undefined]]);
});

test('addresses are read, and those with TLS are left to the command line', () => {
  assert.deepEqual(parseTarget('nbd+unix:///web?socket=/run/d/nbd.sock'), { kind: 'unix', place: '/run/d/nbd.sock', port: null, exportName: 'web' });
  assert.deepEqual(parseTarget('nbd://10.0.0.1:10809/web'), { kind: 'tcp', place: '10.0.0.1', port: 10809, exportName: 'web' });
  assert.deepEqual(parseTarget('nbd://[fd00::1]/web'), { kind: 'tcp', place: 'fd00::1', port: 10809, exportName: 'web' });
  assert.equal(parseTarget('nbds://10.0.0.1/web'), null);
});

test('commas and quotes of names do not end an option', () => {
  const target = { kind: 'unix', place: '/run/a,b.sock', port: null, exportName: "o'ne" } as const;
  assert.match(qemuText(target), /server\.path=\/run\/a,,b\.sock,/);
  assert.match(libvirtText(target), /name='o&#39;ne'/);
});

test('a change of labels names what is set and what is removed, and nothing else', () => {
  const change = labelChange({ team: 'db', env: 'test', tier: '1' }, { team: 'all', tier: '1', note: "Ann's" });
  assert.deepEqual(change, { env: null, team: 'all', note: "Ann's" });
  assert.equal(labelArguments(change), "env- team=all 'note=Ann'\\''s'");
});

test('labels come back from an address as they were, with commas, equals signs and without a value', () => {
  const labels = { team: 'db, web', formula: 'a=b', empty: '' };
  assert.deepEqual(labelsOf(readLabels(writeLabels(labels))), labels);
  assert.deepEqual(labelRows(labels).map(labelFilter), ['team', 'formula=a=b', 'empty=']);
});

test('rows are labels once each has a key of its own; empty rows are none', () => {
  const problem = (...pairs: [string, string][]) => labelProblem(pairs.map(([key, value]) => ({ key, value })));
  assert.equal(problem(['team', 'db'], ['', ''], ['env', '']), '');
  assert.equal(problem(['', 'db']), 'A label needs a key');
  assert.equal(problem(['team', 'a'], [' team', 'b']), 'Two labels have the key team');
});

test('rules are said only where somebody chose them', () => {
  assert.equal(rulesText('gold', { stripes: '2', method: '' }), 'gold,stripes=2');
  assert.equal(rulesText('', { stripes: '2' }), 'stripes=2');
  assert.equal(rulesText('gold', {}), 'gold');
});

test('a failure has the words of the API, and an answer of others at least its status', () => {
  const failure = ApiFailure.of(409, { code: 'conflict', error: 'there is a disk `web` already', hint: 'choose another name' });
  assert.deepEqual([failure.code, failure.message, failure.hint], ['conflict', 'there is a disk `web` already', 'choose another name']);
  assert.equal(ApiFailure.of(502, undefined).message, 'HTTP 502');
});
