// What ends a core: whatever is thrown through its frames, as a trap, a stack that overflows, or Emscripten's abort.
// They stay where they were, with a run under way that never ends and memory that is half written. The call throws
// `core_crashed`, and so does whatever the core is asked later. Python then has another worker take its place, as after
// a cancelled node that goes on (Pool._renew); sessions of the API, whose GPU stays, are loaded into another core
// (api/local_engine.ts). Either way runs that waited are done again, and the one that crashed it is not.
import { CORE_PROVIDER } from '../contract/providers';
import { ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import type { CoreModule } from './module';

/** An instance of which each call throws what `told` makes of what it threw. */
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

/** Says in the error which node's kernel was at work, as far as the core can tell, and what comes of it. */
export function explain(error: RuntimeError, module: CoreModule): void {
  try {
    const at = module._ort_kernel_at_work() >>> 2;
    if (at !== 0) {
      const [node, opType] = [0, 1].map((i) => module.UTF8ToString(module.HEAPU32[at + i]));
      Object.assign(error.place, { node, opType, provider: CORE_PROVIDER });
      error.message += ` in node '${node}' (${opType})`;
    }
  } catch {
    // Its memory is damaged.
  }
  error.message += '; sessions are loaded again when they are used next';
}
