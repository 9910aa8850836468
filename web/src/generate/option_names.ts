// Names of options, of which no others are taken.
import type { GenerateOptions } from './generate_options';
import { invalid } from './outside';

const NAMES: { readonly [name in keyof Required<GenerateOptions>]: true } = {
  maxNewTokens: true,
  minNewTokens: true,
  contextLength: true,
  eos: true,
  stop: true,
  sample: true,
  temperature: true,
  topK: true,
  topP: true,
  repetitionPenalty: true,
  numBeams: true,
  lengthPenalty: true,
  earlyStopping: true,
  numReturnSequences: true,
  seed: true,
  names: true,
  reuse: true,
  mask: true,
  jsonVocabulary: true,
};

/** Names of all options. */
export const OPTIONS: readonly string[] = [...Object.keys(NAMES), 'signal', 'onTokens', 'onLogits'];

/** Throws for an option that there is not; `of`: the option whose keys they are. */
export function checkKeys(given: object, known: readonly string[], of?: string): void {
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const spelled = (key: string) => (of ? `${of}.${key}` : key);
  throw invalid(`there is no option "${spelled(unknown)}"; there are ${known.map(spelled).join(', ')}`);
}
