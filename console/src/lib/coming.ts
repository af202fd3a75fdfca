/** Types of what the API is about to tell, by hand until the document has them. Pages do without where it is not there. */

import type { Schemas } from './api/client';

/** A request that an answer offers: a remedy, or the stop of a task. */
export interface Action {
  label: string;
  method: string;
  path: string;
  body?: unknown;
  /** The line for the command line that does the same. */
  command: string;
  is_destructive: boolean;
}

export type Finding = Schemas['FindingView'] & { actions?: Action[] };

/** What runs. */
export interface Task {
  id: string;
  kind: string;
  subject: string;
  text: string;
  who: string | null;
  /** Seconds since 1970. */
  since: number;
  /** 0 to 1. */
  progress: number | null;
  left_seconds: number | null;
  stop: Action | null;
}

export interface SeriesOfRates {
  iops: (number | null)[];
  bytes_per_second: (number | null)[];
  latency_us_p50: (number | null)[];
  latency_us_p99: (number | null)[];
}

/** What a subject did, in steps. */
export interface Series {
  of: string;
  step_seconds: number;
  /** Seconds since 1970 of the first step. */
  start: number;
  read: SeriesOfRates;
  write: SeriesOfRates;
}
