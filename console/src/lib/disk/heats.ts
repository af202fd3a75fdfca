/** The heat maps of the disks that were looked at, so that another tab of the page does not lose what was gathered. */

import type { Heat } from '$lib/charts/heat';

export const heats = new Map<string, Heat>();
