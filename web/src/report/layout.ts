// Where the nodes of a model's graph are drawn. dagre lays out pieces of it that few values cross, one below the other,
// equal ones once: the time it takes grows much faster than the number of nodes, and faster still with edges across
// many rows, so those are left out (a far edge is drawn as a mark).
import dagre from '@dagrejs/dagre';

export interface Point {
  x: number;
  y: number;
}
export interface Size {
  width: number;
  height: number;
}
export type Edge = readonly [from: number, to: number];

export interface Layout {
  /** The middle of each node; undefined until its piece was laid out. */
  at: (Point | undefined)[];
  /** The way of each edge, or undefined: its ends are too far from each other. */
  paths: (Point[] | undefined)[];
  /** Left and right end of everything, and its height so far. */
  left: number;
  right: number;
  height: number;
}

/** A piece has about so many nodes, and an edge crosses at most so many rows. */
const LEAST = 20,
  MOST = 100,
  FAR = 30;
const GAP = { nodesep: 24, edgesep: 12, ranksep: 34, ranker: 'tight-tree' } as const;

/** The row of each node: below all that it reads; what reads nothing is just above its first reader. */
export function rows(count: number, edges: readonly Edge[]): number[] {
  const readers = Array.from({ length: count }, () => [] as number[]);
  const waiting = new Array<number>(count).fill(0);
  for (const [from, to] of edges) {
    readers[from]!.push(to);
    waiting[to]!++;
  }
  const roots = waiting.flatMap((n, i) => (n === 0 ? [i] : []));
  const row = new Array<number>(count).fill(0);
  const queue = [...roots];
  for (const node of queue) {
    for (const reader of readers[node]!) {
      row[reader] = Math.max(row[reader]!, row[node]! + 1);
      if (--waiting[reader]! === 0) queue.push(reader);
    }
  }
  for (const root of roots) {
    const first = readers[root]!.reduce((least, reader) => Math.min(least, row[reader]!), Infinity);
    if (first < Infinity) row[root] = first - 1;
  }
  return row;
}

/** The first rows of the pieces: cut where few values cross, at the latest when a piece is large. */
export function cuts(row: readonly number[], near: readonly Edge[]): number[] {
  const depth = row.reduce((most, r) => Math.max(most, r + 1), 0);
  const inRow = new Array<number>(depth).fill(0),
    crossing = new Array<number>(depth + 1).fill(0);
  for (const r of row) inRow[r]!++;
  const until = new Map<number, number>();
  for (const [from, to] of near) until.set(from, Math.max(until.get(from) ?? 0, row[to]!));
  for (const [from, last] of until) for (let r = row[from]! + 1; r <= last; r++) crossing[r]!++;
  const found = [0];
  let nodes = 0,
    best = 0,
    behind = 0; // nodes in the piece, its best cut, nodes since that
  for (let r = 1; r < depth; r++) {
    nodes += inRow[r - 1]!;
    behind += inRow[r - 1]!;
    if (nodes >= LEAST && (best === 0 || crossing[r]! <= crossing[best]!)) {
      best = r;
      behind = 0;
    }
    if (best > 0 && (crossing[best]! <= 1 || nodes > MOST)) {
      found.push(best);
      nodes = behind;
      best = 0;
    }
  }
  return found;
}

/** The form of a piece: equal pieces, as a network's layers are, are laid out once. */
interface Piece {
  nodes: number[];
  /** Sources of values that come from the piece above, and of those that go on to the one below. */
  above: Map<number, number>;
  below: Map<number, number>;
  edges: [string, string][];
}

interface Drawn {
  at: Map<string, Point>;
  paths: Point[][];
  width: number;
  height: number;
}

function drawn(piece: Piece, sizes: readonly Size[], known: Map<string, Drawn>): Drawn {
  const key = JSON.stringify([piece.nodes.map((node) => [sizes[node]!.width, sizes[node]!.height]), piece.edges]);
  const before = known.get(key);
  if (before) return before;
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ ...GAP });
  graph.setDefaultEdgeLabel(() => ({}));
  piece.nodes.forEach((node, i) => graph.setNode(`n${i}`, { ...sizes[node]! }));
  for (const end of new Set(piece.edges.flat())) if (!end.startsWith('n')) graph.setNode(end, { width: 1, height: 1 });
  for (const [from, to] of piece.edges) graph.setEdge(from, to);
  dagre.layout(graph);
  const size = graph.graph() as unknown as Size;
  const place = (id: string) => graph.node(id) as Point;
  const found = {
    at: new Map(graph.nodes().map((id: string) => [id, { x: place(id).x, y: place(id).y }] as const)),
    paths: piece.edges.map(([from, to]) => (graph.edge(from, to) as { points: Point[] }).points),
    width: size.width,
    height: size.height,
  };
  known.set(key, found);
  return found;
}

/** Lays out a graph without cycles, from the top; yields after every piece. */
export function* layOut(sizes: readonly Size[], edges: readonly Edge[], layout: Layout): Generator<void> {
  const row = rows(sizes.length, edges);
  const near = edges.filter(([from, to]) => row[to]! - row[from]! <= FAR);
  const starts = cuts(row, near);
  const pieceOf = row.map((r) => starts.findLastIndex((start) => start <= r));
  const pieces: Piece[] = starts.map(() => ({ nodes: [], above: new Map(), below: new Map(), edges: [] }));
  const place = pieceOf.map((p, node) => pieces[p]!.nodes.push(node) - 1);
  const port = (ports: Map<number, number>, source: number) => {
    if (!ports.has(source)) ports.set(source, ports.size);
    return ports.get(source)!;
  };
  // The numbers of the edges say which drawn parts make the way of each: one within a piece, two from piece to piece.
  const parts: [piece: number, part: number][][] = edges.map(() => []);
  const add = (p: number, from: string, to: string) => {
    const known = pieces[p]!.edges.findIndex(([a, b]) => a === from && b === to);
    return known >= 0 ? known : pieces[p]!.edges.push([from, to]) - 1;
  };
  edges.forEach(([from, to], i) => {
    const p = pieceOf[from]!,
      q = pieceOf[to]!;
    if (row[to]! - row[from]! > FAR || q > p + 1) return;
    if (p === q) {
      parts[i]!.push([p, add(p, `n${place[from]}`, `n${place[to]}`)]);
      return;
    }
    const out = add(p, `n${place[from]}`, `b${port(pieces[p]!.below, from)}`);
    parts[i]!.push([p, out], [q, add(q, `a${port(pieces[q]!.above, from)}`, `n${place[to]}`)]);
  });
  /** The middle of a node's upper (-1) or lower (1) side: where edges begin and end. */
  const end = (node: number, side: 1 | -1) => ({
    x: layout.at[node]!.x,
    y: layout.at[node]!.y + (side * sizes[node]!.height) / 2,
  });
  const known = new Map<string, Drawn>();
  const done: Drawn[] = [],
    shifts: Point[] = [];
  let x = 0;
  for (const [p, piece] of pieces.entries()) {
    const found = drawn(piece, sizes, known);
    done.push(found);
    // A value enters a piece below the place where it left the one above.
    const gaps = [...piece.above].map(([source, number]) => {
      const out = pieces[p - 1]!.below.get(source)!;
      return done[p - 1]!.at.get(`b${out}`)!.x + shifts[p - 1]!.x - found.at.get(`a${number}`)!.x;
    });
    x = gaps.length > 0 ? gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length : x;
    const shift = { x, y: layout.height };
    shifts.push(shift);
    piece.nodes.forEach((node, i) => {
      const { x: left, y: top } = found.at.get(`n${i}`)!;
      layout.at[node] = { x: left + shift.x, y: top + shift.y };
    });
    layout.left = Math.min(layout.left, shift.x);
    layout.right = Math.max(layout.right, shift.x + found.width);
    layout.height += found.height + GAP.ranksep;
    for (const [i, [, to]] of edges.entries()) {
      if (pieceOf[to] !== p || parts[i]!.length === 0) continue;
      const way = parts[i]!.flatMap(([q, part]) =>
        done[q]!.paths[part]!.map((point) => ({ x: point.x + shifts[q]!.x, y: point.y + shifts[q]!.y })),
      );
      layout.paths[i] = [end(edges[i]![0], 1), ...way.slice(1, -1), end(to, -1)];
    }
    yield;
  }
}

export function emptyLayout(count: number, edges: number): Layout {
  return {
    at: new Array<undefined>(count).fill(undefined),
    paths: new Array<undefined>(edges).fill(undefined),
    left: 0,
    right: 0,
    height: 0,
  };
}
