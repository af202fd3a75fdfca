/** TanStack's table and virtual rows as Svelte 5 reads them: sorted rows, and which of them are in sight. */

import { createTable, getCoreRowModel, getSortedRowModel, type ColumnDef, type Row } from '@tanstack/table-core';
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect, type VirtualItem } from '@tanstack/virtual-core';
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

/** The rows in sight of a box that scrolls. */
export class VisibleRows {
  items = $state.raw<VirtualItem[]>([]);
  total = $state(0);
  private readonly virtualizer: Virtualizer<HTMLElement, Element>;

  constructor(private readonly box: () => HTMLElement | null, private readonly height: number) {
    this.virtualizer = new Virtualizer<HTMLElement, Element>(this.options(0));
  }

  /** Watches the box; call it when the box is there, and its answer when it goes. */
  mount(): () => void {
    const end = this.virtualizer._didMount();
    this.virtualizer._willUpdate();
    this.read();
    return end;
  }

  setCount(count: number): void {
    this.virtualizer.setOptions(this.options(count));
    this.virtualizer._willUpdate();
    this.read();
  }

  show(index: number): void {
    this.virtualizer.scrollToIndex(index);
  }

  private read(): void {
    this.items = this.virtualizer.getVirtualItems();
    this.total = this.virtualizer.getTotalSize();
  }

  private options(count: number) {
    return {
      count,
      getScrollElement: this.box,
      estimateSize: () => this.height,
      overscan: 12,
      observeElementRect,
      observeElementOffset,
      scrollToFn: elementScroll,
      onChange: () => this.read(),
    };
  }
}
