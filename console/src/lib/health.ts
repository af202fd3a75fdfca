/** Health in one sentence, from the counts that the API tells. */

import type { Schemas } from '$lib/api/client';
import { t } from '$lib/texts';

export function healthLine(health: Pick<Schemas['HealthView'], 'is_well' | 'findings'>): string {
  const count = (severity: Schemas['SeverityWord']) => health.findings.filter((finding) => finding.severity === severity).length;
  return t.overview.health(count('critical'), count('warning'), count('notice'));
}

/** Findings of the same kind and severity: the first of them, and those like it. */
export interface FindingGroup<F> {
  first: F;
  more: F[];
}

/** Up to this many of a kind each stand for themselves. */
const ALONE_MAX = 3;

/** Says a thing once: a host that is away makes the same finding of each of its disks. The order of kinds stays. */
export function foldFindings<F extends Pick<Schemas['FindingView'], 'code' | 'severity'>>(findings: readonly F[]): FindingGroup<F>[] {
  const byKind = new Map<string, F[]>();
  for (const finding of findings) {
    const kind = `${finding.severity} ${finding.code}`;
    byKind.set(kind, [...(byKind.get(kind) ?? []), finding]);
  }
  return [...byKind.values()].flatMap((alike) => (alike.length > ALONE_MAX ? [{ first: alike[0]!, more: alike.slice(1) }] : alike.map((first) => ({ first, more: [] }))));
}

/** The disk or host that a subject names, as a link: `disk web` → `/disks/web`; null for what has no page. */
export function subjectLink(subject: string): string | null {
  const match = /^(disk|host|policy) (.+)$/.exec(subject);
  if (!match) return null;
  return `/${{ disk: 'disks', host: 'hosts', policy: 'policies' }[match[1] as 'disk' | 'host' | 'policy']}/${encodeURIComponent(match[2] ?? '')}`;
}
