/** The time, for what says how long ago something was. It moves once a second, and only while somebody shows it. */

import { createSubscriber } from 'svelte/reactivity';

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, 1_000);
  return () => clearInterval(timer);
});

export const now = {
  /** Milliseconds since 1970. */
  get ms(): number {
    subscribe();
    return Date.now();
  },
};
