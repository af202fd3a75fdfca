/** What a chart of figures draws: columns of time and values, from samples and from stored series. */

import type { Schemas } from '$lib/api/client';
import type { Sample } from '$lib/api/stream.svelte';

export type Measure = 'iops' | 'bytes_per_second' | 'latency_us_p99' | 'latency_us_p50';

/** Seconds since 1970, reads, writes. */
export type Points = [number[], (number | null)[], (number | null)[]];

export function pointsOf(samples: readonly Sample[], measure: Measure): Points {
  const points: Points = [[], [], []];
  for (const { time, figures } of samples) {
    points[0].push(time / 1_000);
    points[1].push(figures.read[measure] ?? null);
    points[2].push(figures.write[measure] ?? null);
  }
  return points;
}

export function pointsOfSeries(series: Schemas['SeriesView'], measure: Measure): Points {
  const reads = series.read[measure];
  return [reads.map((_, index) => series.start + (index + 1) * series.step_seconds), reads, series.write[measure]];
}

/** Stored points, then those samples that are later. */
export function joined(stored: Points | null, live: Points): Points {
  if (!stored || stored[0].length === 0) return live;
  const last = stored[0].at(-1) ?? 0;
  const from = live[0].findIndex((time) => time > last);
  if (from < 0) return stored;
  return [stored[0].concat(live[0].slice(from)), stored[1].concat(live[1].slice(from)), stored[2].concat(live[2].slice(from))];
}

/** The last rows, for the table that stands beside a chart. */
export function lastRows(points: Points, count: number): { time: number; read: number | null; write: number | null }[] {
  const from = Math.max(0, points[0].length - count);
  return points[0].slice(from).map((time, index) => ({ time: time * 1_000, read: points[1][from + index] ?? null, write: points[2][from + index] ?? null })).reverse();
}
