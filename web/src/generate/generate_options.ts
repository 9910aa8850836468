// What a generation is asked for, and what it answers.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import type { Counters } from '../gpu/counters';
import type { DecoderNames } from './decoder_form';

export interface GenerateOptions {
  /** 256 by default. */
  readonly maxNewTokens?: number;
  /** So many tokens come before any of `eos` may. */
  readonly minNewTokens?: number;
  /** The most that prompt and new tokens may be together, as far as the model says. */
  readonly contextLength?: number;
  /** Tokens that end a row. */
  readonly eos?: readonly number[];
  /** Sequences of tokens that end a row. */
  readonly stop?: readonly (readonly number[])[];
  /** Draw tokens; by default the likeliest each. */
  readonly sample?: boolean;
  readonly temperature?: number;
  /** Draw among so many of the likeliest; 0: all. */
  readonly topK?: number;
  /** Draw among the likeliest that together have this probability. */
  readonly topP?: number;
  /** Divides the scores of tokens that there were, or multiplies those below 0; 1: nothing. */
  readonly repetitionPenalty?: number;
  /** So many sequences are followed at a time, and the best of them are the result; 1, the default: no search. */
  readonly numBeams?: number;
  /** Scores of sequences are divided by their length to the power of it: above 0 longer ones win; 1 by default. */
  readonly lengthPenalty?: number;
  /** End as soon as there are as many finished sequences as beams; "never": not before none can become better. */
  readonly earlyStopping?: boolean | 'never';
  /** So many sequences for each prompt: the best of a search, or as many draws. */
  readonly numReturnSequences?: number;
  /** A whole number from 0: the same seed, the same draws. By default a new one each time. */
  readonly seed?: number;
  /** Where the model's names are others than those of transformers. */
  readonly names?: DecoderNames;
  /** Whether to go on from what the last generation left in the caches, where prompts begin alike. */
  readonly reuse?: boolean;
}

export type FinishReason = 'eos' | 'stop' | 'length';

export interface GenerateInfo {
  /** Why each row ended. */
  readonly finished: readonly FinishReason[];
  /** New tokens of each row. */
  readonly counts: readonly number[];
  /** Tokens of the prompt that were in the caches already. */
  readonly reused: number;
  /** Of each row, after a search: the sum of logarithmic probabilities, divided as `lengthPenalty` says. */
  readonly scores?: readonly number[];
  /** From the call to the first token, and from there to the last. */
  readonly prompt_ms: number;
  readonly decode_ms: number;
  /** Runs of the model. */
  readonly steps: number;
  readonly seed: number;
  /** Which provider chose the tokens. */
  readonly sampled_on: 'webgpu' | 'wasm';
  /** All steps together, and the last one. */
  readonly counters: Counters;
  readonly last_step: Counters;
}

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
};

/** Throws for an option that there is not. */
export function checkNames(options: object): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(NAMES, name));
  if (unknown !== undefined)
    throw invalid(`there is no option "${unknown}"; there are ${Object.keys(NAMES).join(', ')}, signal, onTokens`);
}

/** The options with defaults, checked. */
export interface Settings {
  readonly maxNewTokens: number;
  readonly minNewTokens: number;
  readonly contextLength: number;
  readonly eos: readonly number[];
  readonly stop: readonly (readonly number[])[];
  readonly sampling: Sampling;
  readonly beams: Beams;
  /** How many sequences each prompt gets. */
  readonly sequences: number;
  readonly reuse: boolean;
}

/** How sequences are searched. */
export interface Beams {
  readonly count: number;
  readonly lengthPenalty: number;
  readonly earlyStopping: boolean | 'never';
}

/** How a token is chosen of a row of logits. */
export interface Sampling {
  readonly sample: boolean;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly repetitionPenalty: number;
  readonly seed: number;
}

const LARGEST_SEED = Number.MAX_SAFE_INTEGER;
/** Below it scores would become infinite, and none the largest. */
const COLDEST = 2 ** -64;

/** Of a batch: a dispatch has no more workgroups, of which each row gets one. */
const MOST_ROWS = 65535;

/** Throws where so many prompts are more rows than a batch can have. */
export function checkRows(prompts: number, { numBeams = 1, numReturnSequences = 1 }: GenerateOptions): void {
  const rows = prompts * Math.max(numBeams, numReturnSequences);
  if (rows > MOST_ROWS)
    throw invalid(
      `a batch has at most ${MOST_ROWS} rows, not ${rows}: give fewer prompts at a time, or a smaller numBeams or ` +
        'numReturnSequences',
    );
}

export function settingsOf(options: GenerateOptions): Settings {
  const { eos = [], stop = [], sample = false, seed = newSeed(), reuse = true } = options;
  const { maxNewTokens = 256, minNewTokens = 0, contextLength = Infinity } = options;
  const { temperature = 1, topK = 0, topP = 1, repetitionPenalty = 1 } = options;
  whole('maxNewTokens', maxNewTokens, 1);
  whole('minNewTokens', minNewTokens, 0);
  whole('topK', topK, 0);
  whole('seed', seed, 0, LARGEST_SEED);
  if (!Array.isArray(eos) && !ArrayBuffer.isView(eos)) throw invalid(`eos is an array of tokens, not ${eos}`);
  if (!Array.isArray(stop) || !stop.every(Array.isArray)) throw invalid('stop is an array of arrays of tokens');
  for (const token of [...eos, ...stop.flat()]) whole('a token of eos or stop', token, 0, 0x7fffffff);
  if (stop.some(({ length }) => length === 0)) throw invalid('a sequence of stop has no tokens');
  above0('temperature', temperature);
  above0('repetitionPenalty', repetitionPenalty);
  if (!(Number.isFinite(topP) && topP > 0 && topP <= 1)) throw invalid(`topP is above 0 and at most 1, not ${topP}`);
  const beams = beamsOf(options);
  const sampling = { sample, temperature: Math.max(temperature, COLDEST), topK, topP, repetitionPenalty, seed };
  return { maxNewTokens, minNewTokens, contextLength, eos, stop, sampling, ...beams, reuse };
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

export function invalid(message: string): RuntimeError {
  return new RuntimeError(ErrorCode.invalid_argument, `generate: ${message}`);
}
