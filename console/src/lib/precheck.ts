/** When a request may be sent whose dry run is asked first. */

import { t } from '$lib/texts';

/** Why it cannot be sent: its dry run is not there yet, or says that it is not possible. Empty where it can. */
export function checkHold(query: { data: { is_possible: boolean } | undefined; isFetching: boolean }): string {
  if (!query.data || query.isFetching) return t.disk.awaitForecast;
  return query.data.is_possible ? '' : t.cluster.impossible;
}
