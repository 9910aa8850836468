// The threads of the CPU provider: workers that share the core's memory and run micro-kernels, and the core's own
// thread, which distributes the work, takes part in it and waits for the rest. They start when a session is created
// that needs them (microkernels.ts). Runs do not wait for threads to start: a late thread takes part later. Idle
// threads sleep.
import { type HostWorker, host } from '../host';
import type { CoreModule } from './module';
import type { CompiledMicrokernels } from './files';
import {
  CHUNK_BITS,
  CLOSED,
  MAX_CHUNKS,
  type MicroKernel,
  CORE_SPINS,
  Word,
  workOff,
  type WorkerStart,
} from './shared_work';

const STACK = 65536;
/** Chunks for each thread: several balance uneven ones. */
const CHUNKS_PER_THREAD = 4;

export class ThreadPool {
  private readonly words: Int32Array;
  private readonly address: number;
  private readonly names: readonly string[];
  private readonly workers: HostWorker[] = [];
  /** Micro-kernels that were shared so far. */
  jobs = 0;
  private scratch = 0;
  private scratchSize = 0;

  constructor(
    private readonly module: CoreModule,
    private readonly memory: WebAssembly.Memory,
    private readonly microkernels: CompiledMicrokernels,
    private readonly url: URL,
    private readonly fail: (text: string) => void,
  ) {
    this.address = this.allocate(Word.count * 4);
    this.words = new Int32Array(memory.buffer, this.address, Word.count).fill(0);
    this.words[Word.claim] = CLOSED;
    const suffix = microkernels.simd === 'relaxed' ? '__relaxed' : '__simd128';
    const names = module.UTF8ToString(module._ort_microkernel_names()).split('\n');
    this.names = names.map((name) => name + suffix);
  }

  /** Starts the threads missing to `threads`, the core's own included. They take part as soon as they have started. */
  ensure(threads: number): void {
    while (this.workers.length + 1 < threads) {
      const me = this.workers.length + 1;
      const worker = host.startWorker(this.url, `py_ort thread ${me}`);
      const notThere = `${this.url.href.slice(0, 200)} could not be loaded`; // a bundler's may be a data: URL
      worker.onerror = ({ message }) => this.fail(`thread of the CPU provider: ${message || notThere}`);
      worker.unref?.();
      worker.postMessage({
        memory: this.memory,
        address: this.address,
        module: this.microkernels.module,
        names: this.names,
        stack: this.allocate(STACK) + STACK,
        me,
      } satisfies WorkerStart);
      this.workers.push(worker);
    }
  }

  end(): void {
    for (const worker of this.workers) worker.terminate();
  }

  get ready(): number {
    return Atomics.load(this.words, Word.ready);
  }

  /**
   * Runs all units of a micro-kernel on up to `threads` threads that are awake; `wake`: on sleeping ones, too. Returns
   * false if there is no memory for their scratch space.
   */
  share(
    index: number,
    kernel: MicroKernel,
    args: number,
    scratchBytes: number,
    units: number,
    threads: number,
    wake: boolean,
  ): boolean {
    const { words } = this;
    const stride = (scratchBytes + 127) & -128;
    if (!this.reserve(stride * threads)) return false;
    const chunk = Math.ceil(units / Math.min(units, MAX_CHUNKS, threads * CHUNKS_PER_THREAD));
    const chunks = Math.ceil(units / chunk);
    words[Word.kernel] = index;
    words[Word.arguments] = args;
    words[Word.scratch] = this.scratch;
    words[Word.scratchStride] = stride;
    words[Word.units] = units;
    words[Word.chunk] = chunk;
    words[Word.chunks] = chunks;
    words[Word.threads] = threads;
    Atomics.store(words, Word.done, 0);
    Atomics.store(words, Word.claim, ++this.jobs << CHUNK_BITS);
    Atomics.add(words, Word.job, 1);
    if (wake && Atomics.load(words, Word.sleeping) > 0) Atomics.notify(words, Word.job);
    workOff(words, 0, () => kernel);
    for (let spins = CORE_SPINS, done = 0; (done = Atomics.load(words, Word.done)) < chunks; ) {
      if (--spins < 0) Atomics.wait(words, Word.done, done);
    }
    Atomics.store(words, Word.claim, CLOSED);
    if (Atomics.exchange(words, Word.failed, 0))
      throw new Error('a CPU kernel crashed on one of its threads: the console has the reason');
    return true;
  }

  private reserve(bytes: number): boolean {
    if (bytes <= this.scratchSize) return true;
    this.module._ort_free(this.scratch);
    this.scratch = this.module._ort_malloc(bytes) >>> 0;
    this.scratchSize = this.scratch === 0 ? 0 : bytes;
    return this.scratch !== 0;
  }

  private allocate(bytes: number): number {
    const address = this.module._ort_malloc(bytes) >>> 0;
    if (address === 0) throw new Error('no memory for the threads of the CPU provider');
    return address;
  }
}
