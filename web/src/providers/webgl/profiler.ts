// The GPU's time, by queries around draws: of each dispatch, or of a run's draws as a whole. Queries tell how long work
// took, not when: in profiles, one dispatch begins where the one before ends. Without EXT_disjoint_timer_query_webgl2
// there are the same rows of dispatches, without times.
import { type DeviceTimes, milliseconds, type PassTimes, type ProfileRow } from '../../device/profile';
import type { Timed } from '../../timeline';
import { nextTurn } from '../../turn';
import type { Gl } from './gl';

/** Constants of the extension, for which TypeScript has no types. */
interface TimerQueries {
  readonly TIME_ELAPSED_EXT: number;
  readonly GPU_DISJOINT_EXT: number;
}

export class Profiler implements DeviceTimes {
  private readonly rows: ProfileRow[] = [];
  private readonly queries: WebGLQuery[] = [];
  private readonly timer: TimerQueries | null;
  /** True if each dispatch has a query of its own. */
  private readonly apart: boolean;
  private readonly submittedAt = performance.now();

  constructor(
    private readonly context: Gl,
    timed: Timed,
  ) {
    this.apart = timed === 'dispatches';
    this.timer = context.gl.getExtension('EXT_disjoint_timer_query_webgl2') as TimerQueries | null;
  }

  /** Draws a run's dispatches. */
  run(draw: () => void): void {
    if (this.apart) draw();
    else this.query(draw);
  }

  /** Draws a dispatch. */
  dispatch(row: ProfileRow, draw: () => void): void {
    if (!this.apart) return draw();
    this.rows.push(row);
    this.query(draw);
  }

  private query(draw: () => void): void {
    const { timer } = this;
    const { gl } = this.context;
    const query = timer && gl.createQuery();
    if (!timer || !query) return draw();
    this.queries.push(query);
    gl.beginQuery(timer.TIME_ELAPSED_EXT, query);
    try {
      draw();
    } finally {
      gl.endQuery(timer.TIME_ELAPSED_EXT);
    }
  }

  async dispatches(): Promise<ProfileRow[]> {
    const times = await this.passes();
    if (times.length === 0) return this.rows;
    return this.rows.map((row, i) => {
      const [begin, end] = times[i];
      return { ...row, ms: milliseconds(begin, end), start_ms: this.submittedAt + milliseconds(0n, begin) };
    });
  }

  async passes(): Promise<PassTimes[]> {
    const { gl } = this.context;
    const times: PassTimes[] = [];
    let end = 0n;
    for (const query of this.queries) {
      while (!gl.getQueryParameter(query, gl.QUERY_RESULT_AVAILABLE)) {
        this.context.ensureAlive();
        await nextTurn();
      }
      const begin = end;
      end += BigInt(gl.getQueryParameter(query, gl.QUERY_RESULT) as number);
      times.push([begin, end]);
      gl.deleteQuery(query);
    }
    // The GPU's clock may have changed meanwhile: no time counts then.
    return this.timer && gl.getParameter(this.timer.GPU_DISJOINT_EXT) ? [] : times;
  }
}
