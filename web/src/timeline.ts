// What a run, or the making of a session, spends its time on: spans on the worker's clock. Python draws them beside its
// own.

/** Name, category, begin and end (performance.now()), and what else is to be said. */
export type Span = readonly [
  name: string,
  category: SpanCategory,
  start: number,
  end: number,
  args?: { readonly [key: string]: unknown },
];

/** page: the worker itself; node: a node that the core carries out; gpu: the GPU, as the page sees it. */
export type SpanCategory = 'page' | 'node' | 'gpu';

export class Timeline {
  readonly spans: Span[] = [];

  add(name: string, category: SpanCategory, start: number, args?: Span[4], end = performance.now()): void {
    this.spans.push(args ? [name, category, start, end, args] : [name, category, start, end]);
  }

  /** Runs `work`, and says how long it took. */
  async during<T>(name: string, work: () => Promise<T> | T): Promise<T> {
    const start = performance.now();
    const result = await work();
    this.add(name, 'page', start);
    return result;
  }
}
