// Errors for callers of the API: their stacks begin in the caller's code, by which monitoring tools group them.
import { describe, invalid, RuntimeError } from '../errors';

type Entry = (...given: never[]) => unknown;

/** The stack above a function that is being called. Formats nothing before it is called. */
function stackAbove(entry: unknown): () => string | undefined {
  const [caller, whole] = [new Error(), new Error()];
  (Error as { captureStackTrace?(target: Error, entry: unknown): void }).captureStackTrace?.(caller, entry);
  // An engine may find nothing above the function.
  return () => caller.stack || whole.stack;
}

/** Gives an error of ours the stack of a caller; the one that it had is its cause's. */
function withStack(error: unknown, stack: string | undefined): unknown {
  if (!(error instanceof RuntimeError)) return error;
  const { message, stack: own } = error;
  error.cause ??= Object.assign(new Error(message), { stack: own });
  error.stack = stack?.replace(/^Error\b/, () => String(error));
  return error;
}

/**
 * Does what an asynchronous function of the API does. Errors get the stack of its caller.
 *
 * @param entry the function, whose own frame is the last one that is dropped.
 */
export async function fromCaller<T>(entry: Entry, work: () => Promise<T>): Promise<T> {
  const stack = stackAbove(entry);
  try {
    return await work();
  } catch (error) {
    throw withStack(error, stack());
  }
}

/** An error that is thrown in a call of this function, or constructor, with the stack of its caller. */
export const thrownIn = (entry: unknown, error: unknown) => withStack(error, stackAbove(entry)());

/** Gives errors of these synchronous methods and getters the stacks of their callers. */
export function blameCallers(of: object, names: readonly string[]): void {
  for (const name of names) {
    const member = Object.getOwnPropertyDescriptor(of, name)!;
    const kind = member.get ? 'get' : 'value';
    const real = member[kind] as (...given: unknown[]) => unknown;
    const entry = function (this: unknown, ...given: unknown[]): unknown {
      try {
        return real.apply(this, given);
      } catch (error) {
        throw thrownIn(entry, error);
      }
    };
    for (const own of ['name', 'length'])
      Object.defineProperty(entry, own, Object.getOwnPropertyDescriptor(real, own)!);
    Object.defineProperty(of, name, { ...member, [kind]: entry });
  }
}

/** Throws unless an option is a signal, null or undefined. */
export function checkSignal(signal: AbortSignal | null | undefined): void {
  if (signal === undefined || signal === null) return;
  try {
    AbortSignal.any([signal]); // also one of another frame
  } catch {
    throw invalid(`signal is an AbortSignal, not ${describe(signal)}`);
  }
}

/** Throws unless an option is a function, null or undefined. */
export function checkFunction(name: string, given: unknown): void {
  if (given === undefined || given === null || typeof given === 'function') return;
  throw invalid(`${name} is a function, not ${describe(given)}`);
}
