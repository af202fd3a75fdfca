/** Words of a command line as a shell takes them. */

/** A word for a shell: quoted where it is not plain. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
