/** The answer of `/top` in the form of the stream's figures. */

import type { Schemas } from './client';

type Rate = Schemas['RateView'];

/** Of several disks together. Percentiles cannot be added: the greatest of them is an upper bound, and stands for them. */
function together(rates: Rate[]): Rate {
  const most = (name: 'latency_us_p50' | 'latency_us_p99') => {
    const known = rates.flatMap((rate) => (rate[name] == null ? [] : [rate[name]]));
    return known.length > 0 ? Math.max(...known) : null;
  };
  return {
    iops: rates.reduce((sum, rate) => sum + rate.iops, 0),
    bytes_per_second: rates.reduce((sum, rate) => sum + rate.bytes_per_second, 0),
    latency_us_p50: most('latency_us_p50'),
    latency_us_p99: most('latency_us_p99'),
  };
}

export function figuresOfTop(top: Schemas['TopView']): Record<string, Schemas['LoadView']> {
  const of: Record<string, Schemas['LoadView']> = {};
  for (const { disk, read, write, outstanding, client_count } of top.disks) of[`disk/${disk}`] = { read, write, outstanding, client_count };
  of['cluster'] = {
    read: together(top.disks.map((disk) => disk.read)),
    write: together(top.disks.map((disk) => disk.write)),
    outstanding: top.disks.reduce((sum, disk) => sum + disk.outstanding, 0),
    client_count: top.disks.reduce((sum, disk) => sum + disk.client_count, 0),
  };
  return of;
}
