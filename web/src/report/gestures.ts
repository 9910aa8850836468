// Gestures on a canvas that pans and zooms: mouse, wheel, one finger, two fingers.

export interface Moves {
  /** By so many pixels. */
  pan(dx: number, dy: number): void;
  /** By a factor above 1: closer, around a point. */
  zoom(factor: number, x: number, y: number): void;
  /** A mouse over a point; without: it left. */
  hover(point?: { x: number; y: number }): void;
  /** A click or tap that moved nothing. */
  click(x: number, y: number): void;
  doubleClick(x: number, y: number): void;
}

const CLICK_DISTANCE = 4;

export function follow(canvas: HTMLCanvasElement, moves: Moves): void {
  const down = new Map<number, { x: number; y: number }>();
  let traveled = 0;
  canvas.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY * 16 : event.deltaY;
      moves.zoom(Math.exp(-pixels * 0.002), event.offsetX, event.offsetY);
    },
    { passive: false },
  );
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (down.size === 0) traveled = 0;
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  });
  canvas.addEventListener('pointermove', (event) => {
    const now = { x: event.offsetX, y: event.offsetY };
    const before = down.get(event.pointerId);
    if (!before) {
      moves.hover(now);
      return;
    }
    down.set(event.pointerId, now);
    const dx = now.x - before.x,
      dy = now.y - before.y;
    traveled += Math.abs(dx) + Math.abs(dy);
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    if (!other) {
      if (traveled > CLICK_DISTANCE) moves.pan(dx, dy);
      return;
    }
    const gap = (a: { x: number; y: number }) => Math.max(Math.hypot(a.x - other.x, a.y - other.y), 1);
    moves.zoom(gap(now) / gap(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
    moves.pan(dx / 2, dy / 2);
  });
  const up = (event: PointerEvent) => {
    if (down.delete(event.pointerId) && event.type === 'pointerup' && traveled <= CLICK_DISTANCE)
      moves.click(event.offsetX, event.offsetY);
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => moves.hover());
  canvas.addEventListener('dblclick', (event) => moves.doubleClick(event.offsetX, event.offsetY));
}
