/** The layout of a disk as a tree: the API's lines by their indentation, each component joined with what is known of it. */

import type { Schemas } from '$lib/api/client';

export interface LayoutNode {
  /** What the line says, without its indentation. */
  text: string;
  component: Schemas['ComponentView'] | null;
  /** Which member of rows with parity the component is, as the line says it. */
  member: string | null;
  children: LayoutNode[];
}

export function layoutTree(lines: readonly string[], components: readonly Schemas['ComponentView'][]): LayoutNode[] {
  const byId = new Map(components.map((component) => [component.id, component]));
  const roots: LayoutNode[] = [];
  /** The open branch, from the root down, with the indentation of each. */
  const open: { depth: number; node: LayoutNode }[] = [];
  for (const line of lines) {
    const depth = line.length - line.trimStart().length;
    const text = line.trim();
    const [, member, id] = /^(?:(member \d+): )?component ([0-9a-f]+)\b/.exec(text) ?? [];
    const node: LayoutNode = { text, component: (id && byId.get(id)) || null, member: member ?? null, children: [] };
    while (open.length > 0 && open[open.length - 1]!.depth >= depth) open.pop();
    (open.at(-1)?.node.children ?? roots).push(node);
    open.push({ depth, node });
  }
  return roots;
}
