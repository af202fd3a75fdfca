/** What is copied, in one sentence. */

import type { Schemas } from '$lib/api/client';
import { formatBytes, formatThroughput } from '$lib/format';
import { t } from '$lib/texts';

export function resyncLine(resync: Schemas['ResyncsView']): string {
  const components = resync.disks.flatMap((disk) => disk.components);
  const waiting = components.filter((component) => component.waits_for != null);
  if (components.length > 0 && waiting.length === components.length) return t.cluster.allWait(waiting.length);
  return t.cluster.total(formatBytes(resync.left_bytes), formatThroughput(resync.bytes_per_second));
}
