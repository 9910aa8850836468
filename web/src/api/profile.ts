// Times of runs, as events of Chrome's tracing, the form of onnxruntime's profiles.
import type { RunInfo } from '../session/run_options';
import type { EngineDescription } from './engine';

/** Times are in microseconds on the page's clock. */
interface Event {
  readonly name: string;
  readonly cat: string;
  readonly ph: 'X';
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly args: { readonly [name: string]: unknown };
}

const [SESSION, SPANS, KERNELS] = [0, 1, 2];

export class Profile {
  readonly events: Event[] = [];

  /** The provider whose kernels run on a device. */
  private readonly provider: string;

  constructor({ info, providers }: EngineDescription) {
    [this.provider] = providers;
    for (const [name, , start, end, args] of info.timeline)
      this.event(name, 'Session', SESSION, start, end - start, args);
  }

  /** A run, between these times. */
  add({ timeline = [], profile = [] }: RunInfo, from: number, to: number): void {
    this.event('model_run', 'Session', SESSION, from, to - from);
    for (const [name, category, start, end, args] of timeline)
      this.event(name, category === 'node' ? 'Node' : 'Session', SPANS, start, end - start, args);
    for (const { kernel, node, op_type, workgroups, start_ms, ms } of profile) {
      if (start_ms === undefined || ms === undefined) continue;
      this.event(kernel, 'Node', KERNELS, start_ms, ms, { node, op_type, workgroups, provider: this.provider });
    }
  }

  private event(name: string, cat: string, tid: number, start: number, ms: number, args: Event['args'] = {}): void {
    this.events.push({ name, cat, ph: 'X', pid: 0, tid, ts: Math.round(start * 1e3), dur: Math.round(ms * 1e3), args });
  }
}
