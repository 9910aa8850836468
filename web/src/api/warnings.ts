// Warnings of a thread's sessions.
import type { Listener } from './engine';

const warned = new Set<string>();

/** Logs a text, once in this thread. */
export function warnOnce({ log }: Pick<Listener, 'log'>, text: string): void {
  if (!warned.has(text)) log(2, 'session', text);
  warned.add(text);
}
