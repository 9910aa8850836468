// Shared parts of all report pages: data, colors, a canvas in the resolution of the screen.

/** The data that Python wrote into the page. */
export function pageData<T>(): T {
  return JSON.parse(document.getElementById('data')!.textContent!) as T;
}

/** A color of the page's style, light or dark. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const FONT = 'system-ui, sans-serif';

/** Sets a canvas to a size in CSS pixels; returns its context. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d')!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Calls `paint` at most once a frame, and again whenever the window or its colors are others. */
export function painter(paint: () => void): () => void {
  let asked = false;
  const again = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      paint();
    });
  };
  addEventListener('resize', again);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
  return again;
}

/** A button that does something. */
export function button(text: string, title: string, action: () => void): HTMLButtonElement {
  const made = document.createElement('button');
  made.type = 'button';
  made.textContent = text;
  made.title = title;
  made.addEventListener('click', action);
  return made;
}
