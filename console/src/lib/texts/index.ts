/**
 * All words of the pages, in the language of whoever looks. What the API says is shown as it says it.
 *
 * English is the reference: a German text that is missing, or takes other arguments, does not compile. The language is
 * chosen before the first page is drawn and changes with a new load, so that no component has to watch it.
 */

import { NO_ANSWER } from '$lib/api/client';
import { setNumberLocale } from '$lib/format/numbers';
import { setTimeLocale } from '$lib/format/time';
import { en } from './en';

/** Any words in place of the English ones, with the same arguments. */
type Words<T> = { [K in keyof T]: T[K] extends string ? string : T[K] extends (...given: infer A) => string ? (...given: A) => string : Words<T[K]> };

export type Texts = Words<typeof en>;
export type Language = 'en' | 'de';

const KEY = 'drystone-language';

export let t: Texts = en;

/** The language that was chosen, or the browser's. */
export function language(): Language {
  const chosen = localStorage.getItem(KEY) ?? navigator.language;
  return chosen.startsWith('de') ? 'de' : 'en';
}

/** Loads the words; once, before anything is drawn. */
export async function loadTexts(): Promise<void> {
  const name = language();
  if (name === 'de') t = (await import('./de')).de;
  document.documentElement.lang = name;
  // The region of the browser says how dates and numbers look where it is of the same language.
  const region = navigator.languages.find((each) => each.split('-')[0] === name) ?? name;
  setNumberLocale(region);
  setTimeLocale(region);
  NO_ANSWER.text = t.shell.noAnswer;
}

/** Chooses another language, and loads the page again. */
export function chooseLanguage(name: Language): void {
  localStorage.setItem(KEY, name);
  location.reload();
}
