import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatBytes, formatCount, formatLatency, formatPercent, formatThroughput, parseSize, percentOf, setNumberLocale, sizeArgument } from '../src/lib/format/numbers';
import { formatDuration, parseDuration } from '../src/lib/format/time';

function check<I, O>(act: (input: I) => O, cases: readonly (readonly [I, O])[]): void {
  for (const [input, expected] of cases) assert.equal(act(input), expected, `${act.name}(${String(input)})`);
}

test('sizes are in powers of 1024, with three digits', () => {
  check(formatBytes, [
    [0, '0 B'],
    [512, '512 B'],
    [1023, '1,023 B'],
    [1024, '1 KiB'],
    [1536, '1.5 KiB'],
    [1024 ** 2 - 1, '1 MiB'],
    [10 * 1024 ** 3, '10 GiB'],
    [1.234 * 1024 ** 4, '1.23 TiB'],
    [null, '-'],
    [undefined, '-'],
  ]);
});

test('rates never read as less than nothing', () => {
  check(formatThroughput, [[0, '0 B/s'], [-0, '0 B/s'], [-3, '0 B/s'], [1024 ** 2, '1 MiB/s'], [null, '-']]);
  check(formatCount, [[0, '0'], [-0, '0'], [0.04, '0'], [2.26, '2.3'], [950.4, '950'], [9_999, '9,999'], [12_345, '12.3k'], [1_200_000, '1.2M'], [null, '-']]);
});

test('latencies choose their unit', () => {
  check(formatLatency, [[232.4, '232 µs'], [999.6, '1 ms'], [3_784.7, '3.78 ms'], [1_200_000, '1.2 s'], [null, '-']]);
});

test('a small share does not read as none', () => {
  check(formatPercent, [[0, '0 %'], [0.01, '0.1 %'], [38.4, '38 %'], [100, '100 %'], [null, '-']]);
  assert.equal(percentOf(1, 0), 0);
});

test('German numbers have German marks', () => {
  setNumberLocale('de');
  assert.equal(formatBytes(1536), '1,5 KiB');
  setNumberLocale('en');
});

test('sizes are read as the command line reads them', () => {
  check(parseSize, [
    ['512', 512],
    ['4K', 4096],
    ['10GiB', 10 * 1024 ** 3],
    ['10 gb', 10 * 1024 ** 3],
    ['1.5T', 1.5 * 1024 ** 4],
    ['1,5T', 1.5 * 1024 ** 4],
    ['', null],
    ['ten', null],
    ['-1', null],
    ['10GiB more', null],
    ['9999999P', null],
  ]);
});

test('a size comes back as it was', () => {
  for (const bytes of [512, 1536, 1024, 10 * 1024 ** 3, 3 * 1024 ** 4]) assert.equal(parseSize(sizeArgument(bytes)), bytes);
  assert.equal(sizeArgument(10 * 1024 ** 3), '10GiB');
});

test('durations have two units, and no empty ones', () => {
  check(formatDuration, [
    [0, '0 s'],
    [45.4, '45 s'],
    [60, '1 min'],
    [90, '1 min'],
    [3_600, '1 h'],
    [3_660, '1 h 1 min'],
    [273_600, '3 d 4 h'],
    [86_400, '1 d'],
    [-5, '0 s'],
    [null, '-'],
    [Number.POSITIVE_INFINITY, '-'],
  ]);
  check(parseDuration, [['90s', 90], ['60min', 3_600], ['60m', 3_600], ['2h', 7_200], ['1.5h', 5_400], ['7d', 604_800], ['soon', null], ['', null]]);
});
