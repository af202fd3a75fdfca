import { redirect } from '@sveltejs/kit';
import { isBeforeLogIn, logInFrom } from '$lib/address';
import { cache } from '$lib/api/cache';
import { ApiFailure } from '$lib/api/failure';
import { meQuery } from '$lib/api/queries';
import { loadTexts } from '$lib/texts';
import { applyTheme } from '$lib/theme';

// One page that draws itself in the browser: the hosts serve files alone.
export const ssr = false;
export const prerender = false;

/** The words, the appearance, and who looks are there before anything is drawn: it is drawn once then. */
export async function load({ url, untrack }): Promise<void> {
  applyTheme();
  const first = untrack(() => new URL(url));
  await Promise.all([loadTexts(), isBeforeLogIn(first) ? undefined : askWhoLooks(first)]);
}

/** Whoever has no session goes to the login. What else is wrong, the page says. */
async function askWhoLooks(url: URL): Promise<void> {
  try {
    await cache.fetchQuery(meQuery());
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 401) redirect(307, logInFrom(url));
  }
}
