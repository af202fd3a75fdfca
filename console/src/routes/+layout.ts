import { loadTexts } from '$lib/texts';
import { applyTheme } from '$lib/theme';

// One page that draws itself in the browser: the hosts serve files alone.
export const ssr = false;
export const prerender = false;

/** The words and the appearance are there before anything is drawn. */
export async function load(): Promise<void> {
  applyTheme();
  await loadTexts();
}
