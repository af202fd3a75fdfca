/** Health in one sentence, from the counts that the API tells. */

import type { Schemas } from '$lib/api/client';
import { t } from '$lib/texts';

export function healthLine(health: Pick<Schemas['HealthView'], 'is_well' | 'findings'>): string {
  const count = (severity: Schemas['SeverityWord']) => health.findings.filter((finding) => finding.severity === severity).length;
  return t.overview.health(count('critical'), count('warning'), count('notice'));
}

/** The disk or host that a subject names, as a link: `disk web` → `/disks/web`; null for what has no page. */
export function subjectLink(subject: string): string | null {
  const match = /^(disk|host|policy) (.+)$/.exec(subject);
  if (!match) return null;
  return `/${{ disk: 'disks', host: 'hosts', policy: 'policies' }[match[1] as 'disk' | 'host' | 'policy']}/${encodeURIComponent(match[2] ?? '')}`;
}
