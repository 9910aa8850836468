// Spans of a run, or of the creation of a session, on the worker's clock. Python draws them together with its own, and
// a browser's tools show them if they are marked.

/** Name, category, start and end (performance.now()), and further information. */
export type Span = readonly [
  name: string,
  category: SpanCategory,
  start: number,
  end: number,
  args?: { readonly [key: string]: unknown },
];

/** page: the worker itself; node: a node that the core runs; gpu: the GPU, from the page's side. */
export type SpanCategory = 'page' | 'node' | 'gpu';

/** The timed parts of a profiled run on the GPU: each dispatch, or the passes, which exist without a profile, too. */
export type Timed = 'dispatches' | 'passes';

export class Timeline {
  readonly spans: Span[] = [];

  /**
   * @param marked true if all spans are in the browser's own performance timeline, too.
   * @param timed for a profiled run.
   */
  constructor(
    private readonly marked = false,
    readonly timed?: Timed,
  ) {}

  add(name: string, category: SpanCategory, start: number, args?: Span[4], end = performance.now()): void {
    this.spans.push(args ? [name, category, start, end, args] : [name, category, start, end]);
    this.mark(name, TRACKS[category], start, end, args);
  }

  /** Marks that only the browser's timeline has. */
  mark(name: string, track: string, start: number, end: number, args: Span[4] = {}): void {
    if (this.marked) marks.add(name, track, start, end, args);
  }

  /** Runs `work`, and records its time. */
  async during<T>(name: string, work: () => Promise<T> | T): Promise<T> {
    const start = performance.now();
    const result = await work();
    this.add(name, 'page', start);
    return result;
  }
}

const TRACKS: Readonly<Record<SpanCategory, string>> = { page: 'worker', node: 'nodes', gpu: 'GPU' };

/** A browser keeps entries until they are cleared. */
const MOST_MARKS = 20_000;

/** Entries of `performance`. DevTools show entries with such details in tracks of their own, below one heading. */
class Marks {
  private readonly names = new Set<string>();
  private count = 0;

  add(name: string, track: string, start: number, end: number, args: NonNullable<Span[4]>): void {
    if (++this.count > MOST_MARKS) this.clear();
    this.names.add(name);
    const properties = Object.entries(args).map(([key, value]) => [
      key,
      typeof value === 'object' ? JSON.stringify(value) : String(value),
    ]);
    const devtools = { dataType: 'track-entry', trackGroup: 'py_ort', track, properties };
    performance.measure(name, { start, end: Math.max(start, end), detail: { devtools } });
  }

  private clear(): void {
    for (const name of this.names) performance.clearMeasures(name);
    this.names.clear();
    this.count = 1;
  }
}

const marks = new Marks();
