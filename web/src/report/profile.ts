// The profile page: a flame chart of the whole trace above tables that can be sorted.
import { follow } from './gestures';
import { button, color, FONT, painter, pageData, sized } from './page';
import { interactiveTables } from './tables';
import { ticks, timeText } from './ticks';

/** Start and duration in µs, depth, name, category, what else is known. */
type Span = [number, number, number, string, string, Record<string, string>];
interface Lane {
  name: string;
  spans: Span[];
  y: number;
  depth: number;
}

const ROW = 18,
  HEAD = 20,
  AXIS = 22,
  TICK = 90;
const { lanes, runs } = pageData<{ lanes: Lane[]; runs: [number, number][] }>();
const chart = document.getElementById('chart')!,
  tip = document.getElementById('tip')!;
const canvas = chart.querySelector('canvas')!;
let height = AXIS;
for (const lane of lanes) {
  lane.y = height;
  lane.depth = 1 + lane.spans.reduce((most, span) => Math.max(most, span[2]), 0);
  height += HEAD + lane.depth * ROW;
}
const all = lanes.flatMap(({ spans }) => spans);
const first = all.reduce((least, [start]) => Math.min(least, start), all.length ? Infinity : 0);
const last = all.reduce((most, [start, length]) => Math.max(most, start + length), first + 1);
let from = first,
  to = last;

const x = (time: number) => ((time - from) / (to - from)) * canvas.clientWidth;
const timeAt = (pixel: number) => from + (pixel / canvas.clientWidth) * (to - from);

function paintAxis(draw: CanvasRenderingContext2D): void {
  const found = ticks(from, to, canvas.clientWidth / TICK);
  const step = found.length > 1 ? found[1]! - found[0]! : 0;
  for (const time of found) {
    draw.fillStyle = color('line');
    draw.fillRect(x(time), 0, 1, height);
    draw.fillStyle = color('dim');
    draw.fillText(timeText(time, step), x(time) + 3, AXIS / 2);
  }
  canvas.dataset.ticks = String(found.length);
}

const repaint = painter(() => {
  const width = canvas.clientWidth;
  canvas.style.height = `${height}px`;
  const draw = sized(canvas, width, height);
  draw.font = `11px ${FONT}`;
  draw.textBaseline = 'middle';
  paintAxis(draw);
  const ink = color('ink'),
    colors = new Map<string, string>();
  for (const lane of lanes) {
    draw.fillStyle = ink;
    draw.fillText(lane.name, 4, lane.y + HEAD / 2);
    for (const [start, length, depth, name, category] of lane.spans) {
      const left = Math.max(x(start), 0),
        right = Math.min(x(start + length), width);
      if (right < 0 || left > width || right < left) continue;
      const y = lane.y + HEAD + depth * ROW,
        wide = Math.max(right - left, 1);
      if (!colors.has(category)) colors.set(category, color(category) || color('wait'));
      draw.fillStyle = colors.get(category)!;
      draw.fillRect(left, y, wide > 3 ? wide - 1 : wide, ROW - 2);
      if (wide < 30) continue;
      draw.save();
      draw.beginPath();
      draw.rect(left, y, wide - 2, ROW - 2);
      draw.clip();
      draw.fillStyle = ink;
      draw.fillText(name, left + 3, y + ROW / 2 - 1);
      draw.restore();
    }
  }
});

function spanAt(px: number, py: number): Span | undefined {
  const time = timeAt(px),
    slack = (to - from) / canvas.clientWidth;
  for (const lane of lanes) {
    const depth = Math.floor((py - lane.y - HEAD) / ROW);
    if (depth < 0 || depth >= lane.depth) continue;
    return lane.spans.find(
      ([start, length, at]) => at === depth && start <= time && time <= start + Math.max(length, slack),
    );
  }
  return undefined;
}

function show(start: number, end: number): void {
  const room = Math.max(end - start, 1);
  from = start;
  to = start + room;
  canvas.dataset.from = String(from);
  canvas.dataset.to = String(to);
  repaint();
}

function closer(factor: number, px: number): void {
  const time = timeAt(px);
  show(time - (time - from) / factor, time + (to - time) / factor);
}

function tell(px: number, py: number): void {
  const span = spanAt(px, py);
  tip.style.display = span ? 'block' : 'none';
  if (!span) return;
  const [start, length, , name, , further] = span;
  tip.textContent = [
    name,
    `${timeText(length)}, from ${timeText(start)}`,
    ...Object.entries(further).map(([key, value]) => `${key}: ${value}`),
  ].join('\n');
  tip.style.left = `${Math.max(0, Math.min(px + 12, canvas.clientWidth - tip.offsetWidth))}px`;
  // Below the pointer, or above it where the window ends.
  const above = canvas.getBoundingClientRect().top + py + 14 + tip.offsetHeight > innerHeight;
  tip.style.top = `${above ? py - tip.offsetHeight - 6 : py + 14}px`;
}

follow(canvas, {
  pan(dx) {
    const shift = timeAt(dx) - timeAt(0);
    tip.style.display = 'none';
    show(from - shift, to - shift);
  },
  zoom: closer,
  hover: (point) => (point ? tell(point.x, point.y) : tip.style.setProperty('display', 'none')),
  click: tell,
  doubleClick(px, py) {
    const span = spanAt(px, py);
    if (span) show(span[0] - span[1] * 0.05, span[0] + span[1] * 1.05);
    else show(first, last);
  },
});

const middle = () => canvas.clientWidth / 2;
const begin = runs[0],
  end = runs.at(-1);
document.getElementById('views')!.append(
  button('everything', 'The whole trace', () => show(first, last)),
  ...(begin && end
    ? [
        ' ',
        button('runs that count', 'From the first to the last of them', () => show(begin[0], end[1])),
        ' ',
        button('last run', 'Only the last run', () => show(end[0], end[1])),
      ]
    : []),
  ' ',
  button('+', 'Closer', () => closer(1.5, middle())),
  ' ',
  button('−', 'Further', () => closer(1 / 1.5, middle())),
);
if (end) show(end[0], end[1]);
else show(first, last);
interactiveTables();
