/** Histograms of several disks over time as surfaces behind one another, in the words of the drawing library. */

import { formatCount } from '$lib/format/numbers';
import { bucketLabel, bucketName } from './buckets';
import type { Heat } from './heat';

export interface Lane {
  disk: string;
  heat: Heat;
  /** From few requests to many. */
  colours: [string, string];
}

export interface Look {
  text: string;
  line: string;
}

/** Labels of buckets for each disk: more would overlap. */
const LABELS_MAX = 8;

/** By the logarithm, or one busy second would hide the outliers. */
const height = (rate: number) => Math.log10(1 + rate);

export function surfaces(lanes: readonly Lane[], seconds: number, titles: { time: string; rate: string; values: string }, look: Look): { data: unknown[]; layout: unknown } {
  const buckets = Math.max(0, ...lanes.map(({ heat }) => heat.limits.length));
  const newest = Math.max(0, ...lanes.flatMap(({ heat }) => heat.columns.at(-1)?.time ?? []));
  // An empty bucket on both sides, so that each surface stands on the ground.
  const depth = buckets + 3;
  const most = Math.max(1, ...lanes.flatMap(({ heat }) => heat.columns.flatMap(({ counts }) => counts))) / seconds;
  const ticks: number[] = [];
  const names: string[] = [];
  const notes: unknown[] = [];
  const data = lanes.map(({ disk, heat, colours }, index) => {
    const front = (lanes.length - 1 - index) * depth;
    const x = heat.columns.map(({ time }) => (time - newest) / 1_000);
    const ground = x.map(() => 0);
    const rows = heat.limits.map((_, bucket) => heat.columns.map(({ counts }) => (counts[bucket] ?? 0) / seconds));
    const every = Math.ceil(heat.limits.length / Math.max(3, Math.floor((LABELS_MAX * 2) / lanes.length)));
    heat.limits.forEach((limit, bucket) => {
      if (bucket % every !== 0) return;
      ticks.push(front + bucket);
      names.push(bucketLabel(limit, heat.unit));
    });
    notes.push({ x: x[0] ?? 0, y: front + buckets / 2, z: height(most) * 0.15, text: disk.replace(/[<&]/g, ''), showarrow: false, xanchor: 'left', font: { size: 13, color: look.text } });
    return {
      type: 'surface', name: disk, showscale: false, x, y: [front - 1, ...heat.limits.map((_, bucket) => front + bucket), front + heat.limits.length],
      z: [ground, ...rows.map((row) => row.map(height)), ground],
      text: [ground.map(() => ''), ...rows.map((row, bucket) => row.map((rate) => `${disk}, ${bucketName(heat.limits, bucket, heat.unit)}: ${formatCount(rate)}`)), ground.map(() => '')],
      hovertemplate: '%{text}<extra></extra>', cmin: 0, cmax: height(most), colorscale: [[0, colours[0]], [1, colours[1]]], lighting: { ambient: 0.85, diffuse: 0.4, specular: 0.05, roughness: 0.9 },
    };
  });
  const rates = [0];
  for (let rate = 1; rate <= most * 3; rate *= 10) rates.push(rate);
  const axis = (title: string) => ({ title: { text: title, font: { size: 12, color: look.text } }, gridcolor: look.line, linecolor: look.line, zerolinecolor: look.line, showbackground: false, showspikes: false, tickfont: { size: 11, color: look.text } });
  return {
    data,
    layout: {
      height: 520, margin: { l: 0, r: 0, t: 0, b: 0 }, paper_bgcolor: 'rgba(0,0,0,0)', font: { color: look.text },
      scene: {
        xaxis: axis(titles.time), yaxis: { ...axis(titles.values), tickvals: ticks, ticktext: names }, zaxis: { ...axis(titles.rate), range: [0, height(most)], tickvals: rates.map(height), ticktext: rates.map(formatCount) },
        aspectmode: 'manual', aspectratio: { x: 1.9, y: Math.min(2.4, 0.8 + 0.4 * lanes.length), z: 0.7 }, camera: { eye: { x: 0.95, y: -2.05, z: 1.35 }, center: { x: 0, y: 0, z: -0.2 } }, annotations: notes,
      },
    },
  };
}
