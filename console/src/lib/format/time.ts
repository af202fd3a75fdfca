/** Durations and moments as people read them. */

const STEPS: readonly (readonly [number, string])[] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
];

let locale = 'en';

export function setTimeLocale(name: string): void {
  locale = name;
}

/** The two largest units: `3 d 4 h`, `12 min`, `45 s`; `-` where nothing is known. */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return '-';
  let left = Math.max(0, Math.round(seconds));
  const parts: string[] = [];
  for (const [size, name] of STEPS) {
    const count = Math.floor(left / size);
    // A unit below the largest one that is zero says nothing.
    if (count > 0) parts.push(`${count} ${name}`);
    left -= count * size;
    if (parts.length > 0 && (parts.length === 2 || size <= 60)) break;
  }
  return parts.length > 0 ? parts.join(' ') : '0 s';
}

/** A moment with date and second; of milliseconds since 1970. */
export function formatMoment(ms: number | null | undefined): string {
  if (ms == null) return '-';
  return new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' }).format(ms);
}

/** A moment on the axis of a chart. */
export function formatTick(ms: number): string {
  const date = new Date(ms);
  // Midnight stands for its day.
  if (date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0) return new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric' }).format(ms);
  const options: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  return new Intl.DateTimeFormat(locale, date.getSeconds() === 0 ? options : { ...options, second: '2-digit' }).format(ms);
}

/** A moment of today without its date. */
export function formatShortMoment(ms: number, now: number): string {
  const isToday = new Date(ms).toDateString() === new Date(now).toDateString();
  const options: Intl.DateTimeFormatOptions = isToday
    ? { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }
    : { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  return new Intl.DateTimeFormat(locale, options).format(ms);
}

/** Seconds of a choice like `1h`, `15m`, `7d`; null where it is none. */
export function parseDuration(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|d)\s*$/i.exec(text);
  if (!match) return null;
  const unit = { s: 1, m: 60, min: 60, h: 3_600, d: 86_400 }[(match[2] ?? '').toLowerCase()];
  return unit === undefined ? null : Math.round(Number(match[1]) * unit);
}
