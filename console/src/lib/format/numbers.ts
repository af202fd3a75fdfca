/** Numbers as people read them. Sizes are in powers of 1024, as the command line has them. */

const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

let locale = 'en';

/** Sets whose decimal marks are used; once, before anything is shown. */
export function setNumberLocale(name: string): void {
  locale = name;
}

/** Three significant digits, but whole numbers are never cut. */
export function formatNumber(value: number, digits = 3): string {
  // Minus zero is what a sum of no rates can be, and reads as an error.
  const shown = Object.is(value, -0) ? 0 : value;
  const whole = Math.abs(shown) >= 100;
  return new Intl.NumberFormat(locale, whole ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits }).format(shown);
}

/** `1.5 GiB`; `-` where nothing is known. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes == null) return '-';
  let value = bytes;
  let unit = 0;
  // 1023.6 would be shown as 1,024 of the smaller unit.
  while (Math.abs(value) >= 1023.5 && unit < SIZES.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${formatNumber(value)} ${SIZES[unit]}`;
}

/** `12.3 MiB/s`. */
export function formatThroughput(bytesPerSecond: number | null | undefined): string {
  return bytesPerSecond == null ? '-' : `${formatBytes(Math.max(0, bytesPerSecond))}/s`;
}

/** `950`, `12.3k`, `1.2M`. */
export function formatCount(value: number | null | undefined): string {
  if (value == null) return '-';
  if (Math.abs(value) >= 999_500) return `${formatNumber(value / 1e6)}M`;
  if (Math.abs(value) >= 9_999.5) return `${formatNumber(value / 1e3)}k`;
  return formatNumber(Math.abs(value) < 10 ? Math.round(value * 10) / 10 : Math.round(value), 4);
}

/** Of microseconds: `232 µs`, `3.78 ms`, `1.2 s`. */
export function formatLatency(us: number | null | undefined): string {
  if (us == null) return '-';
  if (us < 999.5) return `${formatNumber(us)} µs`;
  if (us < 999_500) return `${formatNumber(us / 1e3)} ms`;
  return `${formatNumber(us / 1e6)} s`;
}

/** `38 %`; less than one percent of something keeps a digit, so that it does not read as nothing. */
export function formatPercent(percent: number | null | undefined): string {
  if (percent == null) return '-';
  const rounded = percent > 0 && percent < 1 ? Math.ceil(percent * 10) / 10 : Math.round(percent);
  return `${formatNumber(rounded)} %`;
}

/** The share of a whole in percent; nothing has no share. */
export function percentOf(part: number, whole: number): number {
  return whole > 0 ? (part / whole) * 100 : 0;
}

/**
 * The bytes that a size in words names: `512`, `4K`, `10GiB`, `1.5T`, as the command line takes them; null where it names
 * none.
 */
export function parseSize(text: string): number | null {
  const match = /^\s*(\d+(?:[.,]\d+)?)\s*([kmgtp]?)(?:i?b)?\s*$/i.exec(text);
  if (!match) return null;
  const power = ' kmgtp'.indexOf((match[2] ?? '').toLowerCase() || ' ');
  const bytes = Number((match[1] ?? '').replace(',', '.')) * 1024 ** power;
  return Number.isFinite(bytes) && bytes <= Number.MAX_SAFE_INTEGER ? Math.round(bytes) : null;
}

/** A size that the command line reads back to the same bytes: `10GiB`. */
export function sizeArgument(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (unit < SIZES.length - 1 && value >= 1024 && value % 1024 === 0) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? String(value) : `${value}${SIZES[unit]}`;
}
