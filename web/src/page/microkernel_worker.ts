// A thread of the CPU provider: it only runs micro-kernels on the core's memory. It waits for work by atomics and
// answers no messages.
import { type MicroKernel, WORKER_SPINS, Word, workOff, type WorkerStart } from '../core/shared_work';

self.onmessage = ({ data: { memory, address, module, names, stack, me } }: MessageEvent<WorkerStart>) => {
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  (exports.__stack_pointer as WebAssembly.Global<'i32'>).value = stack | 0;
  const kernels = names.map((name) => exports[name] as MicroKernel);
  const words = new Int32Array(memory.buffer, address, Word.count);
  Atomics.add(words, Word.ready, 1);
  for (;;) {
    const job = Atomics.load(words, Word.job);
    workOff(words, me, (kernel) => kernels[kernel]);
    let spins = WORKER_SPINS;
    while (spins > 0 && Atomics.load(words, Word.job) === job) spins--;
    if (spins > 0) continue;
    Atomics.add(words, Word.sleeping, 1);
    Atomics.wait(words, Word.job, job);
    Atomics.sub(words, Word.sleeping, 1);
  }
};
