import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bucketLabel, bucketName } from '../src/lib/charts/buckets';
import { COLUMNS_MAX, addColumn, heatOf, strength, type Heat } from '../src/lib/charts/heat';
import { joined, lastRows, type Points } from '../src/lib/charts/points';

test('samples go on where the stored series ends', () => {
  const stored: Points = [[10, 20], [1, 2], [3, null]];
  const live: Points = [[15, 20, 25], [9, 9, 5], [9, 9, 6]];
  assert.deepEqual(joined(stored, live), [[10, 20, 25], [1, 2, 5], [3, null, 6]]);
  assert.deepEqual(joined(null, live), live);
  assert.deepEqual(joined(stored, [[], [], []]), stored);
  assert.deepEqual(lastRows(stored, 1), [{ time: 20_000, read: 2, write: null }]);
});

test('buckets are named by their limits', () => {
  const limits = [512, 4096, null];
  assert.equal(bucketName(limits, 0, 'bytes'), '≤ 512 B');
  assert.equal(bucketName(limits, 1, 'bytes'), '> 512 B – 4 KiB');
  assert.equal(bucketName(limits, 2, 'us'), '> 4.1 ms');
  assert.equal(bucketLabel(4096, 'bytes'), '4k');
  assert.equal(bucketLabel(-500_000, 'sectors'), '-500k');
  assert.equal(bucketLabel(null, 'us'), '∞');
});

test('a heat map keeps so many columns, and begins anew with other buckets', () => {
  const view = (limits: (number | null)[]) => ({ unit: 'us', buckets: limits.map((limit) => ({ limit, count: 1 })) });
  let heat: Heat | undefined;
  for (let time = 0; time < COLUMNS_MAX + 5; time += 1) heat = addColumn(heat, view([10, null]), time);
  assert.equal(heat?.columns.length, COLUMNS_MAX);
  assert.equal(heat?.columns.at(-1)?.time, COLUMNS_MAX + 4);
  assert.equal(addColumn(heat, view([20, null]), 0).columns.length, 1);
  assert.equal(strength(0, 100), 0);
  assert.equal(strength(100, 100), 1);
  assert.ok(strength(1, 10_000) > 0.1);
});

test('the heat map of a series has the buckets that are used, and a column for each step', () => {
  const series = { start: 100, step_seconds: 10, heat: { limits_us: [1, 2, 4, 8], read: [[0, 3, 0, 0], []], write: [[], [0, 0, 5, 0]] } };
  assert.deepEqual(heatOf(series, 'both'), { limits: [2, 4], unit: 'us', columns: [{ time: 110_000, counts: [3, 0] }, { time: 120_000, counts: [0, 5] }] });
  assert.deepEqual(heatOf(series, 'reads').limits, [2]);
  assert.deepEqual(heatOf({ ...series, heat: { limits_us: [1, 2], read: [[]], write: [[]] } }, 'both').columns, [{ time: 110_000, counts: [] }]);
});
