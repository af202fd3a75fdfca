/** Events that happen together, told once. */

import type { Schemas } from '$lib/api/client';

type Event = Pick<Schemas['EventView'], 'kind' | 'text' | 'time_ms' | 'host'>;

/** The newest of events that are alike, and the others. */
export interface EventRun<E> {
  first: E;
  more: E[];
}

/** Up to this many that are alike each stand for themselves. */
const ALONE_MAX = 3;
/** What happened further apart did not happen together. */
const TOGETHER_MS = 10_000;

/** What they have in common: the kind, and of findings, whose code stands first in the text, that one. */
const topic = (event: Event) => `${event.kind} ${event.kind.startsWith('health.') ? event.text.split(':', 1)[0] : ''} ${event.host}`;

/** Runs of events that are alike, the newest first: a host that comes back ends a finding for each of its disks. */
export function foldEvents<E extends Event>(events: readonly E[]): EventRun<E>[] {
  const newest = [...events].sort((a, b) => b.time_ms - a.time_ms);
  const runs: E[][] = [];
  for (const event of newest) {
    const run = runs.at(-1);
    const first = run?.[0];
    if (run && first && topic(first) === topic(event) && first.time_ms - event.time_ms <= TOGETHER_MS) run.push(event);
    else runs.push([event]);
  }
  return runs.flatMap((run) => (run.length > ALONE_MAX ? [{ first: run[0]!, more: run.slice(1) }] : run.map((first) => ({ first, more: [] }))));
}
