/** Names of a histogram's buckets. A bucket holds what is above the limit before and at most its own. */

import { formatBytes, formatLatency, formatNumber } from '$lib/format/numbers';

/** Units as people write them. */
export function unitName(unit: string): string {
  return unit === 'us' ? 'µs' : unit;
}

/** A value with its unit as people read it: `4 KiB`, `1.2 ms`, `38 sectors`. */
export function valueText(value: number | null | undefined, code: string): string {
  if (value == null) return '-';
  if (code === 'bytes') return formatBytes(value);
  return code === 'us' ? formatLatency(value) : `${formatNumber(value)} ${unitName(code)}`;
}

/** A limit in few letters: `4k`, `-128`, `1M`. Bytes are counted in powers of 1024. */
export function bucketLabel(limit: number | null, unit: string): string {
  if (limit === null) return '∞';
  const thousand = unit === 'bytes' ? 1_024 : 1_000;
  const size = Math.abs(limit);
  const short = (value: number) => String(Math.round(value * 10) / 10);
  if (size >= thousand ** 2) return `${short(limit / thousand ** 2)}M`;
  if (size >= thousand) return `${short(limit / thousand)}k`;
  return String(limit);
}

export function bucketName(limits: readonly (number | null)[], index: number, code: string): string {
  const limit = limits[index] ?? null;
  const before = index > 0 ? (limits[index - 1] ?? null) : null;
  if (limit === null) return `> ${valueText(before, code)}`;
  return before === null ? `≤ ${valueText(limit, code)}` : `> ${valueText(before, code)} – ${valueText(limit, code)}`;
}
