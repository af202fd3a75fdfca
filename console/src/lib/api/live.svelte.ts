/** Figures of what is on the screen, from the stream. */

import type { Schemas } from './client';
import { stream } from './stream.svelte';

/** Keeps the figures of these subjects coming, for as long as the component is there. */
export function keepLive(subjects: () => readonly string[]): void {
  $effect(() => stream.want(subjects()));
}

/** The newest figures of a subject. */
export function figuresOf(subject: string): Schemas['LoadView'] | undefined {
  return stream.latest[subject];
}
