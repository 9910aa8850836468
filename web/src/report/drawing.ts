// Draws a laid-out graph on a canvas: what is in sight, and texts only where they can be read.
import { emptyLayout, layOut, type Layout, type Point, type Size } from './layout';
import type { View } from './model';
import { color, FONT, sized } from './page';

const LINE = 15,
  PADDING = 10,
  MOST_WIDTH = 280,
  READABLE = 0.45,
  STRIP = 14;
/** Of nodes whose values were compared. */
const VERDICTS = ['agrees', 'differs', 'first'] as const;
const COLORS = [
  'paper',
  'ink',
  'dim',
  'line',
  'accent',
  'match',
  'webgpu',
  'wasm',
  'wait',
  'stripe',
  ...VERDICTS,
] as const;

export interface Marks {
  selected: number | undefined;
  /** Nodes that belong to the selected one. */
  group: ReadonlySet<number>;
  found: ReadonlySet<number>;
}

/** `text`, or its end with a … before it: the ends of names tell nodes apart. */
function ending(text: string, most: number): string {
  return text.length <= most ? text : `…${text.slice(1 - most)}`;
}

export class Drawing {
  readonly layout: Layout;
  readonly steps: Generator<void>;
  readonly sizes: Size[];
  scale = 1;
  x = 0;
  y = 0;
  private readonly lines: string[][];
  /** Far edges by node: drawn as marks, or as lines when the node is selected. */
  private readonly far = new Map<number, number[]>();

  constructor(
    private readonly canvas: HTMLCanvasElement,
    readonly view: View,
  ) {
    const context = canvas.getContext('2d')!;
    context.font = `600 12px ${FONT}`;
    this.lines = view.nodes.map((node) => [
      node.op.replace(/^com\.microsoft::/, '') +
        (node.other.length > 1 && view.title === 'what runs' ? ` ← ${node.other.length} nodes` : ''),
      ending(node.name, 34),
    ]);
    this.sizes = view.nodes.map(({ shape }, i) => {
      const width = Math.max(...[...this.lines[i]!, shape].map((text) => context.measureText(text).width));
      return { width: Math.min(MOST_WIDTH, Math.ceil((width + 2 * PADDING) / 20) * 20), height: 3 * LINE + PADDING };
    });
    this.layout = emptyLayout(view.nodes.length, view.edges.length);
    this.steps = layOut(this.sizes, view.edges, this.layout);
  }

  /** Everything is laid out: which edges have no way is known. */
  finish(): void {
    this.view.edges.forEach(([from, to], i) => {
      if (this.layout.paths[i]) return;
      for (const end of [from, to]) this.far.set(end, [...(this.far.get(end) ?? []), i]);
    });
  }

  /** Puts the top of the graph into sight, as large as is good to read. */
  start(): void {
    this.scale = Math.min(1, this.canvas.clientWidth / (this.layout.right - this.layout.left + 40));
    this.scale = Math.max(this.scale, 0.6);
    this.x = (this.layout.left + this.layout.right) / 2 - this.canvas.clientWidth / 2 / this.scale;
    const first = this.layout.at.find((point) => point);
    if (first && this.layout.right - this.layout.left > this.canvas.clientWidth / this.scale)
      this.x = first.x - this.canvas.clientWidth / 2 / this.scale;
    this.y = -20;
  }

  /** Puts everything into sight. */
  fit(): void {
    const { left, right, height } = this.layout;
    this.scale = Math.min(1.5, this.canvas.clientWidth / (right - left + 40), this.canvas.clientHeight / (height + 40));
    this.x = (left + right) / 2 - this.canvas.clientWidth / 2 / this.scale;
    this.y = height / 2 - this.canvas.clientHeight / 2 / this.scale;
  }

  /** Puts a node into the middle, readable. */
  center(node: number): void {
    const point = this.layout.at[node];
    if (!point) return;
    this.scale = Math.max(this.scale, 0.8);
    this.x = point.x - this.canvas.clientWidth / 2 / this.scale;
    this.y = point.y - this.canvas.clientHeight / 2 / this.scale;
  }

  zoom(factor: number, px: number, py: number): void {
    const wanted = Math.min(4, Math.max(0.005, this.scale * factor));
    this.x += px / this.scale - px / wanted;
    this.y += py / this.scale - py / wanted;
    this.scale = wanted;
  }

  pan(dx: number, dy: number): void {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
  }

  /** The node at a pixel of the canvas. */
  nodeAt(px: number, py: number): number | undefined {
    const x = px / this.scale + this.x,
      y = py / this.scale + this.y;
    const found = this.layout.at.findIndex((at, i) => {
      const { width, height } = this.sizes[i]!;
      return at && Math.abs(at.x - x) <= width / 2 && Math.abs(at.y - y) <= height / 2;
    });
    return found < 0 ? undefined : found;
  }

  /** The height in the graph that the strip at the right shows at a pixel, if the pixel is on the strip. */
  jump(px: number, py: number): boolean {
    if (px < this.canvas.clientWidth - STRIP) return false;
    this.y = (py / this.canvas.clientHeight) * this.layout.height - this.canvas.clientHeight / 2 / this.scale;
    return true;
  }

  paint(marks: Marks): void {
    const width = this.canvas.clientWidth,
      height = this.canvas.clientHeight;
    const draw = sized(this.canvas, width, height);
    const tint = Object.fromEntries(COLORS.map((name) => [name, color(name)])) as Record<string, string>;
    draw.save();
    draw.scale(this.scale, this.scale);
    draw.translate(-this.x, -this.y);
    const top = this.y - 100,
      bottom = this.y + height / this.scale + 100;
    this.paintEdges(draw, tint, marks, top, bottom);
    let texts = 0;
    this.layout.at.forEach((at, i) => {
      if (!at || at.y < top || at.y > bottom) return;
      if (this.paintNode(draw, tint, marks, i, at)) texts++;
    });
    draw.restore();
    this.paintStrip(draw, tint, marks, width, height);
    Object.assign(this.canvas.dataset, {
      scale: String(this.scale),
      x: String(this.x),
      y: String(this.y),
      texts: String(texts),
    });
  }

  private paintEdges(
    draw: CanvasRenderingContext2D,
    tint: Record<string, string>,
    marks: Marks,
    top: number,
    bottom: number,
  ): void {
    this.view.edges.forEach(([from, to], i) => {
      const path = this.layout.paths[i],
        chosen = from === marks.selected || to === marks.selected;
      if (!path || path.at(-1)!.y < top || path[0]!.y > bottom) return;
      draw.strokeStyle = chosen ? tint.accent! : tint.dim!;
      draw.lineWidth = (chosen ? 2.5 : 1) / Math.min(1, Math.max(this.scale, 0.3));
      way(draw, path);
      if (this.scale < READABLE) return;
      const end = path.at(-1)!;
      draw.fillStyle = draw.strokeStyle;
      draw.beginPath();
      draw.moveTo(end.x, end.y);
      draw.lineTo(end.x - 4, end.y - 7);
      draw.lineTo(end.x + 4, end.y - 7);
      draw.fill();
    });
    if (marks.selected === undefined) return;
    draw.setLineDash([6, 5]);
    draw.strokeStyle = tint.accent!;
    draw.lineWidth = 1.5 / Math.min(1, this.scale);
    for (const i of this.far.get(marks.selected) ?? []) {
      const [from, to] = this.view.edges[i]!.map((node) => this.layout.at[node]);
      if (from && to) way(draw, [from, to]);
    }
    draw.setLineDash([]);
  }

  private paintNode(
    draw: CanvasRenderingContext2D,
    tint: Record<string, string>,
    marks: Marks,
    i: number,
    at: Point,
  ): boolean {
    const node = this.view.nodes[i]!,
      { width } = this.sizes[i]!;
    const left = at.x - width / 2,
      top = at.y - this.sizes[i]!.height / 2,
      high = 2 * LINE + 4;
    const chosen = i === marks.selected,
      grouped = marks.group.has(i),
      found = marks.found.has(i);
    draw.fillStyle = tint[node.place] ?? tint.stripe!;
    draw.strokeStyle = found ? tint.match! : chosen || grouped ? tint.accent! : tint.dim!;
    draw.lineWidth =
      (chosen ? 4 : found || grouped ? 3 : 1) / (found || chosen || grouped ? Math.min(1, this.scale) : 1);
    draw.setLineDash(node.place ? [] : [4, 3]);
    draw.beginPath();
    draw.roundRect(left, top, width, high, node.place === 'input' || node.place === 'output' ? high / 2 : 5);
    draw.fill();
    draw.stroke();
    draw.setLineDash([]);
    if (this.scale < READABLE) return false;
    draw.save();
    draw.beginPath();
    draw.rect(left + 2, top, width - 4, high + LINE + 4);
    draw.clip();
    draw.textAlign = 'center';
    draw.textBaseline = 'middle';
    draw.fillStyle = tint.ink!;
    draw.font = `600 12px ${FONT}`;
    draw.fillText(this.lines[i]![0]!, at.x, top + LINE / 2 + 3);
    draw.font = `11px ${FONT}`;
    draw.fillText(this.lines[i]![1]!, at.x, top + LINE * 1.5 + 2);
    draw.fillStyle = tint.dim!;
    const far = (this.far.get(i) ?? []).length;
    draw.fillText(node.shape + (far > 0 ? ` (+${far} far)` : ''), at.x, top + high + LINE / 2 + 1);
    draw.restore();
    return true;
  }

  /** At the right, the whole graph in a strip: where in it one is, and where its providers change. */
  private paintStrip(
    draw: CanvasRenderingContext2D,
    tint: Record<string, string>,
    marks: Marks,
    width: number,
    height: number,
  ): void {
    const ratio = height / Math.max(this.layout.height, 1);
    draw.fillStyle = tint.stripe!;
    draw.fillRect(width - STRIP, 0, STRIP, height);
    this.layout.at.forEach((at, i) => {
      if (!at) return;
      draw.fillStyle = marks.found.has(i) ? tint.match! : (tint[this.view.nodes[i]!.place] ?? tint.wait!);
      draw.fillRect(width - STRIP, at.y * ratio, STRIP, Math.max(1.5, this.sizes[i]!.height * ratio));
    });
    draw.strokeStyle = tint.ink!;
    draw.lineWidth = 1.5;
    draw.strokeRect(width - STRIP + 1, this.y * ratio, STRIP - 2, Math.max(4, (height / this.scale) * ratio));
  }
}

/** A smooth line through points. */
function way(draw: CanvasRenderingContext2D, points: readonly Point[]): void {
  draw.beginPath();
  draw.moveTo(points[0]!.x, points[0]!.y);
  for (let i = 1; i < points.length - 1; i++) {
    const here = points[i]!,
      next = points[i + 1]!;
    const end = i === points.length - 2 ? next : { x: (here.x + next.x) / 2, y: (here.y + next.y) / 2 };
    draw.quadraticCurveTo(here.x, here.y, end.x, end.y);
  }
  if (points.length === 2) draw.lineTo(points[1]!.x, points[1]!.y);
  draw.stroke();
}
