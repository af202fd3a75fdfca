/** What was fetched, for all pages. */

import { QueryClient } from '@tanstack/svelte-query';
import { ApiFailure } from './failure';

export const cache = new QueryClient({
  defaultOptions: {
    queries: {
      // What a host refuses, it refuses again; only silence is worth another try.
      retry: (count, error) => count < 1 && !(error instanceof ApiFailure && error.status >= 400 && error.status < 500),
      refetchOnWindowFocus: true,
      staleTime: 1_000,
    },
  },
});
