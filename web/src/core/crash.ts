// The end of a core: anything thrown through its frames, such as a trap, a stack overflow, or Emscripten's abort. The
// frames stay, with a run that never ends and memory that is half written. The call throws `core_crashed`, and so does
// each later call. Python then replaces the worker, as after a cancelled node that does not end (Pool._renew). Sessions
// of the API, whose GPU remains, are loaded into another core (api/local_engine.ts). In both cases runs that waited are
// repeated, and the run that crashed the core is not.
import { CORE_PROVIDER } from '../contract/providers';
import { ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import type { CoreModule } from './module';

/** An instance whose calls throw `told(error)` for each error that they throw. */
export function watched({ exports }: WebAssembly.Instance, told: (thrown: unknown) => unknown): WebAssembly.Instance {
  const each: WebAssembly.Exports = {};
  for (const name in exports) {
    const value = exports[name];
    each[name] =
      typeof value !== 'function'
        ? value
        : (...args: unknown[]) => {
            try {
              return value(...args);
            } catch (thrown) {
              throw told(thrown);
            }
          };
  }
  return { exports: each };
}

export function crashOf(thrown: unknown): RuntimeError {
  const error = new RuntimeError(ErrorCode.core_crashed, `the core crashed: ${messageOf(thrown)}`);
  if (thrown instanceof Error) error.stack = thrown.stack;
  return error;
}

/** Adds to the error the running node, if the core knows it, and the consequences. */
export function explain(error: RuntimeError, module: CoreModule): void {
  try {
    const at = module._ort_kernel_at_work() >>> 2;
    if (at !== 0) {
      const [node, opType] = [0, 1].map((i) => module.UTF8ToString(module.HEAPU32[at + i]));
      Object.assign(error.place, { node, opType, provider: CORE_PROVIDER });
      error.message += ` in node '${node}' (${opType})`;
    }
  } catch {
    // The core's memory is damaged.
  }
  error.message += '; sessions are loaded again when they are used next';
}
