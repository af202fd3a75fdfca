/** The pages in the order of the menu. */

import { t } from '$lib/texts';

export interface Place {
  href: string;
  name: string;
}

export function navigation(): { title: string; places: Place[] }[] {
  const nav = t.shell.nav;
  return [
    { title: nav.groupNow, places: [{ href: '/', name: nav.overview }, { href: '/health', name: nav.health }, { href: '/tasks', name: nav.tasks }] },
    {
      title: nav.groupStorage,
      places: [
        { href: '/disks', name: nav.disks },
        { href: '/policies', name: nav.policies },
        { href: '/capacity', name: nav.capacity },
        { href: '/performance', name: nav.performance },
      ],
    },
    { title: nav.groupCluster, places: [{ href: '/hosts', name: nav.hosts }, { href: '/devices', name: nav.devices }, { href: '/resync', name: nav.resync }] },
    {
      title: nav.groupAdmin,
      places: [{ href: '/people', name: nav.people }, { href: '/settings', name: nav.settings }, { href: '/start', name: nav.start }],
    },
  ];
}

/** Whether a page is the place or below it. */
export function isAt(pathname: string, place: string): boolean {
  return place === '/' ? pathname === '/' : pathname === place || pathname.startsWith(`${place}/`);
}
