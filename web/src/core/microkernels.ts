// The CPU kernels' inner loops: their instructions, and the number of threads. They are modules of code only, separate
// from the core, for relaxed and for plain SIMD. The page fetches one if a session has nodes that run them.
import { invalid } from '../errors';
import { host } from '../host';
import { compileMicrokernels } from './compiled';
import type { CompiledMicrokernels, CoreFiles, Simd } from './files';
import type { CoreModule } from './module';
import { ThreadPool } from './thread_pool';

/** A session's options for its nodes on the CPU. */
export interface CpuOptions {
  readonly simd?: Simd | 'auto';
  /** 0 (the default): one for each core of the machine, up to MOST_THREADS. */
  readonly threads?: number;
}

export interface MicrokernelStats {
  /** Threads that run micro-kernels, the core's included. */
  readonly threads: number;
  /** Number of micro-kernels that these shared. */
  readonly shared_kernels: number;
}

/** The instructions and threads that a session gets. */
export interface CpuMeans {
  /** Absent if none of its nodes has such loops. */
  readonly simd?: Simd;
  readonly threads: number;
  /** The reason for a single thread, if there should be more. */
  readonly without_threads?: string;
}

/** Properties of a session's nodes. */
export interface CpuNeeds {
  /** True if any of them may run micro-kernels. */
  readonly loops: boolean;
  /** True if there is enough work for threads, unless the user chose their number. */
  readonly threads: boolean;
}

const MOST_THREADS = 8;
/** Provides micro-kernels and threads. One for each core. */
export class Microkernels {
  /** Keyed by the requested instructions. */
  private readonly loading = new Map<Simd | 'auto', Promise<CompiledMicrokernels>>();
  private readonly added = new Set<Simd>();
  private readonly pools = new Map<Simd, ThreadPool>();
  private means: CpuMeans = { threads: 1 };

  /** `memory`: shared memory, or the reason why there is none. */
  constructor(
    private readonly module: CoreModule,
    private readonly files: CoreFiles,
    private readonly memory: WebAssembly.Memory | string,
    private readonly log: (severity: number, text: string) => void,
  ) {
    module.shareMicrokernel = (index, kernel, args, scratchBytes, units, wake) =>
      Number(
        this.pools.get(this.means.simd!)!.share(index, kernel, args, scratchBytes, units, this.means.threads, wake),
      );
  }

  /** Makes them part of the core. */
  add(compiled: CompiledMicrokernels): CompiledMicrokernels {
    const { simd, module, withoutRelaxed } = compiled;
    if (!this.added.has(simd)) {
      const relaxed = simd === 'relaxed';
      this.module.addMicrokernels(module, relaxed);
      this.module._ort_microkernels_warm(Number(relaxed));
      this.added.add(simd);
      if (withoutRelaxed) this.log(0, `no relaxed SIMD: ${withoutRelaxed}`);
    }
    this.loading.set(simd, Promise.resolve(compiled));
    if (simd === 'relaxed' || withoutRelaxed) this.loading.set('auto', Promise.resolve(compiled));
    return compiled;
  }

  /** The means for a session with these options; starts missing threads without waiting for them. */
  async provide({ simd = 'auto', threads = 0 }: CpuOptions, needs: CpuNeeds): Promise<CpuMeans> {
    if (!Number.isInteger(threads) || threads < 0) {
      throw invalid(`threads=${threads}: a whole number; 0: as many as there are cores, up to ${MOST_THREADS}`);
    }
    const wanted = threads || (needs.threads ? Math.min(MOST_THREADS, host.cores) : 1);
    if (!needs.loops && simd === 'auto' && threads <= 1) return { threads: 1 };
    const compiled = await this.load(simd);
    const { simd: got } = compiled;
    if (wanted === 1) return { simd: got, threads: 1 };
    if (typeof this.memory === 'string') {
      this.log(threads > 1 ? 2 : 1, `the CPU provider has one thread, not ${wanted}: ${this.memory}`);
      return { simd: got, threads: 1, without_threads: this.memory };
    }
    let pool = this.pools.get(got);
    if (!pool) {
      pool = new ThreadPool(this.module, this.memory, compiled, this.files.thread, (text) => this.log(3, text));
      this.pools.set(got, pool);
    }
    pool.ensure(wanted);
    return { simd: got, threads: wanted };
  }

  /** Sets the means for the next runs. */
  use(means: CpuMeans): void {
    this.means = means;
    const table = means.simd === undefined ? -1 : Number(means.simd === 'relaxed');
    this.module._ort_microkernels_use(table, means.threads);
  }

  /** Ends the threads. */
  end(): void {
    for (const pool of this.pools.values()) pool.end();
  }

  /** Threads that have started, the core's own included, and the number of kernels whose work they shared. */
  get stats(): MicrokernelStats {
    const pools = [...this.pools.values()];
    return {
      threads: 1 + Math.max(0, ...pools.map(({ ready }) => ready)),
      shared_kernels: pools.reduce((sum, { jobs }) => sum + jobs, 0),
    };
  }

  /**
   * Loads the module for these instructions into the core. All waiting callers receive a failure, and the next call
   * tries again.
   */
  private load(simd: Simd | 'auto'): Promise<CompiledMicrokernels> {
    const known = this.loading.get(simd);
    if (known) return known;
    const shared = typeof this.memory !== 'string';
    const loading = compileMicrokernels(this.files, shared, simd).then((compiled) => this.add(compiled));
    this.loading.set(simd, loading);
    loading.catch(() => this.loading.delete(simd));
    return loading;
  }
}
