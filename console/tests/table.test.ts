import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldEvents } from '../src/lib/events';
import { nextOrder, readOrder, writeOrder, type Column } from '../src/lib/ui/columns';
import { sortedRows } from '../src/lib/ui/sorting';

interface Row {
  name: string;
  iops?: number;
}

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', value: (row) => row.name },
  { id: 'iops', title: 'IOPS', isNumber: true, value: (row) => row.iops },
];
const rows: Row[] = [{ name: 'vm-10', iops: 5 }, { name: 'vm-2' }, { name: 'VM-1', iops: 80 }];
const usual = { id: 'name', desc: false };

test('the order of the address is one that the table knows', () => {
  assert.deepEqual(readOrder('-iops', ['name', 'iops'], usual), { id: 'iops', desc: true });
  assert.deepEqual(readOrder('iops', ['name', 'iops'], usual), { id: 'iops', desc: false });
  assert.deepEqual(readOrder('-nothing', ['name', 'iops'], usual), usual);
  assert.deepEqual(readOrder('', ['name', 'iops'], usual), usual);
});

test('the usual order does not stand in the address, and all others come back', () => {
  assert.equal(writeOrder(usual, usual), '');
  for (const order of [{ id: 'iops', desc: true }, { id: 'name', desc: true }]) {
    assert.deepEqual(readOrder(writeOrder(order, usual), ['name', 'iops'], usual), order);
  }
});

test('a press on a head sorts by it, numbers with the largest first, and a second one turns it round', () => {
  assert.deepEqual(nextOrder(usual, 'iops', true), { id: 'iops', desc: true });
  assert.deepEqual(nextOrder({ id: 'iops', desc: true }, 'iops', true), { id: 'iops', desc: false });
  assert.deepEqual(nextOrder(usual, 'name', false), { id: 'name', desc: true });
});

test('names are sorted as people count, and rows without a value come last both ways', () => {
  const names = (order: { id: string; desc: boolean }) => sortedRows(rows, columns, order, (row) => row.name).map((row) => row.original.name);
  assert.deepEqual(names(usual), ['VM-1', 'vm-2', 'vm-10']);
  assert.deepEqual(names({ id: 'iops', desc: true }), ['VM-1', 'vm-10', 'vm-2']);
  assert.deepEqual(names({ id: 'iops', desc: false }), ['vm-10', 'VM-1', 'vm-2']);
});

test('events that are alike and happen together are one row', () => {
  const event = (number: number, kind: string, text: string, time_ms: number) => ({ number, kind, text, time_ms, host: 'c' });
  const back = [1, 2, 3, 4].map((number) => event(number, 'health.ended', `disk.reduced: it ended: disk ${number}`, 1_000 * number));
  const other = event(9, 'health.ended', 'host.away: it ended', 500);
  const runs = foldEvents([other, ...back, event(8, 'disk.created', 'made', 9_000)]);
  assert.deepEqual(runs.map(({ first, more }) => [first.number, more.length]), [[8, 0], [4, 3], [9, 0]]);
  assert.equal(foldEvents(back.slice(1)).length, 3, 'a few stand for themselves');
  assert.equal(foldEvents([...back, event(7, 'health.ended', 'disk.reduced: later', 60_000)]).length, 2);
});
