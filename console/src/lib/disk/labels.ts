/** Labels of disks: as texts, as rows that are edited, and as the change between two states. */

import { shellWord } from '$lib/format';
import { t } from '$lib/texts';

export type Labels = Record<string, string>;

/** A label as it is typed: its key may be missing still. */
export interface LabelRow {
  key: string;
  value: string;
}

export function labelRows(labels: Labels | undefined): LabelRow[] {
  return Object.entries(labels ?? {}).map(([key, value]) => ({ key, value }));
}

export const labelText = ({ key, value }: LabelRow) => `${key}=${value}`;

/** By what the disks with this label are found: the API takes several with commas between them, so a value with a comma cannot be named. */
export const labelFilter = (row: LabelRow) => (row.value.includes(',') ? row.key : labelText(row));

const isEmpty = ({ key, value }: LabelRow) => key.trim() === '' && value === '';

/** The rows as the API takes them. Empty rows are no labels. */
export function labelsOf(rows: readonly LabelRow[]): Labels {
  return Object.fromEntries(rows.filter((row) => !isEmpty(row)).map(({ key, value }) => [key.trim(), value]));
}

/** Why the rows are no labels; empty where they are. */
export function labelProblem(rows: readonly LabelRow[]): string {
  const keys = rows.filter((row) => !isEmpty(row)).map(({ key }) => key.trim());
  if (keys.includes('')) return t.disks.labelWithoutKey;
  const twice = keys.find((key, index) => keys.indexOf(key) !== index);
  return twice === undefined ? '' : t.disks.labelTwice(twice);
}

/** What has to be set, and removed (`null`), to get from one to the other. */
export function labelChange(before: Labels, after: Labels): Record<string, string | null> {
  const removed = Object.keys(before).filter((key) => !(key in after));
  const set = Object.entries(after).filter(([key, value]) => before[key] !== value);
  return Object.fromEntries([...removed.map((key): [string, null] => [key, null]), ...set]);
}

/** The same for the command line: `team=db env-`. */
export function labelArguments(change: Record<string, string | null>): string {
  return Object.entries(change).map(([key, value]) => shellWord(value === null ? `${key}-` : labelText({ key, value }))).join(' ');
}

/** Labels in an address, one a line: values may have commas, but no line ends. */
export const writeLabels = (labels: Labels) => labelRows(labels).map(labelText).join('\n');

export function readLabels(text: string): LabelRow[] {
  return text.split('\n').filter(Boolean).map((line) => {
    const [key = '', ...value] = line.split('=');
    return { key, value: value.join('=') };
  });
}
