/** What a table has for columns, and its order as the address spells it: `name`, or `-iops` for the largest first. */

import type { Snippet } from 'svelte';

export interface Column<R> {
  id: string;
  title: string;
  isNumber?: boolean;
  /** What it is sorted by; nothing where it cannot be, undefined for a row without a value: those come last. */
  value?: (row: R) => string | number | undefined;
  /** How it is drawn; without it, as `text`, or the value as it is. */
  cell?: Snippet<[R]>;
  text?: (row: R) => string;
}

export interface Order {
  id: string;
  desc: boolean;
}

export function readOrder(text: string, known: readonly string[], fallback: Order): Order {
  const desc = text.startsWith('-');
  const id = desc ? text.slice(1) : text;
  return known.includes(id) ? { id, desc } : fallback;
}

/** Empty for the order that the table has by itself. */
export function writeOrder(order: Order, fallback: Order): string {
  if (order.id === fallback.id && order.desc === fallback.desc) return '';
  return `${order.desc ? '-' : ''}${order.id}`;
}

/** The order after a press on a column's head: numbers begin with the largest. */
export function nextOrder(current: Order, id: string, isNumber: boolean): Order {
  return current.id === id ? { id, desc: !current.desc } : { id, desc: isNumber };
}
