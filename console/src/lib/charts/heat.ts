/** A histogram over time as columns of buckets: what the heat map and the surfaces draw. */

import type { Schemas } from '$lib/api/client';

/** One stretch of time: how many requests fell in each bucket. */
export interface HeatColumn {
  /** Milliseconds since 1970 of its end. */
  time: number;
  counts: number[];
}

export interface Heat {
  /** Largest value of each bucket; the last has none. */
  limits: (number | null)[];
  /** Of the limits. */
  unit: string;
  columns: HeatColumn[];
}

/** Ten minutes of columns of two seconds. */
export const COLUMNS_MAX = 300;

/** Adds the newest stretch; a histogram whose buckets have other limits begins anew. */
export function addColumn(heat: Heat | undefined, histogram: Pick<Schemas['HistogramView'], 'buckets' | 'unit'>, time: number): Heat {
  const limits = histogram.buckets.map((bucket) => bucket.limit ?? null);
  const isSame = heat !== undefined && heat.limits.length === limits.length && heat.limits.every((limit, index) => limit === limits[index]);
  const column = { time, counts: histogram.buckets.map((bucket) => bucket.count) };
  const former = isSame ? heat.columns.slice(-(COLUMNS_MAX - 1)) : [];
  return { limits, unit: histogram.unit, columns: [...former, column] };
}

/** The latencies of a stored series: from the smallest bucket that anything fell in to the largest. */
export function heatOf(series: Pick<Schemas['SeriesView'], 'heat' | 'start' | 'step_seconds'>, operations: string): Heat {
  const { limits_us, read, write } = series.heat;
  const sides = operations === 'reads' ? [read] : operations === 'writes' ? [write] : [read, write];
  const count = Math.max(...sides.map((rows) => rows.length));
  const sum = (step: number, bucket: number) => sides.reduce((sum, rows) => sum + (rows[step]?.[bucket] ?? 0), 0);
  const steps = Array.from({ length: count }, (_, step) => limits_us.map((_, bucket) => sum(step, bucket)));
  const isUsed = (bucket: number) => steps.some((counts) => (counts[bucket] ?? 0) > 0);
  const first = limits_us.findIndex((_, bucket) => isUsed(bucket));
  const last = limits_us.findLastIndex((_, bucket) => isUsed(bucket));
  const cut = <T>(list: T[]) => (first < 0 ? [] : list.slice(first, last + 1));
  return { limits: cut(limits_us), unit: 'us', columns: steps.map((counts, step) => ({ time: (series.start + (step + 1) * series.step_seconds) * 1_000, counts: cut(counts) })) };
}

/** How strong a cell is drawn, 0 to 1: by the logarithm, or one busy second would hide the outliers. */
export function strength(count: number, most: number): number {
  return count <= 0 || most <= 0 ? 0 : 0.12 + 0.88 * (Math.log1p(count) / Math.log1p(most));
}
