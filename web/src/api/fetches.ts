// The outputs that a run returns, and the tensors into which it writes them.
import { invalid } from '../errors';
import type { InferenceRunOptions } from './session_options';
import { Tensor } from './tensor';

/** Names of outputs; or tensors into which to write them, null for new ones. */
export type Fetches = readonly string[] | { readonly [name: string]: Tensor | null };

/**
 * `run(feeds, fetches, options)` or `run(feeds, options)`: an object whose values are tensors and nulls is fetches.
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
  // Outputs may have the names of options.
  const values = Object.values(second);
  if (values.some((value) => value === null || value instanceof Tensor)) {
    const other = Object.entries(second).find(([, value]) => value !== null && !(value instanceof Tensor));
    if (other) throw invalid(`fetches: "${other[0]}" is a Tensor to write the output into, or null for a new one`);
    return [second as Fetches, third];
  }
  return [outputs, second as InferenceRunOptions];
}
