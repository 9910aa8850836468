// How threads share the units of a micro-kernel. One job at a time, described by words of the shared heap; each thread
// claims chunks of units until none is left. The claim has the job's number, so that whoever wakes late claims nothing
// of another job: what it read of the job is what was claimed, because a job's words change only while claims are
// closed.

export type MicroKernel = (args: number, scratch: number, begin: number, end: number) => void;

/** What a worker is told when it starts. */
export interface WorkerStart {
  readonly memory: WebAssembly.Memory;
  /** Where the control block lies. */
  readonly address: number;
  /** The micro-kernels. */
  readonly module: WebAssembly.Module;
  /** The functions, by their numbers. */
  readonly names: readonly string[];
  /** The end of its stack. */
  readonly stack: number;
  readonly me: number;
}

/** Words of the control block. Those that threads write lie on cache lines of their own. */
export enum Word {
  /** Counts jobs; idle workers wait for it. */
  job = 0,
  /** The job's number and the next chunk of it. */
  claim = 16,
  /** Chunks that are done. The core waits for it. */
  done = 32,
  /** Workers that wait, and have to be woken. */
  sleeping = 48,
  /** Workers that are there. */
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
 * How often the core looks before it sleeps, when it waits for workers: about 100 microseconds. Kernels follow each
 * other closely, and waking a sleeper takes as long in a virtual machine. With 5 microseconds two threads took a
 * quarter longer where runs are 100 ms apart; with 400 they were slower than one where cores are busy.
 */
export const CORE_SPINS = 20000;
/**
 * And workers, when they wait for the core. They look longer: Linux wakes a sleeper where it ran last, which may be the
 * core's own processor, and in a virtual machine does not take others for idle that have slept for long, until it sees
 * two that want one for a while. Runs 100 ms apart took two threads 19 ms of squeezenet, with this 13, one thread 17.
 */
export const WORKER_SPINS = 50000;

export const CHUNK_BITS = 12;
/** The last chunk's number that cannot be: nothing can be claimed. */
export const CLOSED = (1 << CHUNK_BITS) - 1;
export const MAX_CHUNKS = CLOSED - 1;

/**
 * Works on the job under way, if there is one, until all of it is claimed. `me`: the thread's number, the core's is 0.
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
