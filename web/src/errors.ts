// The errors that the page reports; each carries its code of the schema. Python raises the class of that code.
import { ErrorCode } from './schema';

/** Where an error happened, as far as it is known. */
export interface ErrorPlace {
  readonly node?: string;
  readonly opType?: string;
  readonly provider?: string;
}

export class RuntimeError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly place: ErrorPlace = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = `RuntimeError(${ErrorCode[code]})`;
  }
}

/** The caller's fault: a feed, an option or a name. */
export function invalid(message: string): RuntimeError {
  return new RuntimeError(ErrorCode.invalid_argument, message);
}

/** A kernel's complaint about its inputs; becomes a typed error in Python that names the node. */
export class KernelError extends Error {
  constructor(
    message: string,
    readonly notImplemented = false,
  ) {
    super(message);
    this.name = 'KernelError';
  }
}

/** The schema's code for anything that was thrown. */
export function codeOf(error: unknown): ErrorCode {
  if (error instanceof RuntimeError) return error.code;
  if (error instanceof KernelError)
    return error.notImplemented ? ErrorCode.not_implemented : ErrorCode.runtime_exception;
  if (error instanceof DOMException && error.name === 'AbortError') return ErrorCode.cancelled;
  return ErrorCode.fail;
}

/** A value of a wrong type in words, for errors. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'object' ? (value.constructor?.name ?? 'an object') : `a ${typeof value}`;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The start of a long text, such as a `data:` URL, for messages. */
export function shortened(text: string, most = 200): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
