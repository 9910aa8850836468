// Stacks of errors: they begin in the code that calls the API, which tools of monitoring group them by.
import { RuntimeError } from '../errors';

/** Of V8, and by now of others. */
const { captureStackTrace } = Error as { captureStackTrace?(target: Error, entry: unknown): void };

/**
 * Does what a function of the API does. Errors get the stack of its caller; the one that they had is their cause's.
 *
 * @param entry the function, whose own frame is the last one that is left out.
 */
export async function fromCaller<T>(entry: (...given: never[]) => unknown, work: () => Promise<T>): Promise<T> {
  const caller = new Error();
  const whole = caller.stack;
  captureStackTrace?.(caller, entry);
  try {
    return await work();
  } catch (error) {
    if (error instanceof RuntimeError) {
      const { message, stack } = error;
      error.cause ??= Object.assign(new Error(message), { stack });
      error.stack = (caller.stack || whole)?.replace(/^Error\b/, () => String(error));
    }
    throw error;
  }
}
