/** Who looks, and what they may: from `GET /me`, which every page has asked before it is drawn. */

import type { Schemas } from './client';

class Session {
  me = $state.raw<Schemas['MeView'] | null>(null);

  /** Whether the API would allow what needs this right. The API decides again at each request. */
  may(right: Schemas['RightWord']): boolean {
    return this.me?.rights.includes(right) ?? false;
  }
}

export const session = new Session();
