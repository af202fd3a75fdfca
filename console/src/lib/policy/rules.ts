/** The rules of a form as the API and the command line take them: `gold,stripes=2`. */

export function rulesText(base: string, values: Record<string, string>): string {
  const said = Object.entries(values).flatMap(([rule, value]) => (value === '' ? [] : [`${rule}=${value}`]));
  return [base, ...said].filter(Boolean).join(',');
}
