// The rows of a batch: prompts of unequal length are padded on the left or, for GroupQueryAttention, which counts each
// row's keys from the first, on the right. A step's other feeds, besides tokens and caches, follow from them.
import type { PlanInput } from '../session/plan';
import type { Feeds } from '../session/feeds';
import type { TensorOnCpu } from '../wire/values';
import type { DecoderForm } from './decoder_form';
import { DType } from './outside';

/** The slots that a step adds to all rows. */
export interface NewSlots {
  /** Slots before them. */
  readonly before: number;
  readonly count: number;
}

export class Rows {
  /** The number of padded slots in each row. */
  private readonly filled: readonly number[];
  private readonly onTheRight: boolean;

  /** @param lengths of the prompts, in tokens. */
  constructor(
    private readonly form: DecoderForm,
    lengths: readonly number[],
  ) {
    const longest = Math.max(...lengths);
    this.filled = lengths.map((length) => longest - length);
    this.onTheRight = form.filledBehind;
  }

  /** With each row repeated `times` times. */
  repeated(times: number): Rows {
    const longest = Math.max(...this.filled);
    return new Rows(
      this.form,
      this.filled.flatMap((filled) => new Array<number>(times).fill(longest - filled)),
    );
  }

  get count(): number {
    return this.filled.length;
  }

  /** The prompts, padded to the longest. */
  fill(prompts: readonly (readonly number[])[]): number[][] {
    return prompts.map((prompt, row) => {
      const zeros = new Array<number>(this.filled[row]).fill(0);
      return this.onTheRight ? [...prompt, ...zeros] : [...zeros, ...prompt];
    });
  }

  /** The new slot of each row's last token. */
  last({ before, count }: NewSlots): number[] {
    return this.filled.map((filled) => (this.onTheRight && before === 0 ? count - 1 - filled : count - 1));
  }

  /** All inputs except tokens and caches. */
  feeds(slots: NewSlots): Feeds {
    const { mask, positions, cachePositions, lengths, total, logitsToKeep, useCache } = this.form.roles;
    const { before, count } = slots;
    const all = before + count;
    const feeds: { [name: string]: TensorOnCpu } = {};
    const add = (input: PlanInput | undefined, dims: readonly number[], values: () => readonly number[]) => {
      if (input) feeds[input.name] = tensor(input, dims, values());
    };
    const seen = Math.max(all, mask?.dims?.[1] ?? 0);
    add(mask, [this.count, seen], () => this.filled.flatMap((filled) => this.maskOf(filled, all, seen)));
    add(positions, [this.count, count], () => this.filled.flatMap((filled) => this.positionsOf(filled, slots)));
    add(cachePositions, [count], () => Array.from({ length: count }, (_, i) => before + i));
    add(lengths, lengths?.dims?.length === 2 ? [this.count, 1] : [this.count], () =>
      this.filled.map((filled) => all - filled - 1),
    );
    const one = (input: PlanInput | undefined) => (input?.dims?.length === 0 ? [] : [1]);
    add(total, one(total), () => [all]);
    add(logitsToKeep, one(logitsToKeep), () => [this.filled.some(Boolean) && this.onTheRight ? count : 1]);
    add(useCache, one(useCache), () => [1]);
    return feeds;
  }

  private maskOf(filled: number, all: number, seen: number): number[] {
    const first = this.onTheRight ? 0 : filled;
    const end = this.onTheRight ? all - filled : all;
    return Array.from({ length: seen }, (_, slot) => Number(slot >= first && slot < end));
  }

  private positionsOf(filled: number, { before, count }: NewSlots): number[] {
    // Padding on the right follows the prompt, and later tokens overwrite it.
    const shift = this.onTheRight && before === 0 ? 0 : filled;
    const most = before + count - filled - 1;
    return Array.from({ length: count }, (_, i) => Math.min(Math.max(before + i - shift, 0), most));
  }
}

/** Numbers as a tensor for an input. */
export function tensor({ dtype }: PlanInput, dims: readonly number[], values: readonly number[]): TensorOnCpu {
  return { dtype, dims, data: new Uint8Array(elements(dtype, values).buffer) };
}

function elements(
  dtype: DType,
  values: readonly number[],
): BigInt64Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer> {
  if (dtype === DType.int64) return BigInt64Array.from(values, BigInt);
  if (dtype === DType.int32) return Int32Array.from(values);
  return dtype === DType.float32 ? Float32Array.from(values) : Uint8Array.from(values);
}

/** The parts of a long prompt: the memory of logits and attention grows with their length. */
export function partsOf(prompts: readonly (readonly number[])[]): (readonly (readonly number[])[])[] {
  const [prompt] = prompts;
  if (prompts.length > 1 || prompt.length <= LONGEST) return [prompts];
  return Array.from({ length: Math.ceil(prompt.length / LONGEST) }, (_, i) => [
    prompt.slice(i * LONGEST, (i + 1) * LONGEST),
  ]);
}

const LONGEST = 1024;
