/** When a new password may be sent. */

import { t } from '$lib/texts';

/** As few characters as the API takes. */
const LENGTH_MIN = 12;

/** Why it cannot be sent as it was typed, twice; empty where it can. */
export function newPasswordProblem(password: string, again: string): string {
  // Characters as people count them, and the API: not the halves of some that JavaScript counts.
  if ([...password].length < LENGTH_MIN) return t.shell.password.short;
  return password === again ? '' : t.shell.password.differ;
}
