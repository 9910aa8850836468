// The options with defaults, checked.
import type { GenerateOptions } from './generate_options';
import { checkKeys, OPTIONS } from './option_names';
import { invalid } from './outside';

export interface Settings {
  readonly maxNewTokens: number;
  readonly minNewTokens: number;
  readonly contextLength: number;
  readonly eos: readonly number[];
  readonly stop: readonly (readonly number[])[];
  readonly sampling: Sampling;
  readonly beams: Beams;
  /** Number of sequences for each prompt. */
  readonly sequences: number;
  readonly reuse: boolean;
  readonly mask?: ArrayLike<number>;
  readonly jsonVocabulary?: readonly string[];
}

/** The settings of a search. */
export interface Beams {
  readonly count: number;
  readonly lengthPenalty: number;
  readonly earlyStopping: boolean | 'never';
}

/** The settings for choosing a token from a row of logits. */
export interface Sampling {
  readonly sample: boolean;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly repetitionPenalty: number;
  readonly seed: number;
}

const LARGEST_SEED = Number.MAX_SAFE_INTEGER;
/** At lower temperatures scores would become infinite, and none the largest. */
const COLDEST = 2 ** -64;

export function settingsOf(options: GenerateOptions): Settings {
  checkKeys(options, OPTIONS);
  const { eos: ends = [], stop = [], sample = false, seed = newSeed(), reuse = true } = options;
  const eos = typeof ends === 'number' ? [ends] : ends;
  const { maxNewTokens = 256, minNewTokens = 0, contextLength = Infinity } = options;
  const { temperature = 1, topK = 0, topP = 1, repetitionPenalty = 1 } = options;
  whole('maxNewTokens', maxNewTokens, 1);
  whole('minNewTokens', minNewTokens, 0);
  whole('topK', topK, 0);
  whole('seed', seed, 0, LARGEST_SEED);
  if (!Array.isArray(eos) && !ArrayBuffer.isView(eos))
    throw invalid(`eos is a token, or an array of tokens, not ${eos}`);
  if (!Array.isArray(stop) || !stop.every(Array.isArray)) throw invalid('stop is an array of arrays of tokens');
  for (const token of [...eos, ...stop.flat()]) whole('a token of eos or stop', token, 0, 0x7fffffff);
  if (stop.some(({ length }) => length === 0)) throw invalid('a sequence of stop has no tokens');
  above0('temperature', temperature);
  above0('repetitionPenalty', repetitionPenalty);
  if (!(Number.isFinite(topP) && topP > 0 && topP <= 1)) throw invalid(`topP is above 0 and at most 1, not ${topP}`);
  const filters = filtersOf(options, eos);
  const beams = beamsOf(options);
  const sampling = { sample, temperature: Math.max(temperature, COLDEST), topK, topP, repetitionPenalty, seed };
  return { maxNewTokens, minNewTokens, contextLength, eos, stop, sampling, ...beams, reuse, ...filters };
}

function filtersOf(
  { mask, jsonVocabulary }: GenerateOptions,
  eos: readonly number[],
): Pick<Settings, 'mask' | 'jsonVocabulary'> {
  if (mask && typeof mask.length !== 'number')
    throw invalid(`mask is an array of a number for each token, not ${mask}`);
  if (mask && !Array.prototype.some.call(mask, Boolean))
    throw invalid('mask bars all tokens: those to choose from need another number than 0');
  if (!jsonVocabulary) return { mask };
  if (!Array.isArray(jsonVocabulary) || !jsonVocabulary.every((text) => typeof text === 'string'))
    throw invalid('jsonVocabulary is an array of the text of each token');
  if (eos.length === 0)
    throw invalid('jsonVocabulary needs eos (eos_token_id), a token to be chosen where the value is whole');
  return { mask, jsonVocabulary };
}

function beamsOf({ sample = false, ...options }: GenerateOptions): Pick<Settings, 'beams' | 'sequences'> {
  const { numBeams: count = 1, lengthPenalty = 1, earlyStopping = false, numReturnSequences = 1 } = options;
  whole('numBeams', count, 1);
  whole('numReturnSequences', numReturnSequences, 1);
  if (!Number.isFinite(lengthPenalty)) throw invalid(`lengthPenalty is a number, not ${lengthPenalty}`);
  if (![true, false, 'never'].includes(earlyStopping))
    throw invalid(`earlyStopping is true, false or "never", not ${JSON.stringify(earlyStopping)}`);
  if (sample && count > 1)
    throw invalid(
      `a search by ${count} beams draws no tokens: give either beams (numBeams) or sample (do_sample), not both`,
    );
  if (!sample && numReturnSequences > count)
    throw invalid(
      `${numReturnSequences} sequences of each prompt (numReturnSequences) are those of as many beams (numBeams, ` +
        `here ${count}), or of draws (sample, do_sample)`,
    );
  return { beams: { count, lengthPenalty, earlyStopping }, sequences: numReturnSequences };
}

function newSeed(): number {
  const [low, high] = crypto.getRandomValues(new Uint32Array(2));
  return low + (high & 0x1fffff) * 2 ** 32;
}

function whole(name: string, value: number, least: number, most = Infinity): void {
  if (!Number.isInteger(value) || value < least || value > most)
    throw invalid(`${name} is a whole number from ${least}${most < Infinity ? ` to ${most}` : ''}, not ${value}`);
}

function above0(name: string, value: number): void {
  if (!(Number.isFinite(value) && value > 0)) throw invalid(`${name} is a number above 0, not ${value}`);
}
