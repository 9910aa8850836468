// The page of a model's graph: as it runs, and as it was given; search, and the facts about a node.
import { Drawing } from './drawing';
import { follow } from './gestures';
import { matches, type GraphNode, type View } from './model';
import { button, painter, pageData } from './page';
import { interactiveTables } from './tables';

const FRAME_MS = 25,
  MOST_LISTED = 200;
/** The words for each place, and the node that is shown first. */
const { views, legend, start } = pageData<{ views: View[]; legend: Record<string, string>; start?: number }>();
const canvas = document.querySelector('canvas')!;
const summary = document.getElementById('summary')!,
  about = document.getElementById('about')!,
  results = document.getElementById('results')!;
const search = document.querySelector<HTMLInputElement>('#search')!,
  count = document.getElementById('count')!;
const drawings = new Map<View, Drawing>();
let view = views[0]!,
  selected: number | undefined,
  found: number[] = [],
  current = -1;
let group = new Set<number>(),
  marked = new Set<number>();

const drawing = () => drawings.get(view)!;
const repaint = painter(() => drawing().paint({ selected, group, found: marked }));

/** Lays a view out piece by piece in each frame, so that its top is visible at once. */
function show(next: View, then: () => void = () => {}): void {
  view = next;
  for (const tab of document.querySelectorAll<HTMLButtonElement>('#views button'))
    tab.ariaPressed = String(tab.textContent === view.title);
  if (drawings.has(view)) {
    repaint();
    then();
    return;
  }
  const made = new Drawing(canvas, view);
  drawings.set(view, made);
  canvas.dataset.ready = '';
  const go = () => {
    const began = performance.now(),
      fresh = made.layout.height === 0;
    let ended = false;
    while (!ended && performance.now() - began < FRAME_MS) ended = made.steps.next().done === true;
    if (fresh && view === next) made.start();
    if (!ended) {
      repaint();
      setTimeout(go);
      return;
    }
    made.finish();
    if (view === next) {
      canvas.dataset.ready = view.title;
      repaint();
      then();
    }
  };
  go();
}

function lines(title: string, texts: readonly string[]): HTMLElement[] {
  if (texts.length === 0) return [];
  const heading = document.createElement('h3'),
    list = document.createElement('ul');
  heading.textContent = title;
  list.append(...texts.map((text) => Object.assign(document.createElement('li'), { textContent: text })));
  return [heading, list];
}

/** The place of a node in words, with the reason. */
function facts({ place, why, inside }: GraphNode): string[] {
  const end = place === 'input' || place === 'output';
  const runs = end ? `the model's ${place}` : (legend[place || 'stripe'] ?? '');
  return [runs, why, inside && `inside ${inside}`].filter(Boolean);
}

function links(title: string, of: View, nodes: readonly number[], remarks = false): HTMLElement[] {
  if (nodes.length === 0) return [];
  const heading = document.createElement('h3'),
    list = document.createElement('ul');
  heading.textContent = title;
  list.append(
    ...nodes.slice(0, MOST_LISTED).map((i) => {
      const { op, name } = of.nodes[i]!,
        item = document.createElement('li'),
        note = document.createElement('small');
      note.textContent = remarks ? ` ${facts(of.nodes[i]!).join(' · ')}` : '';
      item.append(
        button(`${op}  ${name}`, 'Show it', () => go(of, i)),
        note,
      );
      return item;
    }),
  );
  if (nodes.length > MOST_LISTED)
    list.append(Object.assign(document.createElement('li'), { textContent: `… ${nodes.length - MOST_LISTED} more` }));
  return [heading, list];
}

function tell(node: GraphNode, i: number): HTMLElement[] {
  const title = document.createElement('h2'),
    where = document.createElement('p');
  title.textContent = node.op;
  where.textContent = [node.name, ...facts(node)].filter(Boolean).join(' · ');
  const other = views.find((one) => one !== view);
  const ends = (end: 0 | 1) => [...new Set(view.edges.filter((edge) => edge[1 - end] === i).map((edge) => edge[end]!))];
  return [
    button('×', 'Close', () => select(undefined)),
    title,
    where,
    ...lines('reads', node.inputs),
    ...lines('writes', node.outputs),
    ...lines('attributes', node.attributes),
    ...(other ? links(view === views[0] ? 'made of these nodes of the model' : 'became', other, node.other) : []),
    ...links('before it', view, ends(0)),
    ...links('after it', view, ends(1)),
  ];
}

/** In the model, all nodes that became the same one belong together. */
function belonging(i: number): Set<number> {
  const other = views.find((one) => one !== view);
  if (!other || view === views[0]) return new Set();
  return new Set(view.nodes[i]!.other.flatMap((made) => other.nodes[made]!.other));
}

function select(i: number | undefined): void {
  selected = i;
  group = i === undefined ? new Set() : belonging(i);
  about.replaceChildren(...(i === undefined ? [] : tell(view.nodes[i]!, i)));
  summary.hidden = i !== undefined;
  about.hidden = i === undefined;
  repaint();
}

function go(to: View, i: number): void {
  const then = () => {
    drawing().center(i);
    select(i);
  };
  if (to === view) then();
  else {
    select(undefined);
    show(to, () => {
      look();
      then();
    });
  }
}

function look(): void {
  const text = search.value.toLowerCase();
  found = text ? view.nodes.flatMap((node, i) => (matches(node, text) ? [i] : [])) : [];
  const exact = (i: number) => [view.nodes[i]!.op, view.nodes[i]!.name].some((part) => part.toLowerCase() === text);
  found = [...found.filter(exact), ...found.filter((i) => !exact(i))];
  marked = new Set(found);
  current = -1;
  count.textContent = text ? `${found.length} found` : '';
  results.replaceChildren(...links('Found', view, found, true));
  results.hidden = found.length === 0;
  repaint();
}

function step(by: number): void {
  if (found.length === 0) return;
  current = (current + by + found.length) % found.length;
  count.textContent = `${current + 1} of ${found.length}`;
  go(view, found[current]!);
}

const middle = (factor: number) => {
  drawing().zoom(factor, canvas.clientWidth / 2, canvas.clientHeight / 2);
  repaint();
};
document.getElementById('views')!.append(
  ...views.flatMap((one) => [
    button(one.title, `The graph: ${one.title}`, () => {
      select(undefined);
      show(one, look);
    }),
    ' ',
  ]),
);
document.getElementById('zoom')!.append(
  button('+', 'Closer', () => middle(1.4)),
  ' ',
  button('−', 'Further', () => middle(1 / 1.4)),
  ' ',
  button('all', 'Everything in sight', () => {
    drawing().fit();
    repaint();
  }),
  ' ',
  button('top', 'The beginning', () => {
    drawing().start();
    repaint();
  }),
);
search.addEventListener('input', look);
search.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
});
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') select(undefined);
  if (event.key === '/' && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
});
follow(canvas, {
  pan(dx, dy) {
    drawing().pan(dx, dy);
    repaint();
  },
  zoom(factor, x, y) {
    drawing().zoom(factor, x, y);
    repaint();
  },
  hover(point) {
    canvas.style.cursor = point && drawing().nodeAt(point.x, point.y) !== undefined ? 'pointer' : 'grab';
  },
  click(x, y) {
    if (drawing().jump(x, y)) repaint();
    else select(drawing().nodeAt(x, y));
  },
  doubleClick(x, y) {
    drawing().zoom(1.6, x, y);
    repaint();
  },
});
for (const point of document.querySelectorAll<SVGElement>('svg [data-node]')) {
  const choose = () => go(views[0]!, Number(point.dataset.node));
  point.addEventListener('click', choose);
  point.addEventListener('keydown', (event) => event.key === 'Enter' && choose());
}
/** Marks nodes of the model, such as those that a pass changed, and moves to the first. */
function mark(nodes: readonly number[]): void {
  select(undefined);
  show(views.at(-1)!, () => {
    drawing().center(nodes[0]!);
    group = new Set(nodes);
    canvas.dataset.marked = String(nodes.length);
    repaint();
  });
}

for (const row of document.querySelectorAll<HTMLElement>('[data-marks]'))
  row.addEventListener('click', () => mark(row.dataset.marks!.split(' ').map(Number)));
interactiveTables();
show(view, () => start !== undefined && go(view, start));
