/**
 * The one way to the API: typed requests of the document, and what every request has in common.
 *
 * Must never decide anything about the product: what may be done, the answers say.
 */

import createClient from 'openapi-fetch';
import { ApiFailure } from './failure';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];

let whenUnauthenticated: () => void = () => {};

/** Sets what happens when a host asks for a session: once, by the layout of all pages. */
export function onUnauthenticated(act: () => void): void {
  whenUnauthenticated = act;
}

/** Sends a request; a change says that it is JSON even without a body, since a session's cookie is not believed otherwise. */
async function send(input: Request): Promise<Response> {
  let request = input;
  if (input.method !== 'GET' && !input.headers.has('content-type')) {
    const headers = new Headers(input.headers);
    headers.set('content-type', 'application/json');
    request = new Request(input.url, { method: input.method, headers, body: '{}', signal: input.signal, credentials: 'same-origin' });
  }
  try {
    return await fetch(request);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiFailure(0, 'unreachable', NO_ANSWER.text, null);
  }
}

/** The words for a host that does not answer at all: set with the language, since no API says them. */
export const NO_ANSWER = { text: 'the host does not answer' };

/** Requests by path, as the OpenAPI document has them. */
export const api = createClient<paths>({ baseUrl: '', fetch: send });

/** The answer's data, or an `ApiFailure` in the API's words. */
export async function take<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (response.ok) return data as T;
  throw refuse(response.status, error);
}

function refuse(status: number, body: unknown): ApiFailure {
  if (status === 401 && exchanges === 0) whenUnauthenticated();
  return ApiFailure.of(status, body);
}

/** Requests under way that exchange this page's session for another. */
let exchanges = 0;

/** Awaits a request that exchanges the session: others that the host refuses meanwhile do not lead away, and are to be asked again. */
export async function exchangingSession<T>(call: () => Promise<T>): Promise<T> {
  exchanges += 1;
  try {
    return await call();
  } finally {
    // What was refused while this one was answered may come after it.
    setTimeout(() => (exchanges -= 1), EXCHANGE_MS);
  }
}

/** Until answers that were on their way when a session was exchanged are there. */
const EXCHANGE_MS = 2_000;

/** A request by a path that the document does not have yet, or that an answer told: the stop of a task, a remedy. */
export async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method, credentials: 'same-origin' };
  if (body !== undefined && body !== null) {
    init.body = JSON.stringify(body);
    init.headers = { 'content-type': 'application/json' };
  }
  const response = await send(new Request(path, init));
  const text = await response.text();
  let answer: unknown;
  try {
    answer = text === '' ? undefined : JSON.parse(text);
  } catch {
    answer = undefined;
  }
  if (response.ok) return answer as T;
  throw refuse(response.status, answer);
}
