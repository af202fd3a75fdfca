/** Figures of what is on the screen: from the stream, or from `/top` where the host has none. */

import { createQuery } from '@tanstack/svelte-query';
import type { Schemas } from './client';
import { topQuery } from './queries';
import { stream } from './stream.svelte';
import { figuresOfTop } from './top';

let taken: unknown;

/** Keeps the figures of these subjects coming, for as long as the component is there. */
export function keepLive(subjects: () => readonly string[]): void {
  $effect(() => stream.want(subjects()));
  const top = createQuery(() => ({ ...topQuery(), enabled: !stream.isLive }));
  $effect(() => {
    // Several parts of a page share one answer: it counts once.
    if (stream.isLive || !top.data || taken === top.data) return;
    taken = top.data;
    const message: Schemas['StreamFigures'] = { time_ms: top.dataUpdatedAt, of: figuresOfTop(top.data), silent: [] };
    stream.take(message);
  });
}

/** The newest figures of a subject. */
export function figuresOf(subject: string): Schemas['LoadView'] | undefined {
  return stream.latest[subject];
}
