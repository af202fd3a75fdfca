/** How the API's words look. A word says the state; the tone only repeats it. */

import type { Schemas } from '$lib/api/client';

export type Tone = 'good' | 'info' | 'busy' | 'warn' | 'bad' | 'unknown';

type Tones<W extends string> = Record<W, Tone>;

export const healthTone: Tones<Schemas['HealthWord']> = { well: 'good', notice: 'info', warning: 'warn', critical: 'bad', unknown: 'unknown' };
export const severityTone: Tones<Schemas['SeverityWord']> = { notice: 'info', warning: 'warn', critical: 'bad', unknown: 'unknown' };
export const hostTone: Tones<Schemas['HostWord']> = { alive: 'good', suspect: 'warn', away: 'bad', unknown: 'unknown' };
export const diskTone: Tones<Schemas['DiskWord']> = { creating: 'busy', active: 'good', deleting: 'busy', unknown: 'unknown' };
export const complianceTone: Tones<Schemas['ComplianceWord']> = { compliant: 'good', 'not compliant': 'warn', moving: 'busy', unknown: 'unknown' };
export const standingTone: Tones<Schemas['StandingWord']> = { active: 'good', absent: 'warn', stale: 'warn', 'stand-in': 'info', unknown: 'unknown' };
export const conditionTone: Tones<Schemas['ConditionWord']> = { whole: 'good', reduced: 'warn', inaccessible: 'bad', unknown: 'unknown' };
export const followerTone: Tones<Schemas['FollowerWord']> = { done: 'good', moving: 'busy', waiting: 'busy', refused: 'bad', unknown: 'unknown' };
export const changeTone: Tones<Schemas['PolicyChangeWord']> = { done: 'good', 'at once': 'good', moves: 'busy', refused: 'bad', unknown: 'unknown' };
export const balanceTone: Tones<Schemas['BalanceWord']> = { even: 'good', uneven: 'info', full: 'bad', unknown: 'unknown' };
export const fateTone: Tones<Schemas['FateWord']> = { missed: 'info', moves: 'busy', stuck: 'bad', inaccessible: 'bad', lost: 'bad', unknown: 'unknown' };
