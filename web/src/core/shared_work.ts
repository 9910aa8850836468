// The way threads share the units of a micro-kernel. There is one job at a time, described by words of the shared heap;
// each thread claims chunks of units until none is left. The claim includes the job's number, so that a thread that
// wakes late claims nothing of another job. A job's words change only while claims are closed: the words that a thread
// has read are those of the job that it claims.

export type MicroKernel = (args: number, scratch: number, begin: number, end: number) => void;

/** The message that starts a worker. */
export interface WorkerStart {
  readonly memory: WebAssembly.Memory;
  /** The address of the control block. */
  readonly address: number;
  /** The micro-kernels. */
  readonly module: WebAssembly.Module;
  /** The functions, by their numbers. */
  readonly names: readonly string[];
  /** The end of its stack. */
  readonly stack: number;
  readonly me: number;
}

/** Words of the control block. Words that threads write have cache lines of their own. */
export enum Word {
  /** Counts jobs; idle workers wait for it. */
  job = 0,
  /** The job's number and the next chunk of it. */
  claim = 16,
  /** Chunks that have ended. The core waits for it. */
  done = 32,
  /** Workers that wait, and must be woken. */
  sleeping = 48,
  /** Workers that have started. */
  ready = 64,
  kernel = 80,
  arguments,
  scratch,
  scratchStride,
  units,
  chunk,
  chunks,
  threads,
  /** Set by a worker whose kernel crashed. */
  failed = 96,
  count = 112,
}

/**
 * Number of times that the core looks before it sleeps, when it waits for workers: about 100 microseconds. Kernels
 * follow each other closely, and waking a sleeper takes as long in a virtual machine. With 5 microseconds two threads
 * were 25% slower where runs are 100 ms apart; with 400 they were slower than one thread where cores are busy.
 */
export const CORE_SPINS = 20000;
/**
 * The same for workers that wait for the core. They look longer, because Linux wakes a sleeper where it ran last, which
 * may be the core's own processor. In a virtual machine it does not consider others idle that have slept for long,
 * until two threads have competed for one for a while. In runs of squeezenet 100 ms apart two threads took 19 ms, with
 * this value 13, and one thread 17.
 */
export const WORKER_SPINS = 50000;

export const CHUNK_BITS = 12;
/** A chunk number above all valid ones: nothing can be claimed. */
export const CLOSED = (1 << CHUNK_BITS) - 1;
export const MAX_CHUNKS = CLOSED - 1;

/**
 * Works on the current job, if there is one, until all of it is claimed. `me`: the thread's number; the core's is 0.
 */
export function workOff(words: Int32Array, me: number, kernelOf: (index: number) => MicroKernel): void {
  for (;;) {
    const claim = Atomics.load(words, Word.claim);
    const chunk = claim & CLOSED;
    if (chunk === CLOSED || chunk >= words[Word.chunks] || me >= words[Word.threads]) return;
    const kernel = words[Word.kernel];
    const args = words[Word.arguments];
    const scratch = (words[Word.scratch] >>> 0) + me * words[Word.scratchStride];
    const begin = chunk * words[Word.chunk];
    const end = Math.min(words[Word.units], begin + words[Word.chunk]);
    const chunks = words[Word.chunks];
    if (Atomics.compareExchange(words, Word.claim, claim, claim + 1) !== claim) continue;
    try {
      kernelOf(kernel)(args, scratch, begin, end);
    } catch (error) {
      Atomics.store(words, Word.failed, 1);
      console.error(`a CPU kernel crashed on thread ${me}: ${error instanceof Error ? error.stack : String(error)}`);
    }
    if (Atomics.add(words, Word.done, 1) + 1 === chunks) Atomics.notify(words, Word.done);
  }
}
