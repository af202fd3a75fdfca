/** A request that did not succeed, in the words of the API. */

import type { components } from './schema';

type Code = components['schemas']['Code'] | 'unauthenticated';

export class ApiFailure extends Error {
  constructor(
    /** Status of HTTP; 0 where no answer came. */
    readonly status: number,
    readonly code: Code,
    message: string,
    readonly hint: string | null,
  ) {
    super(message);
    this.name = 'ApiFailure';
  }

  /** Of the body of an answer, which may be anything where a proxy made it. */
  static of(status: number, body: unknown): ApiFailure {
    const told = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
    const text = (name: string) => (typeof told[name] === 'string' ? (told[name] as string) : null);
    const message = text('error') ?? `HTTP ${status}`;
    return new ApiFailure(status, (text('code') ?? 'failed') as Code, message, text('hint'));
  }
}
