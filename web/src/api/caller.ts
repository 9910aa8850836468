// Errors for callers of the API: their stacks begin in the caller's code, by which monitoring tools group them; and the
// end of aborted calls.
import { RuntimeError } from '../errors';

/**
 * Does what a function of the API does. Errors get the stack of its caller; the one that they had is their cause's.
 *
 * @param entry the function, whose own frame is the last one that is dropped.
 */
export async function fromCaller<T>(entry: (...given: never[]) => unknown, work: () => Promise<T>): Promise<T> {
  const [caller, whole] = [new Error(), new Error()];
  (Error as { captureStackTrace?(target: Error, entry: unknown): void }).captureStackTrace?.(caller, entry);
  try {
    return await work();
  } catch (error) {
    if (error instanceof RuntimeError) {
      const { message, stack } = error;
      error.cause ??= Object.assign(new Error(message), { stack });
      // An engine may find nothing above the function.
      error.stack = (caller.stack || whole.stack)?.replace(/^Error\b/, () => String(error));
    }
    throw error;
  }
}

/**
 * Waits for work. When a signal aborts, it waits no longer: the work may wait for a server that never answers.
 *
 * @param undo what is done with a result that comes too late.
 */
export function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  undo: (late: T) => unknown = () => undefined,
): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = () => {
      reject(signal.reason);
      work.then(undo).catch(() => undefined);
    };
    signal.addEventListener('abort', abort);
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
    if (signal.aborted) abort();
  });
}
