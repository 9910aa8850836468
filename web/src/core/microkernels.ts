// The CPU kernels' inner loops: for which instructions, and on how many threads. The core has those of plain SIMD;
// modules beside it have those of relaxed SIMD, and both for threads.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import { host } from '../host';
import { sideModule } from './compiled';
import type { CoreFiles } from './files';
import type { CoreModule } from './module';
import type { MicroKernel } from './shared_work';
import { type SideModule, ThreadPool } from './thread_pool';

/**
 * Which instructions the inner loops use: "fixed" are those that every browser has, and round each step; "relaxed" ones
 * may fuse them.
 */
export type Simd = 'relaxed' | 'fixed';

/** What a session wants of its nodes on the CPU. */
export interface CpuOptions {
  readonly simd?: Simd | 'auto';
  /** 0 (the default): as many as the machine has cores, up to MOST_THREADS. */
  readonly threads?: number;
}

export interface MicrokernelStats {
  /** That run micro-kernels, the core's included. */
  readonly threads: number;
  /** How many micro-kernels these shared. */
  readonly shared_kernels: number;
}

/** What it gets. */
export interface CpuMeans {
  readonly simd: Simd;
  readonly threads: number;
  /** Why there is one thread only, although there should be more. */
  readonly without_threads?: string;
}

const MOST_THREADS = 8;
/** Hands out what there is. One for each core. */
export class Microkernels {
  private pool: Promise<ThreadPool | string> | undefined;
  private inUse: ThreadPool | undefined;
  private means: CpuMeans = { simd: 'fixed', threads: 1 };

  /** `memory`: shared, or why it is not; `relaxed`: added to the core already, or why not. */
  constructor(
    private readonly module: CoreModule,
    private readonly files: CoreFiles,
    private readonly memory: WebAssembly.Memory | string,
    private readonly relaxed: WebAssembly.Module | string,
    private readonly log: (severity: number, text: string) => void,
  ) {
    module.shareMicrokernel = (index, kernel, args, scratchBytes, units) =>
      this.share(index, kernel, args, scratchBytes, units);
  }

  /** What a session that wants this gets; starts threads that are missing, and waits for none. */
  async provide({ simd = 'auto', threads = 0 }: CpuOptions, worthThreads: boolean): Promise<CpuMeans> {
    if (!Number.isInteger(threads) || threads < 0) {
      throw new RuntimeError(
        ErrorCode.invalid_argument,
        `threads=${threads}: a whole number; 0: as many as there are cores, up to ${MOST_THREADS}`,
      );
    }
    const got: Simd = simd === 'auto' ? (typeof this.relaxed === 'string' ? 'fixed' : 'relaxed') : simd;
    if (got === 'relaxed' && typeof this.relaxed === 'string') {
      throw new RuntimeError(
        ErrorCode.not_implemented,
        `option simd=relaxed of wasm: ${this.relaxed}; with "auto" plain SIMD does the work`,
      );
    }
    const wanted = threads || (worthThreads ? Math.min(MOST_THREADS, host.cores) : 1);
    if (wanted === 1) return { simd: got, threads: 1 };
    this.pool ??= this.makePool();
    const pool = await this.pool;
    if (typeof pool === 'string') {
      this.log(threads > 1 ? 2 : 1, `the CPU provider has one thread, not ${wanted}: ${pool}`);
      return { simd: got, threads: 1, without_threads: pool };
    }
    pool.ensure(wanted);
    return { simd: got, threads: wanted };
  }

  /** What the runs that follow use. */
  use(means: CpuMeans): void {
    this.means = means;
    this.module._ort_microkernels_use(Number(means.simd === 'relaxed'), means.threads);
  }

  /** Threads that have started, the core's own included, and how often they shared the work of a kernel. */
  get stats(): MicrokernelStats {
    return { threads: 1 + (this.inUse?.ready ?? 0), shared_kernels: this.inUse?.jobs ?? 0 };
  }

  private async makePool(): Promise<ThreadPool | string> {
    if (typeof this.memory === 'string') return this.memory;
    const fixed = await sideModule(this.files.simd128, true);
    if (typeof fixed === 'string') return fixed;
    const sets: SideModule[] = [{ module: fixed, suffix: '__simd128' }];
    if (typeof this.relaxed !== 'string') sets.push({ module: this.relaxed, suffix: '__relaxed' });
    this.inUse = new ThreadPool(this.module, this.memory, sets, this.files.thread, (text) => this.log(3, text));
    return this.inUse;
  }

  /** Called by the core: 1, or 0 without memory. */
  private share(index: number, kernel: MicroKernel, args: number, scratchBytes: number, units: number): number {
    const { simd, threads } = this.means;
    return Number(this.inUse!.share(Number(simd === 'relaxed'), index, kernel, args, scratchBytes, units, threads));
  }
}
