/** The state of a disk in one word, from what its summary says; the reasons stay the API's. */

import type { Schemas } from '$lib/api/client';
import { t } from '$lib/texts';
import { diskTone, type Tone } from '$lib/tones';

export interface DiskState {
  tone: Tone;
  word: string;
  detail: string | null;
  /** For sorting: the worst first. */
  rank: number;
}

export function diskState(disk: Pick<Schemas['DiskSummary'], 'state' | 'unavailable' | 'not_whole' | 'under_way' | 'trouble'>): DiskState {
  const detail = disk.trouble ?? disk.under_way ?? null;
  if (disk.unavailable) return { tone: 'bad', word: t.disks.inaccessible, detail: disk.unavailable, rank: 0 };
  if (disk.not_whole && disk.not_whole.length > 0) return { tone: 'warn', word: t.disks.reduced, detail: disk.trouble ?? disk.not_whole.join('\n'), rank: 1 };
  if (disk.state !== 'active') return { tone: diskTone[disk.state], word: t.words.disk[disk.state], detail, rank: 2 };
  if (disk.under_way) return { tone: 'busy', word: t.disks.underWay, detail, rank: 3 };
  if (disk.trouble) return { tone: 'warn', word: t.disks.available, detail, rank: 2 };
  return { tone: 'good', word: t.disks.available, detail, rank: 4 };
}
