/**
 * What changes, told by the server: figures once a second, and topics that have changed.
 *
 * One connection for the whole page, with what its parts ask for together. While it is broken, `isLive` is
 * false and the queries fetch again by themselves. Messages say nothing that a request would not.
 */

import type { QueryClient } from '@tanstack/svelte-query';
import type { Schemas } from './client';

export type Topic = 'disks' | 'hosts' | 'policies' | 'health' | 'events' | 'devices' | 'settings' | 'people';

const TOPICS: readonly Topic[] = ['disks', 'hosts', 'policies', 'health', 'events', 'devices', 'settings', 'people'];
/** Parts of a page that come and go together make one new connection. */
const GATHER_MS = 200;
/** Changes within this time make one fetch: a busy cluster tells of more than anybody reads. */
const SETTLE_MS = 1_000;
/** How long until a server that refused the stream is asked for it again. */
const RETRY_MS = 30_000;
/** Seconds of figures that are kept of each subject. */
export const HISTORY_MAX = 900;

/** What a subject did in one second; the time is in milliseconds since 1970. */
export interface Sample {
  time: number;
  figures: Schemas['LoadView'];
}

class Stream {
  /** Whether messages come. */
  isLive = $state(false);
  /** Hosts that did not answer when the newest figures were gathered. */
  silent = $state.raw<string[]>([]);
  /** The newest figures by subject: `cluster`, `disk/web`, `host/a`. */
  latest = $state.raw<Record<string, Schemas['LoadView']>>({});
  /** Counts the messages with figures, for who reads `history`. */
  tick = $state(0);

  private readonly history = new Map<string, Sample[]>();
  private readonly wanted = new Map<string, number>();
  private readonly stale = new Set<string>();
  private source: EventSource | null = null;
  private client: QueryClient | null = null;
  private asked = '';
  /** Whether seconds are missing in what was told. */
  private hadGap = false;
  private gather: ReturnType<typeof setTimeout> | undefined;
  private settle: ReturnType<typeof setTimeout> | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;

  /** Connects; what has changed becomes stale in this client. */
  start(client: QueryClient): void {
    this.client = client;
    this.connectSoon();
  }

  /** Ends the connection, as after a logout. */
  stop(): void {
    this.client = null;
    this.close();
  }

  /** Asks for figures of these subjects until the returned function is called. */
  want(subjects: readonly string[]): () => void {
    for (const subject of subjects) this.wanted.set(subject, (this.wanted.get(subject) ?? 0) + 1);
    this.connectSoon();
    return () => {
      for (const subject of subjects) {
        const count = (this.wanted.get(subject) ?? 1) - 1;
        if (count > 0) this.wanted.set(subject, count);
        else this.wanted.delete(subject);
      }
      this.connectSoon();
    };
  }

  /** What a subject did lately, the oldest first. */
  samples(subject: string): readonly Sample[] {
    return this.history.get(subject) ?? [];
  }

  private take(message: Schemas['StreamFigures']): void {
    for (const [subject, figures] of Object.entries(message.of)) {
      const samples = this.history.get(subject) ?? [];
      if (samples.length >= HISTORY_MAX) samples.shift();
      samples.push({ time: message.time_ms, figures });
      this.history.set(subject, samples);
    }
    this.latest = { ...this.latest, ...message.of };
    this.silent = message.silent;
    this.tick += 1;
  }

  private connectSoon(): void {
    clearTimeout(this.gather);
    this.gather = setTimeout(() => this.connect(), GATHER_MS);
  }

  private connect(): void {
    if (!this.client) return;
    const figures = [...this.wanted.keys()].sort().map(encodeURIComponent).join(',');
    const address = `/api/v1/stream?topics=${TOPICS.join(',')}${figures ? `&figures=${figures}` : ''}`;
    if (this.source && this.asked === address && this.source.readyState !== EventSource.CLOSED) return;
    // Another connection for other figures is no silence: what is shown stays live meanwhile.
    clearTimeout(this.retry);
    this.source?.close();
    this.asked = address;
    const source = new EventSource(address);
    this.source = source;
    source.addEventListener('open', () => (this.isLive = true));
    source.addEventListener('all', () => {
      this.forget(this.hadGap ? ['', 'figures'] : ['']);
      this.hadGap = false;
    });
    source.addEventListener('changed', (event) => {
      const { topic, key } = JSON.parse(event.data as string) as { topic: string; key?: string };
      this.forget([topic], key);
    });
    source.addEventListener('figures', (event) => this.take(JSON.parse(event.data as string) as Schemas['StreamFigures']));
    source.addEventListener('error', () => {
      // What would have been told is asked for at once: it may be that the session has ended.
      if (this.isLive) this.forget(['']);
      this.isLive = false;
      this.hadGap = true;
      // The browser connects again by itself, but not after an answer that is no stream.
      if (source.readyState !== EventSource.CLOSED) return;
      clearTimeout(this.retry);
      this.retry = setTimeout(() => this.connect(), RETRY_MS);
    });
  }

  private close(): void {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
    this.isLive = false;
  }

  /** Queries begin with their topic; those of one thing have its key next. An empty topic is all of them. */
  private forget(topics: readonly string[], key?: string): void {
    for (const topic of topics) this.stale.add(key === undefined ? topic : `${topic}/${key}`);
    // The first change starts the time: put off by each, none would ever come.
    if (this.settle !== undefined) return;
    this.settle = setTimeout(() => {
      this.settle = undefined;
      const stale = new Set(this.stale);
      this.stale.clear();
      void this.client?.invalidateQueries({
        predicate: ({ queryKey }) => {
          const [topic, one] = queryKey as string[];
          if (topic && stale.has(topic)) return true;
          if (stale.has('')) return topic !== 'me' && topic !== 'figures';
          // A list changes with each of its things; a view of one thing with that one alone.
          return [...stale].some((name) => name.startsWith(`${topic}/`) && (one === undefined || one === 'list' || name === `${topic}/${one}`));
        },
      });
    }, SETTLE_MS);
  }
}

/** The page's connection. */
export const stream = new Stream();
