/** What histograms of disks were while the console was open: columns of two seconds, kept so that another page does not lose them. */

import type { Schemas } from '$lib/api/client';
import { addColumn, type Heat } from './heat';

/** One column. */
export const COLUMN_SECONDS = 2;

const heats = new Map<string, Heat>();
const newest = new Map<string, number>();
const NONE: Heat = { limits: [], unit: '', columns: [] };

/** Adds an answer to all histograms of a disk; the same answer is seen again whenever a page draws itself anew, and counts once. */
export function gather(disk: string, view: Schemas['HistogramsView'], time: number): void {
  if (newest.get(disk) === time) return;
  newest.set(disk, time);
  for (const histogram of view.histograms) {
    const key = `${disk}/${histogram.kind}/${histogram.operations}`;
    heats.set(key, addColumn(heats.get(key), histogram, time));
  }
}

export function gathered(disk: string, kind: string, operations: string): Heat {
  return heats.get(`${disk}/${kind}/${operations}`) ?? NONE;
}
