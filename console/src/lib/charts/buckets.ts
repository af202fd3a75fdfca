/** Names of a histogram's buckets. A bucket holds what is above the limit before and at most its own. */

import { formatNumber } from '$lib/format/numbers';

/** A limit in few letters: `4k`, `-128`, `1M`. */
export function bucketLabel(limit: number | null): string {
  if (limit === null) return '∞';
  const size = Math.abs(limit);
  if (size >= 1_000_000) return `${Math.round(limit / 100_000) / 10}M`;
  if (size >= 1_000) return `${Math.round(limit / 100) / 10}k`;
  return String(limit);
}

export function bucketName(limits: readonly (number | null)[], index: number, unit: string): string {
  const limit = limits[index] ?? null;
  const before = index > 0 ? (limits[index - 1] ?? null) : null;
  if (limit === null) return before === null ? `- ${unit}` : `> ${formatNumber(before)} ${unit}`;
  return before === null ? `≤ ${formatNumber(limit)} ${unit}` : `> ${formatNumber(before)} – ${formatNumber(limit)} ${unit}`;
}
