/** TanStack's table as the pages use it: rows in the order of one column. */

import { createTable, getCoreRowModel, getSortedRowModel, type ColumnDef, type Row } from '@tanstack/table-core';
import type { Column, Order } from './columns';

/** Rows sorted by one column. Text is compared as people count: `vm-2` before `vm-10`. */
export function sortedRows<R>(rows: readonly R[], columns: readonly Column<R>[], order: Order, id: (row: R) => string): Row<R>[] {
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });
  const defs = columns.map((column): ColumnDef<R> => ({
    id: column.id,
    accessorFn: (row) => column.value?.(row),
    enableSorting: column.value !== undefined,
    sortUndefined: 'last',
    sortingFn: (left, right, name) => {
      const [a, b] = [left.getValue(name), right.getValue(name)];
      return typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b));
    },
  }));
  const table = createTable<R>({
    data: rows as R[],
    columns: defs,
    getRowId: id,
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
    renderFallbackValue: null,
    onStateChange: () => {},
    state: {},
  });
  table.setOptions((options) => ({ ...options, state: { ...table.initialState, sorting: [order] } }));
  return table.getRowModel().rows;
}
