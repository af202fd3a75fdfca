/**
 * What is fetched, under which key, and how often where the stream does not tell of changes.
 *
 * A key begins with the stream's topic, so that a message makes it stale; then `list`, or the name of one thing.
 */

import { api, take, type Schemas } from './client';
import { stream } from './stream.svelte';

/** Without the stream. */
const REFETCH_MS = 5_000;
/** With it: for what changes without a topic of its own. */
const SELDOM_MS = 30_000;

const often = () => (stream.isLive ? SELDOM_MS : REFETCH_MS);
/** For what takes every host some work, and changes slowly. */
const seldom = () => 60_000;

export const meQuery = () => ({
  queryKey: ['me'],
  queryFn: () => take(api.GET('/api/v1/me')) as Promise<Schemas['MeView']>,
  refetchInterval: seldom,
});

export const hostQuery = () => ({
  queryKey: ['hosts', 'list', 'this'],
  queryFn: () => take(api.GET('/api/v1/host')),
  refetchInterval: often,
});

export const hostsQuery = () => ({
  queryKey: ['hosts', 'list'],
  queryFn: () => take(api.GET('/api/v1/hosts')),
  refetchInterval: often,
});

export const healthQuery = () => ({
  queryKey: ['health', 'list'],
  queryFn: () => take(api.GET('/api/v1/health')),
  refetchInterval: often,
});

export const silencesQuery = () => ({
  queryKey: ['health', 'list', 'silences'],
  queryFn: () => take(api.GET('/api/v1/health/silences')),
  refetchInterval: often,
});

export interface DiskFilter {
  name?: string | undefined;
  policy?: string | undefined;
  label?: string | undefined;
  trouble?: boolean | undefined;
}

export const disksQuery = (filter: DiskFilter = {}) => ({
  queryKey: ['disks', 'list', filter],
  queryFn: () => take(api.GET('/api/v1/disks', { params: { query: filter } })),
  refetchInterval: often,
  // The former rows stay while others are asked for, so that the table does not jump at each letter of a filter.
  placeholderData: (former: Schemas['DiskSummary'][] | undefined) => former,
});

export const diskQuery = (name: string) => ({
  queryKey: ['disks', name],
  queryFn: () => take(api.GET('/api/v1/disks/{name}', { params: { path: { name } } })),
  refetchInterval: often,
});

export const snapshotsQuery = (name: string) => ({
  queryKey: ['disks', name, 'snapshots'],
  queryFn: () => take(api.GET('/api/v1/disks/{name}/snapshots', { params: { path: { name } } })),
  refetchInterval: often,
});

export const histogramsQuery = (name: string, since: number | null) => ({
  queryKey: ['figures', name, 'histograms', since],
  queryFn: () =>
    take(api.GET('/api/v1/disks/{name}/histograms', { params: { path: { name }, query: since === null ? {} : { since } } })),
  refetchInterval: () => 10_000,
});

export const topQuery = (milliseconds = 2_000) => ({
  queryKey: ['figures', 'top'],
  queryFn: () => take(api.GET('/api/v1/top')),
  refetchInterval: () => milliseconds,
});

/** Steps of a series: as many as a chart of some hundred pixels shows. */
const STEPS_MAX = 300;

/** What a subject did in the last so many seconds; `isAddedTo`: whoever shows it adds what the stream tells meanwhile. */
export const seriesQuery = (of: string, seconds: number, isAddedTo = false) => ({
  queryKey: ['figures', of, 'series', seconds],
  queryFn: () => take(api.GET('/api/v1/series', { params: { query: { of, seconds, points: STEPS_MAX } } })),
  // A step at a time. All hosts are asked for it.
  refetchInterval: () => Math.max(isAddedTo && stream.isLive ? seldom() : REFETCH_MS, (seconds / STEPS_MAX) * 1_000),
});

export const policiesQuery = () => ({
  queryKey: ['policies', 'list'],
  queryFn: () => take(api.GET('/api/v1/policies')),
  refetchInterval: often,
});

export const policyQuery = (name: string) => ({
  queryKey: ['policies', name],
  queryFn: () => take(api.GET('/api/v1/policies/{name}', { params: { path: { name } } })),
  refetchInterval: often,
});

export const estimateQuery = () => ({
  queryKey: ['estimate', 'list'],
  queryFn: () => take(api.GET('/api/v1/estimate')),
  refetchInterval: seldom,
});

export const estimateProgressQuery = () => ({
  queryKey: ['estimate', 'progress'],
  queryFn: () => take(api.GET('/api/v1/estimate/progress')),
  refetchInterval: ({ state }: { state: { data?: Schemas['EstimateProgressView'] | undefined } }) => (state.data?.is_running ? 1_000 : 60_000),
});

/** Where a policy would put a disk now, and what it costs: a question, so it is kept for as long as it is shown. */
export const explainQuery = (policy: string | null, size: number | null) => ({
  queryKey: ['policies', 'list', 'explain', policy, size],
  queryFn: () => take(api.POST('/api/v1/policies/explain', { body: { policy, size } })),
  refetchInterval: seldom,
  retry: false,
  placeholderData: (former: Schemas['ExplainedPolicy'] | undefined) => former,
});

export const whatIfQuery = (question: Schemas['WhatIf']) => ({
  queryKey: ['hosts', 'list', 'what-if', question],
  queryFn: () => take(api.POST('/api/v1/what-if', { body: question })),
  refetchInterval: seldom,
  retry: false,
});

export const devicesQuery = () => ({
  queryKey: ['devices', 'list'],
  queryFn: () => take(api.GET('/api/v1/cluster/devices')) as Promise<Schemas['AllDevicesView']>,
  refetchInterval: often,
});

export const balanceQuery = () => ({
  queryKey: ['devices', 'list', 'balance'],
  queryFn: () => take(api.GET('/api/v1/cluster/balance')),
  refetchInterval: often,
});

export const resyncQuery = () => ({
  queryKey: ['disks', 'list', 'resync'],
  queryFn: () => take(api.GET('/api/v1/resync')),
  // Progress has no topic: it changes all the time. That a copy begins is a change of its disk.
  refetchInterval: ({ state }: { state: { data?: Schemas['ResyncsView'] | undefined } }) => (state.data?.disks.length ? REFETCH_MS : often()),
});

export interface EventFilter {
  since?: number | undefined;
  about?: string | undefined;
  kind?: string | undefined;
  limit?: number | undefined;
}

export const eventsQuery = (filter: EventFilter) => ({
  queryKey: ['events', 'list', filter],
  queryFn: () => take(api.GET('/api/v1/cluster/events', { params: { query: filter } })),
  refetchInterval: often,
});

export const tasksQuery = () => ({
  // Nearly all that begins or ends is an event, too.
  queryKey: ['events', 'list', 'tasks'],
  queryFn: () => take(api.GET('/api/v1/tasks')),
  refetchInterval: ({ state }: { state: { data?: Schemas['TasksView'] | undefined } }) => (state.data?.tasks.length ? REFETCH_MS : often()),
});

export const settingsQuery = () => ({
  queryKey: ['settings', 'list'],
  queryFn: () => take(api.GET('/api/v1/cluster/settings')),
  refetchInterval: often,
});

export const versionsQuery = () => ({
  queryKey: ['hosts', 'list', 'versions'],
  queryFn: () => take(api.GET('/api/v1/cluster/versions')),
  refetchInterval: seldom,
});

export const directoryQuery = () => ({
  queryKey: ['hosts', 'list', 'directory'],
  queryFn: () => take(api.GET('/api/v1/cluster/directory')),
  refetchInterval: often,
});

export const peopleQuery = () => ({
  queryKey: ['people', 'list'],
  queryFn: () => take(api.GET('/api/v1/people')),
  refetchInterval: often,
});

/** How people may log in, besides with a link. */
export const logInChoicesQuery = () => ({
  queryKey: ['people', 'list', 'choices'],
  queryFn: () => take(api.GET('/api/v1/session')),
  refetchInterval: seldom,
});

export const certificatesQuery = () => ({
  queryKey: ['people', 'list', 'certificates'],
  queryFn: () => take(api.GET('/api/v1/certificates')),
  refetchInterval: seldom,
});

/**
 * What creating this disk would do: a dry run where the request is whole, so that a name that is taken is told, too; else
 * what its policy is.
 */
export const previewQuery = (request: Schemas['CreateDisk'], isWhole: boolean) => ({
  queryKey: ['disks', 'list', 'preview', request, isWhole],
  queryFn: async (): Promise<Schemas['ExplainedPolicy']> => {
    if (!isWhole) return take(api.POST('/api/v1/policies/explain', { body: { policy: request.policy ?? null, size: request.size || null } }));
    const answer = await take(api.POST('/api/v1/disks', { body: { ...request, dry_run: true } }));
    return answer as Schemas['ExplainedPolicy'];
  },
  retry: false,
  refetchInterval: seldom,
  placeholderData: (former: Schemas['ExplainedPolicy'] | undefined) => former,
});
