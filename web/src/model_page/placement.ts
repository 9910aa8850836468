// The placement of nodes, with reasons: read from the model's file on demand, since it follows the weights.
import type { PlacedNode } from '../index';
import { Package } from '../package/package';
import { row } from './elements';

/** Most rows: a longer table is useless on a phone. */
const MOST = 2000;

export async function showPlacement(
  url: URL,
  providers: readonly string[],
  counted: HTMLElement,
  table: HTMLElement,
): Promise<void> {
  const model = await Package.open(url);
  try {
    const number = model.find(providers);
    if (number === undefined) return;
    const { nodes } = (await model.placement(number)) as { nodes: readonly PlacedNode[] };
    const counts = providers.map((name) => `${nodes.filter(({ provider }) => provider === name).length} on ${name}`);
    counted.textContent = `${nodes.length} nodes: ${counts.join(', ')}`;
    table.replaceChildren(
      ...nodes.slice(0, MOST).map(({ name, provider, kernel, reason }) => {
        const made = row([name, kernel, provider, reason]);
        for (const cell of made.cells) cell.className = cell.cellIndex === 0 ? 'text name' : 'text';
        return made;
      }),
    );
  } finally {
    model.close();
  }
}
