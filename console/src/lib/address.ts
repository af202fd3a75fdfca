/** The state of a page in its address, so that a link shows what its sender saw. */

import { goto } from '$app/navigation';
import { page } from '$app/state';

/** One parameter of the address; empty where it is not there. */
export function param(name: string): string {
  return page.url.searchParams.get(name) ?? '';
}

/** Changes parameters; an empty value takes one away. The focus stays where it is. */
export function setParams(values: Record<string, string>, keepsHistory = false): void {
  const url = new URL(page.url);
  for (const [name, value] of Object.entries(values)) {
    if (value === '') url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  void goto(url, { replaceState: !keepsHistory, keepFocus: true, noScroll: true });
}

/** Whether a page is there for those who have not logged in. */
export function isBeforeLogIn(url: URL): boolean {
  return url.pathname === '/login' || url.pathname === '/in';
}

/** The login, which leads back to where somebody wanted to be. */
export function logInFrom(url: URL): string {
  const here = url.pathname + url.search;
  return here === '/' ? '/login' : `/login?back=${encodeURIComponent(here)}`;
}

/** The address of a thing, whatever its name has in it. */
export const href = {
  disk: (name: string) => `/disks/${encodeURIComponent(name)}`,
  host: (name: string) => `/hosts/${encodeURIComponent(name)}`,
  policy: (name: string) => `/policies/${encodeURIComponent(name)}`,
  /** The disks that have a label: `team=db`, or `team` with any value. */
  labelled: (label: string) => `/disks?label=${encodeURIComponent(label)}`,
};
