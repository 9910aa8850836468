// The outputs that a run returns, and the tensors into which it writes them.
import { invalid } from '../errors';
import { type InferenceRunOptions, isRunOption } from './session_options';
import type { Tensor } from './tensor';
import { isTensor } from './values';

/** Names of outputs; or tensors into which to write them, null for new ones. */
export type Fetches = readonly string[] | { readonly [name: string]: Tensor | null };

/**
 * `run(feeds, fetches, options)` or `run(feeds, options)`: an object with tensors, or nulls for outputs, is fetches.
 *
 * @param outputs the names of the model's outputs.
 */
export function fetchesAndOptions(
  outputs: readonly string[],
  second: Fetches | InferenceRunOptions | undefined,
  third: InferenceRunOptions,
): [Fetches, InferenceRunOptions] {
  if (second === undefined || second === null) return [outputs, third];
  if (typeof second !== 'object') throw invalid('fetches are names of outputs, or tensors by their names');
  if (Array.isArray(second)) {
    if (second.length === 0) throw invalid('fetches is empty: name an output, or leave it out for all');
    return [second as readonly string[], third];
  }
  // Outputs may have the names of options, which may be null.
  const isPlace = ([name, value]: [string, unknown]) =>
    isTensor(value) || (value === null && (outputs.includes(name) || !isRunOption(name)));
  const entries = Object.entries(second);
  if (!entries.some(isPlace)) return [outputs, second as InferenceRunOptions];
  const other = entries.find(([, value]) => value !== null && !isTensor(value));
  if (other) throw invalid(`fetches: "${other[0]}" is a Tensor to write the output into, or null for a new one`);
  return [second as Fetches, third];
}
